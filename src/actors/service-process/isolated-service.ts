/**
 * An active service that has a process of its own: whatever its backend makes of that process, only its own calls fail.
 * When the process ends, another one is started, with growing pauses; after several ends the service has failed, until
 * its config changes or it is activated again.
 */
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import pTimeout from 'p-timeout';
import { toError } from '../../errors.js';
import { type HandlerInstance, signServiceToken } from '../../secrets/service-token.js';
import type { HostedBinding } from '../../store/service-activity.js';
import type { Log } from '../../util/log.js';
import { LogRateLimiter } from '../../util/log-rate-limiter.js';
import { Turns } from '../../util/turns.js';
import type { ConnectionState } from '../reconnecting-connection.js';
import { ServiceError } from '../service-error.js';
import type { ActorMetrics, PoolUse } from '../service-metrics.js';
import { CallRedirected, type RemoteActor, type ServiceAddress } from '../session-host.js';
import { requiringExistingFile } from '../sqlite-refusal.js';
import { addFigures, type Figures } from './figures.js';
import type { FromService, ServeRequest } from './messages.js';
import { missingProgram } from './programs.js';
import { type IsolationSettings, type ServedWork, ServiceRun } from './service-run.js';
import { place, type WithSqliteFolder } from './sqlite-paths.js';
import { tokenSigner } from './token-signer.js';

/** Pauses before it is started again, milliseconds; when there are no more, the service has failed. */
const PAUSES_MS = [100, 500, 2_000, 5_000];
/** Until what it needs is looked for again: its program, or whether there was a file. */
const LOOK_AGAIN_MS = 500;
/** A process that has lived for so long proves that it can. */
const LONG_LIFE_MS = 60_000;
/** Calls that may wait until it can be reached; its own limit applies after that. */
const MAX_WAITING = 4_096;
const MEASURE_TIMEOUT_MS = 1_000;
/** More than handlers alone can cause, which the process limits itself. */
const MAX_LOG_LINES_PER_SECOND = 50;
const NOT_USED: PoolUse = { inUse: 0, waiting: 0 };

/**
 * A start takes a processor for a moment: hundreds at once would not answer in time. Owners of services take turns; as
 * many more may start at once for owners that have none.
 */
const starts = new Turns({ places: availableParallelism(), beyond: availableParallelism() });

/** The state of an active service. */
export type ServiceCondition = ConnectionState | { readonly kind: 'failed'; readonly reason: string };

export interface IsolatedServiceOptions extends Pick<ServeRequest, 'service' | 'config' | 'bindings'> {
  /** Whose turn its starts take. */
  readonly owner: string;
  readonly settings: IsolationSettings;
  /** Whether the file of a sqlite service was opened before with this path. Rejects when that cannot be read now. */
  readonly hadFile: () => Promise<boolean>;
  readonly metrics: ActorMetrics;
  readonly log: Log;
  readonly onState: () => void;
}

export class IsolatedService implements RemoteActor {
  readonly #options: IsolatedServiceOptions;
  readonly #logLimiter: LogRateLimiter;
  #config: IsolatedServiceOptions['config'];
  #bindings: readonly HostedBinding[];
  #run: ServiceRun | undefined;
  /** Resolves when the last start has succeeded or failed. */
  #started: Promise<void>;
  #state: ServiceCondition = { kind: 'connecting' };
  #ends = 0;
  readonly #ending = new AbortController();
  #settling: (() => void)[] = [];
  #use = NOT_USED;
  /** Calls that wait for the address. */
  #waiting = 0;

  constructor(options: IsolatedServiceOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#bindings = options.bindings;
    this.#logLimiter = new LogRateLimiter(MAX_LOG_LINES_PER_SECOND, (dropped) =>
      options.log.warn({ dropped }, 'the process of the service logs more than is written'),
    );
    this.#started = this.#start();
  }

  get state(): ServiceCondition {
    return this.#state;
  }

  /** The use of its pool when it was measured last. */
  get use(): PoolUse {
    return this.#use;
  }

  /** Resolves when it takes calls, or cannot. */
  async ready(): Promise<void> {
    await this.#started;
  }

  /** Resolves when it knows its bindings, and the first attempt to connect has succeeded or failed. */
  async settled(): Promise<void> {
    await this.#started;
    await this.#run?.ready().catch(() => undefined);
    if (this.#state.kind !== 'connecting' || this.#ending.signal.aborted) return;
    await new Promise<void>((resolve) => this.#settling.push(resolve));
  }

  /** Endpoints that may use it. Takes effect before `address` resolves again. */
  setBindings(bindings: readonly HostedBinding[]): void {
    if (JSON.stringify(bindings) === JSON.stringify(this.#bindings)) return;
    this.#bindings = bindings;
    this.#run?.bind(bindings);
  }

  /**
   * Where a handler reaches it.
   * @throws ServiceError unavailable, busy, or deadline
   * @throws Moved when it is drained: the actor host knows what takes its place
   */
  async address(caller: HandlerInstance, timeoutMs: number): Promise<ServiceAddress> {
    if (this.#waiting >= MAX_WAITING)
      throw new ServiceError('busy', `${this.#waiting} calls wait for the process of the service`);
    this.#waiting++;
    try {
      const { socket, key } = await this.#ready(timeoutMs);
      return { socket, token: signServiceToken(tokenSigner(key), caller) };
    } catch (thrown) {
      if (this.#ending.signal.aborted) throw new CallRedirected();
      throw thrown;
    } finally {
      this.#waiting--;
    }
  }

  /**
   * Where object files are reached: the path of a socket, and a token.
   * @throws ServiceError unavailable, or deadline
   */
  async objects(timeoutMs: number): Promise<{ readonly socketPath: string; readonly token: string }> {
    const { objectSocket, key } = await this.#ready(timeoutMs);
    return { socketPath: objectSocket, token: key };
  }

  /** Adds the figures of its process to the metrics; they are added later when it cannot tell them now. */
  async measure(): Promise<void> {
    const run = this.#run;
    if (!run) return;
    const measured = run.measure().then(
      (figures) => this.#add(figures),
      () => undefined, // it has ended
    );
    await pTimeout(measured, { milliseconds: MEASURE_TIMEOUT_MS, fallback: () => undefined });
  }

  /**
   * Sends new calls elsewhere, and waits up to `limitMs` for those in progress. The process lives on until handlers
   * have left it.
   */
  async drain(limitMs?: number): Promise<void> {
    this.#ending.abort();
    this.#settle();
    this.#logLimiter.reportDropped();
    this.#add(await this.#run?.drain(limitMs));
  }

  async #ready(timeoutMs: number): Promise<ServiceRun> {
    const ready = async () => {
      await this.#started;
      const run = this.#run;
      if (!run) throw new ServiceError('unavailable', this.#whyNot());
      await run.ready();
      return run;
    };
    return pTimeout(ready(), {
      milliseconds: timeoutMs,
      message: new ServiceError(
        'deadline',
        `the process of the service was not ready within ${timeoutMs} ms`,
      ),
    });
  }

  #whyNot(): string {
    return 'reason' in this.#state ? this.#state.reason : 'the process of the service is being started';
  }

  async #start(): Promise<void> {
    const work = await this.#place();
    if (!work) return;
    await starts.run(this.#options.owner, async () => {
      if (this.#ending.signal.aborted) return;
      const { service, settings } = this.#options;
      const missing = missingProgram(service.type);
      if (missing !== undefined) {
        if (this.#state.kind === 'connecting') this.#setState({ kind: 'unreachable', reason: missing });
        this.#startAfter(LOOK_AGAIN_MS);
        return;
      }
      const run = new ServiceRun({ ...work, bindings: this.#bindings }, settings, {
        onMessage: (message) => this.#onMessage(message),
        onEnd: (reason) => this.#onEnd(run, reason),
      });
      this.#run = run;
      // Its end is reported by `onEnd`.
      await run.serving.catch(() => undefined);
    });
  }

  /** Undefined when it is not started now. */
  async #place(): Promise<WithSqliteFolder<ServedWork> | undefined> {
    const { service, settings, hadFile, log } = this.#options;
    const { sqliteFolders, starter } = settings;
    const work = { service, config: this.#config, bindings: this.#bindings, sqliteFolders };
    try {
      const placed = await place(work, hadFile, starter);
      if (!('refusal' in placed)) return placed;
      log.warn({ reason: placed.refusal }, 'the service is not started');
      this.#setState({ kind: 'failed', reason: placed.refusal });
    } catch (thrown) {
      const reason = `its file cannot be looked for, which is tried again: ${toError(thrown).message}`;
      this.#setState({ kind: 'unreachable', reason });
      this.#startAfter(LOOK_AGAIN_MS);
    }
    return undefined;
  }

  #onMessage(message: Exclude<FromService, { type: 'answer' | 'failed' }>): void {
    switch (message.type) {
      case 'state':
        // The connection is closed while it drains, which is no news.
        if (!this.#ending.signal.aborted) this.#setState(message.state);
        // A later process finds its file, or does not start with a new one.
        if (message.state.kind === 'connected') this.#config = requiringExistingFile(this.#config);
        break;
      case 'figures':
        this.#add(message.figures);
        break;
      case 'log':
        if (message.level === 'debug' || this.#logLimiter.take())
          this.#options.log[message.level](message.details, message.message);
        break;
    }
  }

  #add(figures: Figures | undefined): void {
    if (!figures) return;
    addFigures(figures, this.#options.metrics);
    this.#use = figures.use;
  }

  #onEnd(run: ServiceRun, reason: string): void {
    if (this.#run === run) this.#run = undefined;
    this.#use = NOT_USED;
    if (this.#ending.signal.aborted) return;
    if (performance.now() - run.since >= LONG_LIFE_MS) this.#ends = 0;
    const pause = PAUSES_MS[this.#ends++];
    const { log } = this.#options;
    if (pause === undefined) {
      log.error({ reason, ends: this.#ends }, 'the service has failed: its process ends again and again');
      const times = `its process has ended ${this.#ends} times, at last because: ${reason}`;
      const advice = 'Activate the service again, or change its config.';
      this.#setState({ kind: 'failed', reason: `${times}. ${advice}` });
      return;
    }
    log.warn({ reason, ends: this.#ends }, 'the process of the service has ended; starting another');
    this.#setState({ kind: 'unreachable', reason: `its process has ended and is started again: ${reason}` });
    this.#startAfter(pause);
  }

  #startAfter(pauseMs: number): void {
    delay(pauseMs, undefined, { signal: this.#ending.signal }).then(
      () => {
        this.#started = this.#start();
      },
      () => undefined, // it is not needed any more
    );
  }

  #setState(state: ServiceCondition): void {
    this.#state = state;
    if (state.kind !== 'connecting') this.#settle();
    this.#options.onState();
  }

  #settle(): void {
    for (const settle of this.#settling.splice(0)) settle();
  }
}
