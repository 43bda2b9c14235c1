/**
 * Puts handlers to sleep that have had no request for as long as their limits say, and the longest idle ones earlier
 * when memory is scarce. The front knows for how long; it is asked only about those whose time may have come.
 */
import type { Logger } from '../../util/log.js';
import { PeriodicTask } from '../../util/periodic-task.js';
import type { EndpointRunner } from '../runner/endpoint-runner.js';
import { handlersToEnd, isScarce, type Memory } from './memory-pressure.js';

type IdleRunner = Pick<EndpointRunner, 'idle' | 'idleLimitMs' | 'sleep'>;

/** What this uses of the gateway. */
export interface IdleHandlersHost {
  /** The endpoints with handlers, by id. */
  readonly runners: ReadonlyMap<string, IdleRunner>;
  /** How long endpoints have had no request, milliseconds, in the same order. */
  idleMs(endpointIds: readonly string[]): Promise<readonly number[]>;
  readMemory(): Promise<readonly Memory[]>;
  /** What the handlers of an endpoint have in memory. */
  bytesOf(endpointId: string): number;
  readonly log: Logger;
}

const CHECK_EVERY_MS = 200;
const CHECK_MEMORY_EVERY_MS = 1_000;
const REPORT_EVERY_MS = 60_000;

export class IdleHandlers {
  readonly #host: IdleHandlersHost;
  readonly #checking: readonly PeriodicTask[];
  #asleep = 0;
  #woken = 0;

  constructor(host: IdleHandlersHost) {
    this.#host = host;
    const failed = (error: Error) =>
      host.log.warn({ err: error }, 'idle handlers could not be put to sleep; trying again');
    this.#checking = [
      new PeriodicTask(CHECK_EVERY_MS, () => this.check(), failed),
      new PeriodicTask(CHECK_MEMORY_EVERY_MS, () => this.checkMemory(), failed),
      new PeriodicTask(REPORT_EVERY_MS, async () => this.#report(), failed),
    ];
  }

  /** Puts those to sleep whose time has come. */
  async check(): Promise<void> {
    const began = performance.now();
    const due = [...this.#host.runners].filter(([, { idle, idleLimitMs }]) => idle.at(began) >= idleLimitMs);
    for (const [id, runner] of await this.#askFront(due)) {
      const idleMs = runner.idle.at(performance.now());
      if (idleMs >= runner.idleLimitMs) this.#sleep(id, runner, idleMs);
    }
  }

  /** Puts the longest idle ones to sleep, if memory is scarce. */
  async checkMemory(): Promise<void> {
    const memory = await this.#host.readMemory();
    if (!memory.some(isScarce)) return;
    const mayBeIdle = [...this.#host.runners].filter(([, { idleLimitMs }]) => idleLimitMs !== Infinity);
    const candidates = await this.#askFront(mayBeIdle);
    const now = performance.now();
    const idle = candidates.map(([endpointId, runner]) => ({
      ...{ endpointId, runner, idleMs: runner.idle.at(now), bytes: this.#host.bytesOf(endpointId) },
    }));
    const chosen = new Set(handlersToEnd(memory, idle).map(({ endpointId }) => endpointId));
    let ended = 0;
    for (const { endpointId, runner, idleMs } of idle)
      if (chosen.has(endpointId) && this.#sleep(endpointId, runner, idleMs)) ended++;
    if (ended > 0) this.#host.log.warn({ memory, ended }, 'memory is scarce, idle handlers were ended');
  }

  /** A request has woken the handlers of an endpoint. */
  woken(): void {
    this.#woken++;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#checking.map((task) => task.stop()));
  }

  /** Has their clocks set to what the front knows. */
  async #askFront(candidates: readonly [string, IdleRunner][]): Promise<readonly [string, IdleRunner][]> {
    if (candidates.length === 0) return candidates;
    const idle = await this.#host.idleMs(candidates.map(([id]) => id));
    const now = performance.now();
    for (const [at, [, runner]] of candidates.entries()) runner.idle.used(now - (idle[at] ?? 0));
    return candidates;
  }

  #sleep(endpointId: string, runner: IdleRunner, idleMs: number): boolean {
    if (!runner.sleep()) return false;
    this.#asleep++;
    this.#host.log.debug({ endpoint_id: endpointId, idle_ms: Math.round(idleMs) }, 'handler falls asleep');
    return true;
  }

  #report(): void {
    const [asleep, woken] = [this.#asleep, this.#woken];
    if (asleep + woken === 0) return;
    this.#asleep = 0;
    this.#woken = 0;
    this.#host.log.info({ asleep, woken }, 'handlers have fallen asleep and were woken, in the last minute');
  }
}
