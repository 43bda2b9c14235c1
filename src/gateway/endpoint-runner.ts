/**
 * Keeps the handler of one endpoint as desired: starts it, swaps it without losing a request, restarts it when it
 * crashes, stops it. All changes of one endpoint happen one after the other; a newer wish overtakes an older one
 * between two steps.
 */
import type { LimitsInForce } from '../endpoint-limits.js';
import { toError } from '../errors.js';
import type { Logger } from '../log.js';
import type { ObservedState } from '../store/observations.js';
import { type HandlerProcess, withOutput } from './handler-process.js';
import type { HandlerState } from './messages.js';

/** What should run. */
export interface Desired {
  /** null: nothing. */
  readonly artifact: string | null;
  readonly limits: LimitsInForce;
  /** Version of the endpoint this is from. */
  readonly version: number;
}

/** What is seen of an endpoint on this node. */
export interface Seen {
  readonly state: ObservedState;
  readonly artifact: string | null;
  readonly version: number;
  readonly pid: number | null;
  readonly error: string | null;
}

/** What a runner needs of its surroundings. */
export interface RunnerHost {
  /** Fetches the artifact and starts it. @throws when it does not become ready */
  start(artifact: string, limits: LimitsInForce): Promise<HandlerProcess>;
  /** Sends requests to another handler; resolves when all fronts do. */
  route(handler: HandlerState): Promise<void>;
  /** Resolves when no request is left in a process that was taken out of service, or none can be any more. */
  drained(process: HandlerProcess): Promise<void>;
  /** Records what is seen. @throws when that is not possible now */
  observe(seen: Seen): Promise<void>;
  /** The handler of this version of the endpoint keeps crashing, or has recovered from that. */
  crashLoop(artifact: string, version: number, error: string): Promise<void>;
  recovered(artifact: string): Promise<void>;
  restarted(reason: 'crash' | 'deadline'): void;
  readonly log: Logger;
}

/** A handler that has run this long has not crashed at its start. */
const STABLE_MS = 10_000;
/** So many crashes without being stable in between are a crash loop. */
const CRASH_LOOP = 5;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;

/** The other end of a connection that broke is probably just ending: how it ended says more than that. */
const LOST_GRACE_MS = 200;

interface Running {
  readonly artifact: string;
  readonly limits: LimitsInForce;
  readonly process: HandlerProcess;
}

export class EndpointRunner {
  #desired: Desired;
  #current: Running | undefined;
  #observedVersion: number | undefined;
  #isUnsaved = false;
  /** Resolves when the last observation is saved, or has failed to be. */
  #saving = Promise.resolve();
  #crashes = 0;
  /** Why it is reported to crash over and over; undefined while it is not. */
  #loop: string | undefined;
  #retry: NodeJS.Timeout | undefined;
  #stable: NodeJS.Timeout | undefined;
  #mustReplace = false;
  #settling: Promise<void> | undefined;
  /** Old processes on their way out. */
  readonly #retiring = new Set<Promise<void>>();

  constructor(
    private readonly host: RunnerHost,
    desired: Desired,
  ) {
    this.#desired = desired;
    this.#settle();
  }

  /** Takes note of what should run now. */
  desire(desired: Desired): void {
    const isNew = desired.artifact !== this.#desired.artifact || desired.version !== this.#desired.version;
    // Told again, what is under way is still what is wanted.
    if (isNew) {
      this.#desired = desired;
      // Somebody wants something: past crashes do not delay it.
      this.#crashes = 0;
      this.#loop = undefined;
      clearTimeout(this.#retry);
      this.#retry = undefined;
    }
    this.#settle();
  }

  /** The endpoint is gone. */
  remove(version: number): void {
    this.desire({ ...this.#desired, artifact: null, version });
  }

  /** Writes the observation again: it was lost, or could not be written. */
  observeAgain(): void {
    this.#observedVersion = undefined;
    this.#settle();
  }

  /** Whether the last observation could not be written. */
  get isUnsaved(): boolean {
    return this.#isUnsaved;
  }

  /** Replaces the process because a request in it ran over its deadline. */
  replace(instanceId: number): void {
    // Of a process that is on its way out already, more of the same is expected.
    if (this.#current?.process.instance.id !== instanceId || this.#mustReplace) return;
    this.#mustReplace = true;
    this.host.restarted('deadline');
    this.#settle();
  }

  /** Ends the process, as crashed, with which a connection broke that should serve, if it does not end by itself. */
  lost(instanceId: number, reason: string): void {
    const process = this.#current?.process;
    if (process?.instance.id !== instanceId) return;
    setTimeout(() => process.fail(reason), LOST_GRACE_MS).unref();
  }

  /** True when nothing runs and nothing should. */
  get isIdle(): boolean {
    return !this.#current && !this.#settling && this.#desired.artifact === null && this.#retiring.size === 0;
  }

  /** Ends all processes, and resolves when they are gone. */
  async stop(): Promise<void> {
    this.remove(this.#desired.version);
    while (this.#settling !== undefined) await this.#settling;
    await Promise.all(this.#retiring);
  }

  #settle(): void {
    this.#settling ??= this.#settleAll().finally(() => {
      this.#settling = undefined;
      if (!this.#isSettled()) this.#settle();
    });
  }

  #isSettled(): boolean {
    const { artifact, version } = this.#desired;
    if (this.#retry) return true;
    const isAsDesired = artifact === null ? !this.#current : this.#isCurrent(this.#desired);
    return isAsDesired && !this.#mustReplace && this.#observedVersion === version;
  }

  /** Whether what runs is what should. */
  #isCurrent({ artifact, limits }: Desired): boolean {
    return this.#current?.artifact === artifact && haveSameProcess(this.#current.limits, limits);
  }

  async #settleAll(): Promise<void> {
    while (!this.#isSettled()) {
      const desired = this.#desired;
      try {
        if (desired.artifact === null) await this.#stopCurrent(desired);
        else if (this.#isCurrent(desired) && !this.#mustReplace) await this.#observeCurrent(desired);
        else await this.#startNew(desired, desired.artifact);
      } catch (thrown) {
        await this.#startFailed(desired, toError(thrown));
      }
    }
  }

  async #stopCurrent(desired: Desired): Promise<void> {
    const old = this.#current;
    this.#current = undefined;
    this.#mustReplace = false;
    clearTimeout(this.#stable);
    if (old) {
      await this.host.route({ kind: 'none' });
      await this.host.drained(old.process);
      await old.process.stop();
    } else {
      await this.host.route({ kind: 'none' });
    }
    await this.#observe(desired, 'stopped');
  }

  async #startNew(desired: Desired, artifact: string): Promise<void> {
    if (!this.#current) await this.host.route({ kind: 'starting' });
    const { limits } = desired;
    const process = await this.host.start(artifact, limits);
    const old = this.#current;
    this.#current = { artifact, limits, process };
    this.#mustReplace = false;
    void process.ended.then((reason) => this.#ended(process, reason));
    // Before anything is waited for: its crash, which may come at any moment, clears this.
    clearTimeout(this.#stable);
    this.#stable = setTimeout(() => void this.#becameStable(artifact), STABLE_MS);
    await this.host.route({ kind: 'running', instance: process.instance });
    if (old) this.#retire(old.process);
    if (this.#current?.process !== process) return; // crashed already
    // After a crash loop it has to prove itself first.
    if (this.#loop === undefined) await this.#observe(desired, 'running');
    else this.#observedVersion = desired.version;
  }

  /** The old process answers what it has begun; nobody waits for that. */
  #retire(old: HandlerProcess): void {
    const retiring = this.host
      .drained(old)
      .then(() => old.stop())
      .catch((error: unknown) =>
        this.host.log.error({ err: error }, 'old handler process could not be ended'),
      )
      .finally(() => this.#retiring.delete(retiring));
    this.#retiring.add(retiring);
  }

  #ended(process: HandlerProcess, reason: string): void {
    if (this.#current?.process !== process) return;
    clearTimeout(this.#stable);
    this.#current = undefined;
    this.#observedVersion = undefined;
    this.#crashes++;
    this.host.restarted('crash');
    const text = withOutput(`The handler crashed: ${reason}.`, process.lastLines());
    this.host.log.warn({ reason, crashes: this.#crashes }, 'handler crashed');
    void process.stop(); // what it has started, and its socket file, go with it
    if (this.#crashes > 1) this.#backOff();
    if (this.#crashes >= CRASH_LOOP) void this.#enterLoop(text);
    this.#settle();
  }

  async #startFailed(desired: Desired, error: Error): Promise<void> {
    this.host.log.warn({ err: error, artifact: desired.artifact }, 'handler could not be started');
    this.#crashes++;
    // What ran before goes on; if nothing did, requests need not wait.
    if (!this.#current) await this.host.route({ kind: 'none' });
    if (this.#desired !== desired) return;
    this.#backOff();
    await this.#observeFailed(error.message);
    if (this.#crashes >= CRASH_LOOP) await this.#enterLoop(error.message);
  }

  async #enterLoop(error: string): Promise<void> {
    const desired = this.#desired;
    const { artifact, version } = desired;
    if (artifact === null) return;
    const isKnown = this.#loop !== undefined;
    // Before anything is waited for: what is started meanwhile has to prove itself first.
    this.#loop = error;
    if (!this.#current) await this.host.route({ kind: 'none' });
    // What is wanted by now has not crashed yet.
    if (this.#desired !== desired) return;
    await this.#observeFailed(error);
    // It may have recovered while that was saved.
    if (isKnown || this.#desired !== desired || this.#loop === undefined) return;
    await this.host.crashLoop(artifact, version, error);
  }

  async #becameStable(artifact: string): Promise<void> {
    // It may serve only because what is wanted instead cannot be started.
    if (!this.#isCurrent(this.#desired)) return;
    this.#crashes = 0;
    if (this.#loop === undefined) return;
    this.#loop = undefined;
    await this.#observe(this.#desired, 'running');
    await this.host.recovered(artifact);
  }

  #backOff(): void {
    clearTimeout(this.#retry);
    const delay = Math.min(FIRST_BACKOFF_MS * 2 ** Math.max(0, this.#crashes - 2), MAX_BACKOFF_MS);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#settle();
    }, delay);
  }

  /** Of a handler in a crash loop, that it runs just now is not what is to be known. */
  async #observeCurrent(desired: Desired): Promise<void> {
    if (this.#loop === undefined) await this.#observe(desired, 'running');
    else await this.#observe(desired, 'failed', this.#loop);
  }

  /** What cannot be started may only be a process with other limits, or a fresh one, while the one before it serves. */
  async #observeFailed(error: string): Promise<void> {
    const serves = this.#current !== undefined && this.#current.artifact === this.#desired.artifact;
    await this.#observe(this.#desired, serves ? 'running' : 'failed', error);
  }

  async #observe(desired: Desired, state: ObservedState, error: string | null = null): Promise<void> {
    const running = state === 'running' ? this.#current : undefined;
    const seen = {
      state,
      artifact: state === 'stopped' ? null : desired.artifact,
      version: desired.version,
      pid: running?.process.pid ?? null,
      error,
    };
    // One after the other: what was seen last is what stays.
    this.#saving = this.#saving.then(() => this.#save(seen));
    await this.#saving;
    this.#observedVersion = desired.version;
  }

  async #save(seen: Seen): Promise<void> {
    try {
      await this.host.observe(seen);
      this.#isUnsaved = false;
    } catch (thrown) {
      this.#isUnsaved = true;
      this.host.log.warn({ err: toError(thrown) }, 'observation could not be saved; trying again soon');
    }
  }
}

/** Whether a process started with one of them is as good as one started with the other: fronts see to the rest. */
function haveSameProcess(left: LimitsInForce, right: LimitsInForce): boolean {
  const names = ['memory_mb', 'processes', 'open_files', 'cpu_percent'] as const;
  return names.every((name) => left[name] === right[name]);
}
