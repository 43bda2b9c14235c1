/**
 * Keeps the handler of one endpoint in its desired state: starts it, replaces it without losing a request, restarts it
 * when it crashes, stops it. Changes are made one after the other; a newer desired state takes over between two steps.
 */

import { toError } from '../errors.js';
import type { LimitsInForce } from '../model/endpoint-limits.js';
import type { Runner } from '../reconcile/reconciler.js';
import type { Observation, ObservedState } from '../store/observations.js';
import { LatestWriter } from '../util/latest-writer.js';
import type { Logger } from '../util/log.js';
import { type HandlerProcess, withOutput } from './handler-process.js';
import type { ServingState } from './messages.js';

/** The desired state of an endpoint. */
export interface DesiredState {
  /** null: nothing. */
  readonly artifact: string | null;
  readonly limits: LimitsInForce;
  /** Version of the endpoint this is from. */
  readonly version: number;
}

/** The part of the gateway that a runner uses. */
export interface EndpointRunnerHost {
  /** Fetches the artifact and starts it. @throws when it does not become ready */
  start(artifact: string, limits: LimitsInForce): Promise<HandlerProcess>;
  /** Sends requests to another handler; resolves when all of them go there. */
  route(serving: ServingState): Promise<void>;
  /** Resolves when a process that was taken out of service has no request left, or their deadlines are over. */
  drained(process: HandlerProcess): Promise<void>;
  /** @throws when it cannot be saved now */
  saveObservation(observation: Omit<Observation, 'node_id' | 'endpoint_id'>): Promise<void>;
  /** The handler of this version of the endpoint keeps crashing. @throws when it cannot be saved now */
  saveCrashLoop(artifact: string, version: number, error: string): Promise<void>;
  /** The crash loop is over. @throws when it cannot be saved now */
  saveRecovery(artifact: string): Promise<void>;
  restarted(reason: 'crash' | 'deadline'): void;
  readonly log: Logger;
}

/** A handler that has run this long has not crashed at its start. */
const STABLE_MS = 10_000;
/** So many crashes without being stable in between are a crash loop. */
const CRASH_LOOP = 5;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;

/** The other end of a connection that broke is probably just ending: its exit code says more than that. */
const CONNECTION_LOST_GRACE_MS = 200;

interface Running {
  readonly artifact: string;
  readonly limits: LimitsInForce;
  readonly process: HandlerProcess;
}

export class EndpointRunner implements Runner {
  readonly #host: EndpointRunnerHost;
  #desired: DesiredState;
  #current: Running | undefined;
  #observedVersion: number | undefined;
  readonly #observation: LatestWriter<Omit<Observation, 'node_id' | 'endpoint_id'>>;
  /** Saves that a crash loop began or ended. */
  readonly #crashReport: LatestWriter<() => Promise<void>>;
  #crashes = 0;
  /** The error of the last crash in a crash loop; undefined while there is none. */
  #crashLoop: string | undefined;
  #retry: NodeJS.Timeout | undefined;
  #stable: NodeJS.Timeout | undefined;
  #mustReplace = false;
  #reconciling: Promise<void> | undefined;
  /** Replaced processes that still have requests. */
  readonly #retiring = new Set<Promise<void>>();

  constructor(host: EndpointRunnerHost, desired: DesiredState) {
    this.#host = host;
    this.#desired = desired;
    this.#observation = new LatestWriter(
      (observation) => host.saveObservation(observation),
      (error) => host.log.warn({ err: error }, 'observation could not be saved; trying again soon'),
    );
    this.#crashReport = new LatestWriter(
      (save) => save(),
      (error) =>
        host.log.warn({ err: error }, 'crash loop or recovery could not be saved; trying again soon'),
    );
    this.#reconcile();
  }

  setDesired(desired: DesiredState): void {
    const isNew = desired.artifact !== this.#desired.artifact || desired.version !== this.#desired.version;
    // Setting the same state again does not restart a change in progress.
    if (isNew) {
      this.#desired = desired;
      // Earlier crashes do not delay a new request.
      this.#crashes = 0;
      this.#crashLoop = undefined;
      clearTimeout(this.#retry);
      this.#retry = undefined;
    }
    this.#reconcile();
  }

  saveAgain(): void {
    void this.#observation.writeAgain();
  }

  retryUnsaved(): void {
    void this.#observation.retry();
    void this.#crashReport.retry();
  }

  /** Replaces the process because a request in it ran over its deadline. */
  replace(instanceId: number): void {
    // A process that is being replaced may run over more deadlines.
    if (this.#current?.process.instance.id !== instanceId || this.#mustReplace) return;
    this.#mustReplace = true;
    this.#host.restarted('deadline');
    this.#reconcile();
  }

  /** The connection to the process is lost: if it does not exit by itself, it is killed and counts as crashed. */
  connectionLost(instanceId: number, reason: string): void {
    const process = this.#current?.process;
    if (process?.instance.id !== instanceId) return;
    setTimeout(() => process.fail(reason), CONNECTION_LOST_GRACE_MS).unref();
  }

  /** Stops all processes; resolves when they have ended. */
  async stop(): Promise<void> {
    this.setDesired({ ...this.#desired, artifact: null });
    while (this.#reconciling !== undefined) await this.#reconciling;
    await Promise.all(this.#retiring);
    await Promise.all([this.#observation.idle(), this.#crashReport.idle()]);
  }

  #reconcile(): void {
    this.#reconciling ??= this.#makeChanges().finally(() => {
      this.#reconciling = undefined;
      if (!this.#isAsDesired()) this.#reconcile();
    });
  }

  #isAsDesired(): boolean {
    const { artifact, version } = this.#desired;
    if (this.#retry) return true;
    const runs = artifact === null ? !this.#current : this.#isCurrent(this.#desired);
    return runs && !this.#mustReplace && this.#observedVersion === version;
  }

  /** Whether what runs is what should. */
  #isCurrent({ artifact, limits }: DesiredState): boolean {
    return this.#current?.artifact === artifact && sameProcessLimits(this.#current.limits, limits);
  }

  async #makeChanges(): Promise<void> {
    while (!this.#isAsDesired()) {
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

  async #stopCurrent(desired: DesiredState): Promise<void> {
    const old = this.#current;
    this.#current = undefined;
    this.#mustReplace = false;
    clearTimeout(this.#stable);
    await this.#host.route({ kind: 'none' });
    if (old) {
      await this.#host.drained(old.process);
      await old.process.stop();
    }
    await this.#observe(desired, 'stopped');
  }

  async #startNew(desired: DesiredState, artifact: string): Promise<void> {
    if (!this.#current) await this.#host.route({ kind: 'starting' });
    const { limits } = desired;
    const process = await this.#host.start(artifact, limits);
    const old = this.#current;
    this.#current = { artifact, limits, process };
    this.#mustReplace = false;
    void process.ended.then((reason) => this.#ended(process, reason));
    // Set before anything is awaited: a crash, which may come at any moment, clears it.
    clearTimeout(this.#stable);
    this.#stable = setTimeout(() => void this.#becameStable(artifact), STABLE_MS);
    await this.#host.route({ kind: 'running', targets: [{ weight: 1, instance: process.instance }] });
    if (old) this.#retire(old.process);
    if (this.#current?.process !== process) return; // crashed already
    // After a crash loop it counts as running only once it is stable.
    if (this.#crashLoop === undefined) await this.#observe(desired, 'running');
    else this.#observedVersion = desired.version;
  }

  /** Lets the old process finish its requests, in the background. */
  #retire(old: HandlerProcess): void {
    const retiring = this.#host
      .drained(old)
      .then(() => old.stop())
      .catch((error: unknown) =>
        this.#host.log.error({ err: error }, 'old handler process could not be stopped'),
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
    this.#host.restarted('crash');
    const text = withOutput(`The handler crashed: ${reason}.`, process.lastLines());
    this.#host.log.warn({ reason, crashes: this.#crashes }, 'handler crashed');
    void process.stop(); // removes its child processes and its socket
    if (this.#crashes > 1) this.#backOff();
    if (this.#crashes >= CRASH_LOOP) void this.#enterCrashLoop(text);
    this.#reconcile();
  }

  async #startFailed(desired: DesiredState, error: Error): Promise<void> {
    this.#host.log.warn({ err: error, artifact: desired.artifact }, 'handler could not be started');
    this.#crashes++;
    // The previous handler keeps running; without one, requests need not wait.
    if (!this.#current) await this.#host.route({ kind: 'none' });
    if (this.#desired !== desired) return;
    this.#backOff();
    await this.#observeFailed(error.message);
    if (this.#crashes >= CRASH_LOOP) await this.#enterCrashLoop(error.message);
  }

  async #enterCrashLoop(error: string): Promise<void> {
    const desired = this.#desired;
    const { artifact, version } = desired;
    if (artifact === null) return;
    const isReported = this.#crashLoop !== undefined;
    // Set before anything is awaited: a process started meanwhile has to become stable first.
    this.#crashLoop = error;
    if (!this.#current) await this.#host.route({ kind: 'none' });
    // A newer desired state has not crashed yet.
    if (this.#desired !== desired) return;
    await this.#observeFailed(error);
    // It may have recovered while that was saved.
    if (isReported || this.#desired !== desired || this.#crashLoop === undefined) return;
    this.#host.log.warn({ artifact }, 'handler is in a crash loop');
    await this.#crashReport.write(() => this.#host.saveCrashLoop(artifact, version, error));
  }

  async #becameStable(artifact: string): Promise<void> {
    // It may serve only because what is desired cannot be started.
    if (!this.#isCurrent(this.#desired)) return;
    this.#crashes = 0;
    if (this.#crashLoop === undefined) return;
    this.#crashLoop = undefined;
    await this.#observe(this.#desired, 'running');
    await this.#crashReport.write(() => this.#host.saveRecovery(artifact));
  }

  #backOff(): void {
    clearTimeout(this.#retry);
    const delay = Math.min(FIRST_BACKOFF_MS * 2 ** Math.max(0, this.#crashes - 2), MAX_BACKOFF_MS);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#reconcile();
    }, delay);
  }

  /** A handler in a crash loop is observed as failed, even while it happens to run. */
  async #observeCurrent(desired: DesiredState): Promise<void> {
    if (this.#crashLoop === undefined) await this.#observe(desired, 'running');
    else await this.#observe(desired, 'failed', this.#crashLoop);
  }

  /** When only a replacement failed, with other limits for example, the endpoint still runs. */
  async #observeFailed(error: string): Promise<void> {
    const runs = this.#current !== undefined && this.#current.artifact === this.#desired.artifact;
    await this.#observe(this.#desired, runs ? 'running' : 'failed', error);
  }

  async #observe(desired: DesiredState, state: ObservedState, error: string | null = null): Promise<void> {
    const running = state === 'running' ? this.#current : undefined;
    await this.#observation.write({
      state,
      artifact: state === 'stopped' ? null : desired.artifact,
      version: desired.version,
      pid: running?.process.pid ?? null,
      error,
    });
    this.#observedVersion = desired.version;
  }
}

/** Whether a process started with one of them fits the other too; the remaining limits are enforced by the front. */
function sameProcessLimits(left: LimitsInForce, right: LimitsInForce): boolean {
  const names = ['memory_mb', 'processes', 'open_files', 'cpu_percent'] as const;
  return names.every((name) => left[name] === right[name]);
}
