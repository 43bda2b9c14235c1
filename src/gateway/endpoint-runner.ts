/**
 * Keeps the handlers of one endpoint, one for each version of its deployment, in their desired state: starts them,
 * replaces them without losing a request, restarts them when they crash, stops them. Changes are made one after the
 * other; a newer desired state takes over between two steps.
 */
import { isDeepStrictEqual } from 'node:util';
import { toError } from '../errors.js';
import { isKeptAwake } from '../model/endpoint-limits.js';
import type { Runner } from '../reconcile/reconciler.js';
import type { Deployed, DeployedTarget } from '../store/endpoint-runs.js';
import type { ObservedState, VersionState } from '../store/observations.js';
import { LatestWriter } from '../util/latest-writer.js';
import { type HandlerProcess, withOutput } from './handler-process.js';
import { IdleClock } from './idle-clock.js';
import type { RunningState } from './messages.js';
import { isProcessOf, PendingStart } from './pending-start.js';
import type { ProcessSettings } from './process-settings.js';
import type { Beginning, DesiredState, EndpointRunnerHost, RunnerObservation } from './runner-host.js';
import { type Running, routedTo, runningOf } from './running-handlers.js';

/** A handler that has run this long has not crashed at its start. */
const STABLE_MS = 10_000;
/** So many crashes without being stable in between are a crash loop. */
const CRASH_LOOP = 5;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;

/** The other end of a connection that broke is probably just ending: its exit code says more than that. */
const CONNECTION_LOST_GRACE_MS = 200;

export class EndpointRunner implements Runner {
  /** For how long it has had no request. */
  readonly idle: IdleClock;
  readonly #host: EndpointRunnerHost;
  #desired: DesiredState;
  /** Those that serve, those to be replaced, and those that serve once the others of their deployment run too. */
  #running: readonly Running[] = [];
  /** Where requests go, as the front was told last. */
  #routed: RunningState | 'asleep' | undefined;
  /** False: its handlers should be ended, until a request comes. */
  #isAwake = true;
  /** The last deployment that has served here. */
  #proven: string | undefined;
  #observedRevision: number | undefined;
  readonly #observation: LatestWriter<RunnerObservation>;
  /** Saves that a crash loop began or ended. */
  readonly #crashReport: LatestWriter<() => Promise<void>>;
  #crashes = 0;
  /** The latest start. */
  #starting: PendingStart | undefined;
  /** Why versions could not be started, or crash again and again, until they run. */
  readonly #failures = new Map<number, string>();
  /** The error of the last crash in a crash loop; undefined while there is none. */
  #crashLoop: string | undefined;
  /** The endpoint may be in error because its handlers did not keep running, and is not known to have recovered. */
  #isInError: boolean;
  #retry: NodeJS.Timeout | undefined;
  #stable: NodeJS.Timeout | undefined;
  #reconciling: Promise<void> | undefined;
  /** Replaced processes that still have requests. */
  readonly #retiring = new Set<Promise<void>>();

  /** @param isInError the endpoint is, maybe because of a runner before this one */
  constructor(
    host: EndpointRunnerHost,
    desired: DesiredState,
    beginning: Beginning = 'stopped',
    isInError = false,
  ) {
    this.#host = host;
    this.#isInError = isInError;
    this.#desired = desired;
    this.#routed = beginning === 'stopped' ? undefined : 'asleep';
    this.#proven = beginning === 'woken' ? desired.deployment?.id : undefined;
    this.idle = new IdleClock(beginning !== 'woken');
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
    const isNewDeployment = desired.deployment?.id !== this.#desired.deployment?.id;
    // Setting the same state again does not restart a change in progress.
    if (isNewDeployment || desired.revision !== this.#desired.revision) {
      this.#desired = desired;
      if (isNewDeployment) {
        this.idle.hold();
        this.#isInError = false;
      }
      if (isNewDeployment || isKeptAwake(desired.limits)) this.#isAwake = true;
      // Earlier crashes do not delay a new request.
      this.#crashes = 0;
      this.#crashLoop = undefined;
      this.#failures.clear();
      clearTimeout(this.#retry);
      this.#retry = undefined;
      if (this.#starting?.isPendingWithout(desired))
        this.#inBackground(this.#starting.abandon(), 'abandoned handler process could not be stopped');
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

  /** After so long without requests its handlers should sleep; never where they are not to. */
  get idleLimitMs(): number {
    const { deployment, limits } = this.#desired;
    return deployment && this.#isAwake && !isKeptAwake(limits) ? limits.idle_ms : Infinity;
  }

  /** Ends its handlers until the next request, unless it changes, or they have not been stable since a crash. */
  sleep(): boolean {
    const isStable = this.#crashes === 0 && this.#crashLoop === undefined && !this.#isInError;
    if (!isStable || !this.#crashReport.isSettled || this.idleLimitMs === Infinity) return false;
    if (this.#reconciling !== undefined || typeof this.#routed !== 'object') return false;
    this.#isAwake = false;
    this.#reconcile();
    return true;
  }

  /** Starts its handlers, because a request waits for them. */
  wake(): void {
    this.#isAwake = true;
    this.#reconcile();
  }

  /** Replaces the process because a request in it ran over its deadline. */
  replace(instanceId: number): void {
    const running = this.#instance(instanceId);
    // A process that is being replaced may run over more deadlines.
    if (!running || running.mustReplace) return;
    running.mustReplace = true;
    this.#host.restarted('deadline', running.version);
    this.#reconcile();
  }

  /** The connection to the process is lost: if it does not exit by itself, it is killed and counts as crashed. */
  connectionLost(instanceId: number, reason: string): void {
    const running = this.#instance(instanceId);
    if (!running) return;
    setTimeout(() => {
      // One that was replaced meanwhile finishes its requests.
      if (this.#running.includes(running)) running.process.fail(reason);
    }, CONNECTION_LOST_GRACE_MS).unref();
  }

  /** Stops all processes; resolves when they have ended. */
  async stop(): Promise<void> {
    this.setDesired({ ...this.#desired, deployment: null });
    while (this.#reconciling !== undefined) await this.#reconciling;
    await Promise.all(this.#retiring);
    await Promise.all([this.#observation.idle(), this.#crashReport.idle()]);
  }

  #reconcile(): void {
    this.#reconciling ??= this.#makeChanges().finally(() => {
      this.#reconciling = undefined;
      if (!this.#isAsDesired()) this.#reconcile();
      else void this.#tellIfAsleep();
    });
  }

  /** When nothing is left to do before it is woken. */
  async #tellIfAsleep(): Promise<void> {
    await this.#observation.idle();
    const isResting = this.#reconciling === undefined && this.#retiring.size === 0;
    if (!this.#isAwake && isResting && this.#routed === 'asleep') this.#host.asleep(this.#proven);
  }

  #instance(id: number): Running | undefined {
    return this.#running.find(({ process }) => process.instance.id === id);
  }

  #isAsDesired(): boolean {
    if (this.#retry) return true;
    // That it sleeps is observed by others.
    const isObserved = !this.#isAwake || this.#observedRevision === this.#desired.revision;
    return isObserved && this.#isCurrent(this.#desired);
  }

  /** Whether what should run does, nothing else does, and requests go there. */
  #isCurrent(desired: DesiredState): boolean {
    if (!desired.deployment) return this.#running.length === 0 && this.#routed === undefined;
    if (!this.#isAwake) return this.#running.length === 0 && this.#routed === 'asleep';
    const target = routedTo(this.#running, desired, desired.deployment);
    return this.#running.length === target.targets.length && isDeepStrictEqual(target, this.#routed);
  }

  /** Whether requests go to a process: one may run and not be told of, because it is to be replaced already. */
  get #isServing(): boolean {
    return this.#running.length > 0 && typeof this.#routed === 'object';
  }

  async #makeChanges(): Promise<void> {
    while (!this.#isAsDesired()) {
      const desired = this.#desired;
      const { deployment } = desired;
      const missing = deployment?.targets.find((target) => !runningOf(this.#running, target, desired));
      try {
        if (!deployment) await this.#stopAll(desired);
        else if (!this.#isAwake) await this.#fallAsleep(deployment);
        else if (missing) await this.#startMissing(missing, desired);
        else if (!this.#isCurrent(desired)) await this.#switchTo(desired, deployment);
        else await this.#observeCurrent(desired);
      } catch (thrown) {
        await this.#startFailed(desired, toError(thrown), missing?.version ?? null);
      }
    }
  }

  async #stopAll(desired: DesiredState): Promise<void> {
    const old = this.#running;
    this.#running = [];
    clearTimeout(this.#stable);
    await this.#routeNowhere('none');
    await Promise.all(
      old.map(async ({ process }) => {
        await this.#host.drained(process);
        await process.stop();
      }),
    );
    await this.#observe(desired, 'stopped');
  }

  /** Requests that come from now on wake it, at once if need be: they do not wait until others are finished. */
  async #fallAsleep({ sticky }: Deployed): Promise<void> {
    const old = this.#running;
    this.#running = [];
    clearTimeout(this.#stable);
    await this.#host.route({ kind: 'asleep', ...(sticky && { sticky }) });
    this.#routed = 'asleep';
    this.#observedRevision = undefined;
    for (const { process } of old) this.#retire(process);
  }

  async #startMissing(target: DeployedTarget, settings: ProcessSettings): Promise<void> {
    const { version, artifact } = target;
    // Requests to one that was asleep wait for it.
    const isAsleep = this.#routed === 'asleep';
    if (this.#running.length === 0 && !isAsleep) await this.#routeNowhere('starting');
    if (!isProcessOf(target, settings, this.#desired)) return; // no longer
    const isWoken = isAsleep && this.#proven === this.#desired.deployment?.id;
    const starting = new PendingStart(target, settings, (abandoned) =>
      this.#host.start(artifact, settings, version, isWoken, abandoned),
    );
    this.#starting = starting;
    const process = await starting.outcome;
    // What is desired now does not wait for it.
    if (!process || starting.isAbandoned) return;
    if (this.#crashLoop === undefined) this.#failures.delete(version);
    this.#running = [...this.#running, { version, artifact, settings, process, mustReplace: false }];
    void process.ended.then((reason) => this.#ended(process, reason));
    // Set before anything is awaited: a crash, which may come at any moment, clears it.
    clearTimeout(this.#stable);
    this.#stable = setTimeout(() => void this.#becameStable(), STABLE_MS);
  }

  /** Sends requests to the handlers of a deployment, which all run, and lets others finish. */
  async #switchTo(desired: DesiredState, deployment: Deployed): Promise<void> {
    const kept = deployment.targets.flatMap((target) => runningOf(this.#running, target, desired) ?? []);
    const routed = routedTo(this.#running, desired, deployment);
    await this.#host.route(routed);
    this.#routed = routed;
    this.#proven = deployment.id;
    this.idle.used(performance.now());
    // Those that were added or have crashed meanwhile are not among those that were replaced.
    const old = this.#running.filter((running) => !kept.includes(running));
    this.#running = this.#running.filter((running) => kept.includes(running));
    for (const { process } of old) this.#retire(process);
    if (!kept.every((running) => this.#running.includes(running))) return; // crashed already
    // After a crash loop it counts as running only once it is stable.
    if (this.#crashLoop === undefined) await this.#observe(desired, 'running');
    else this.#observedRevision = desired.revision;
  }

  async #routeNowhere(kind: 'none' | 'starting'): Promise<void> {
    await this.#host.route({ kind });
    this.#routed = undefined;
  }

  /** Lets the old process finish its requests, in the background. */
  #retire(old: HandlerProcess): void {
    const ended = this.#host.drained(old).then(() => old.stop());
    this.#inBackground(ended, 'old handler process could not be stopped');
  }

  /** For the end of a process; `stop` waits for it. */
  #inBackground(work: Promise<void>, failure: string): void {
    const done = work
      .catch((error: unknown) => this.#host.log.error({ err: error }, failure))
      .finally(() => {
        this.#retiring.delete(done);
        void this.#tellIfAsleep();
      });
    this.#retiring.add(done);
  }

  #ended(process: HandlerProcess, reason: string): void {
    const crashed = this.#running.find((running) => running.process === process);
    if (!crashed) return;
    clearTimeout(this.#stable);
    this.#running = this.#running.filter((running) => running.process !== process);
    this.#observedRevision = undefined;
    this.#crashes++;
    this.#host.restarted('crash', crashed.version);
    const text = withOutput(`The handler crashed: ${reason}.`, process.lastLines());
    if (this.#crashes >= CRASH_LOOP) this.#failures.set(crashed.version, text);
    this.#host.log.warn({ reason, crashes: this.#crashes }, 'handler crashed');
    this.#host.failed(crashed.version, `The handler crashed: ${reason}.`);
    void process.stop(); // removes its child processes and its socket
    if (this.#crashes > 1) this.#backOff();
    if (this.#crashes >= CRASH_LOOP) void this.#enterCrashLoop(this.#namingVersion(crashed.version, text));
    this.#reconcile();
  }

  async #startFailed(desired: DesiredState, error: Error, version: number | null): Promise<void> {
    this.#host.log.warn(
      { err: error, deployment_id: desired.deployment?.id },
      'handler could not be started',
    );
    this.#crashes++;
    this.#host.failed(version, error.message);
    // The previous handlers keep running; without one, requests need not wait. Those that wait for one that slept when
    // another deployment came get that one, because a deployment that fails at once is taken back.
    const willBeReverted =
      this.#routed === 'asleep' && this.#proven !== desired.deployment?.id && this.#crashes === 1;
    if (!this.#isServing && !willBeReverted) await this.#routeNowhere('none');
    if (this.#desired !== desired) return;
    // A start that fails is an error of the endpoint; it is tried again.
    this.#isInError = true;
    this.#backOff();
    if (version !== null) this.#failures.set(version, error.message);
    const text = this.#namingVersion(version, error.message);
    await this.#observeFailed(text);
    if (this.#crashes >= CRASH_LOOP) await this.#enterCrashLoop(text);
  }

  /** Where several serve, it matters which of them fails. */
  #namingVersion(version: number | null, text: string): string {
    const isOneOfSeveral = (this.#desired.deployment?.targets.length ?? 0) > 1;
    return version !== null && isOneOfSeveral ? `Version ${version}: ${text}` : text;
  }

  async #enterCrashLoop(error: string): Promise<void> {
    const desired = this.#desired;
    const { deployment, revision } = desired;
    if (!deployment) return;
    const isReported = this.#crashLoop !== undefined;
    // Set before anything is awaited: a process started meanwhile has to become stable first.
    this.#crashLoop = error;
    if (!this.#isServing) await this.#routeNowhere('none');
    // A newer desired state has not crashed yet.
    if (this.#desired !== desired) return;
    await this.#observeFailed(error);
    // It may have recovered while that was saved.
    if (isReported || this.#desired !== desired || this.#crashLoop === undefined) return;
    this.#host.log.warn({ deployment_id: deployment.id }, 'handler is in a crash loop');
    this.#isInError = true;
    await this.#crashReport.write(() => this.#host.saveCrashLoop(deployment, revision, error));
  }

  async #becameStable(): Promise<void> {
    const { deployment } = this.#desired;
    // Others may serve only because what is desired cannot be started.
    if (!deployment || !this.#isCurrent(this.#desired)) return;
    this.#crashes = 0;
    this.#failures.clear();
    if (this.#crashLoop === undefined && !this.#isInError) return;
    this.#crashLoop = undefined;
    await this.#observe(this.#desired, 'running');
    this.#isInError = false;
    await this.#crashReport.write(() => this.#host.saveRecovery(deployment));
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

  /** When only a replacement failed, with other limits for example, the deployment still runs. */
  async #observeFailed(error: string): Promise<void> {
    const { deployment } = this.#desired;
    const runs = deployment?.targets.every(({ version, artifact }) =>
      this.#running.some((running) => running.version === version && running.artifact === artifact),
    );
    await this.#observe(this.#desired, runs && this.#isServing ? 'running' : 'failed', error);
  }

  async #observe(desired: DesiredState, state: ObservedState, error: string | null = null): Promise<void> {
    const routed = typeof this.#routed === 'object' ? this.#routed.targets : [];
    const targets = [...routed].sort((left, right) => right.weight - left.weight);
    const serving = targets.flatMap(({ instance }) => this.#instance(instance.id) ?? []);
    await this.#observation.write({
      state,
      revision: desired.revision,
      serving: serving.map(({ version, process }) => ({ version, pid: process.pid })),
      versions: this.#versionStates(desired.deployment?.targets ?? []),
      error,
    });
    this.#observedRevision = desired.revision;
    if (state === 'running') this.idle.observed();
  }

  #versionStates(targets: readonly DeployedTarget[]): VersionState[] {
    return targets.map(({ version }) => {
      const error = this.#failures.get(version) ?? null;
      const runs = this.#running.some((running) => running.version === version);
      return { version, state: error !== null ? 'failed' : runs ? 'running' : 'starting', error };
    });
  }
}
