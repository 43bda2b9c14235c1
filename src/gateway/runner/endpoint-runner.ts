/**
 * Keeps the handlers of one endpoint, one for each version of its deployment, in their desired state: starts them,
 * replaces them without losing a request, restarts them when they crash, stops them. `runner-state.ts` has its states;
 * in each but those in which it rests it takes one step. A newer desired state takes over between two steps.
 */
import type { Serving } from '../../contracts/front.js';
import { toError } from '../../errors.js';
import { isKeptAwake } from '../../model/endpoint-limits.js';
import type { Runner } from '../../reconcile/reconciler.js';
import type { DeployedTarget, DesiredDeployment } from '../../store/endpoint-runs.js';
import type { ObservedState, VersionState } from '../../store/observations.js';
import { type HandlerProcess, withOutput } from '../handlers/handler-process.js';
import { HandlerCrashes } from './handler-crashes.js';
import { IdleClock } from './idle-clock.js';
import { isProcessOf, PendingStart } from './pending-start.js';
import type { Beginning, DesiredState, EndpointRunnerHost } from './runner-host.js';
import { RunnerReports } from './runner-reports.js';
import {
  isResting,
  type RunnerState,
  type Situation,
  type Step,
  servesAsDesired,
  stateOf,
} from './runner-state.js';
import { RunningHandlers, routedTo, runningOf } from './running-handlers.js';

/** A handler that has run this long has not crashed at its start. */
const STABLE_MS = 10_000;
/** The other end of a connection that broke is probably just ending: its exit code says more than that. */
const CONNECTION_LOST_GRACE_MS = 200;

export class EndpointRunner implements Runner {
  /** How long it has had no request. */
  readonly idle: IdleClock;
  readonly #host: EndpointRunnerHost;
  readonly #handlers: RunningHandlers;
  readonly #crashes = new HandlerCrashes();
  readonly #reports: RunnerReports;
  #desired: DesiredState;
  /** False: its handlers should be ended, until a request comes. */
  #isAwake = true;
  /** Where requests go, as the front was told last. */
  #routed: Serving;
  /** The last deployment that has served here. */
  #proven: string | undefined;
  /** The latest start. */
  #start: PendingStart | undefined;
  #stable: NodeJS.Timeout | undefined;
  /** The endpoint may be in error because its handlers did not keep running, and is not known to have recovered. */
  #isInError: boolean;
  /** Steps are being taken. */
  #steps: Promise<void> | undefined;

  /** @param isInError the endpoint is, maybe because of a runner before this one */
  constructor(
    host: EndpointRunnerHost,
    desired: DesiredState,
    beginning: Beginning = 'stopped',
    isInError = false,
  ) {
    this.#host = host;
    this.#handlers = new RunningHandlers(host, () => void this.#reportIfAsleep());
    this.#reports = new RunnerReports(host);
    this.#desired = desired;
    this.#routed = { kind: beginning === 'stopped' ? 'none' : 'asleep' };
    this.#proven = beginning === 'woken' ? desired.deployment?.id : undefined;
    this.#isInError = isInError;
    this.idle = new IdleClock(beginning !== 'woken');
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
      this.#crashes.forget();
      if (this.#start?.isPendingWithout(desired))
        this.#handlers.endsLater(this.#start.abandon(), 'abandoned handler process could not be stopped');
    }
    this.#reconcile();
  }

  saveAgain(): void {
    this.#reports.saveAgain();
  }

  retryUnsaved(): void {
    this.#reports.retryUnsaved();
  }

  /** After so long without requests its handlers should sleep; never where they are not to. */
  get idleLimitMs(): number {
    const { deployment, limits } = this.#desired;
    return deployment && this.#isAwake && !isKeptAwake(limits) ? limits.idle_ms : Infinity;
  }

  /** Ends its handlers until the next request, unless it changes, or they have not been stable since a crash. */
  sleep(): boolean {
    const isStable = this.#crashes.count === 0 && !this.#isInError && this.#reports.areCrashesSaved;
    if (!isStable || this.idleLimitMs === Infinity) return false;
    if (this.#steps !== undefined || this.#state.name !== 'running') return false;
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
    const running = this.#handlers.byInstance(instanceId);
    // A process that is being replaced may run over more deadlines.
    if (!running || running.mustReplace) return;
    running.mustReplace = true;
    this.#host.restarted('deadline', running.version);
    this.#reconcile();
  }

  /** The connection to the process is lost: if it does not exit by itself, it is killed and counts as crashed. */
  connectionLost(instanceId: number, reason: string): void {
    const running = this.#handlers.byInstance(instanceId);
    if (!running) return;
    setTimeout(() => {
      // One that was replaced meanwhile finishes its requests.
      if (this.#handlers.all.includes(running)) running.process.fail(reason);
    }, CONNECTION_LOST_GRACE_MS).unref();
  }

  /** Stops all processes; resolves when they have ended. */
  async stop(): Promise<void> {
    this.setDesired({ ...this.#desired, deployment: null });
    while (this.#steps !== undefined) await this.#steps;
    await this.#handlers.ended();
    await this.#reports.idle();
  }

  get #situation(): Situation {
    return {
      desired: this.#desired,
      isAwake: this.#isAwake,
      handlers: this.#handlers.all,
      routed: this.#routed,
      isObserved: this.#reports.isObserved(this.#desired.revision),
      isBackingOff: this.#crashes.isBackingOff,
    };
  }

  get #state(): RunnerState {
    return stateOf(this.#situation);
  }

  #reconcile(): void {
    this.#steps ??= this.#takeSteps().finally(() => {
      this.#steps = undefined;
      if (!isResting(this.#state)) this.#reconcile();
      else void this.#reportIfAsleep();
    });
  }

  async #takeSteps(): Promise<void> {
    for (let state = this.#state; !isResting(state); state = this.#state) {
      const desired = this.#desired;
      try {
        await this.#takeStep(state, desired);
      } catch (thrown) {
        await this.#startFailed(desired, toError(thrown), 'target' in state ? state.target.version : null);
      }
    }
  }

  #takeStep(step: Step, desired: DesiredState): Promise<void> {
    switch (step.name) {
      case 'starting':
      case 'replacing':
      case 'waking':
        return this.#startMissing(step.target, desired, step.name === 'waking');
      case 'switching':
        return this.#switchTo(desired, step.deployment);
      case 'observing':
        return this.#observeCurrent(desired);
      case 'fallingAsleep':
        return this.#fallAsleep(step.deployment);
      case 'stopping':
        return this.#stopAll(desired);
    }
  }

  /** When nothing is left to do before it is woken. */
  async #reportIfAsleep(): Promise<void> {
    await this.#reports.observed();
    if (this.#steps !== undefined || this.#handlers.areEnding) return;
    if (!this.#isAwake && this.#routed.kind === 'asleep') this.#host.asleep(this.#proven);
  }

  /** Whether requests go to a process: one may run and not be told of, because it is to be replaced already. */
  get #isServing(): boolean {
    return this.#handlers.all.length > 0 && this.#routed.kind === 'running';
  }

  async #stopAll(desired: DesiredState): Promise<void> {
    const old = this.#handlers.keepOnly([]);
    clearTimeout(this.#stable);
    await this.#route({ kind: 'none' });
    await Promise.all(
      old.map(async ({ process }) => {
        await this.#host.drained(process);
        await process.stop();
      }),
    );
    await this.#observe(desired, 'stopped');
  }

  /** Requests that come from now on wake it, at once if need be: they do not wait until others are finished. */
  async #fallAsleep({ sticky }: DesiredDeployment): Promise<void> {
    const old = this.#handlers.keepOnly([]);
    clearTimeout(this.#stable);
    await this.#route({ kind: 'asleep', ...(sticky && { sticky }) });
    this.#reports.outdate();
    for (const { process } of old) this.#handlers.retire(process);
  }

  async #startMissing(target: DeployedTarget, settings: DesiredState, isWaking: boolean): Promise<void> {
    const { version, artifact } = target;
    // Requests to one that was asleep wait for it.
    if (this.#handlers.all.length === 0 && !isWaking) await this.#route({ kind: 'starting' });
    if (!isProcessOf(target, settings, this.#desired)) return; // no longer
    const isWoken = isWaking && this.#proven === this.#desired.deployment?.id;
    const start = new PendingStart(target, settings, (abandoned) =>
      this.#host.start(artifact, settings, version, isWoken, abandoned),
    );
    this.#start = start;
    const process = await start.outcome;
    // What is desired now does not wait for it.
    if (!process || start.isAbandoned) return;
    this.#crashes.started(version);
    this.#handlers.add({ version, artifact, settings, process, mustReplace: false });
    void process.ended.then((reason) => this.#ended(process, reason));
    // Set before anything is awaited: a crash, which may come at any moment, clears it.
    clearTimeout(this.#stable);
    this.#stable = setTimeout(() => void this.#becameStable(), STABLE_MS);
  }

  /** Sends requests to the handlers of a deployment, which all run, and lets others finish. */
  async #switchTo(desired: DesiredState, deployment: DesiredDeployment): Promise<void> {
    const { all } = this.#handlers;
    const kept = deployment.targets.flatMap((target) => runningOf(all, target, desired) ?? []);
    await this.#route(routedTo(all, desired, deployment));
    this.#proven = deployment.id;
    this.idle.used(performance.now());
    // Those that were added or have crashed meanwhile are not among those that were replaced.
    for (const { process } of this.#handlers.keepOnly(kept)) this.#handlers.retire(process);
    if (!kept.every((running) => this.#handlers.all.includes(running))) return; // crashed already
    // After a crash loop it counts as running only once it is stable.
    if (this.#crashes.loop === undefined) await this.#observe(desired, 'running');
    else this.#reports.leaveObserved(desired.revision);
  }

  async #route(serving: Serving): Promise<void> {
    await this.#host.route(serving);
    this.#routed = serving;
  }

  #ended(process: HandlerProcess, reason: string): void {
    const crashed = this.#handlers.remove(process);
    if (!crashed) return;
    clearTimeout(this.#stable);
    this.#reports.outdate();
    this.#crashes.add();
    this.#host.restarted('crash', crashed.version);
    const text = withOutput(`The handler crashed: ${reason}.`, process.lastLines());
    if (this.#crashes.areMany) this.#crashes.setError(crashed.version, text);
    this.#host.log.warn({ reason, crashes: this.#crashes.count }, 'handler crashed');
    this.#host.failed(crashed.version, `The handler crashed: ${reason}.`);
    void process.stop(); // removes its child processes and its socket
    if (this.#crashes.count > 1) this.#backOff();
    if (this.#crashes.areMany) void this.#enterCrashLoop(this.#namingVersion(crashed.version, text));
    this.#reconcile();
  }

  async #startFailed(desired: DesiredState, error: Error, version: number | null): Promise<void> {
    this.#host.log.warn(
      { err: error, deployment_id: desired.deployment?.id },
      'handler could not be started',
    );
    this.#crashes.add();
    this.#host.failed(version, error.message);
    // The previous handlers keep running; without one, requests need not wait. Those that wait for one that slept when
    // another deployment came get that one, because a deployment that fails at once is taken back.
    const willBeReverted =
      this.#routed.kind === 'asleep' && this.#proven !== desired.deployment?.id && this.#crashes.count === 1;
    if (!this.#isServing && !willBeReverted) await this.#route({ kind: 'none' });
    if (this.#desired !== desired) return;
    // A start that fails is an error of the endpoint; it is tried again.
    this.#isInError = true;
    this.#backOff();
    if (version !== null) this.#crashes.setError(version, error.message);
    const text = this.#namingVersion(version, error.message);
    await this.#observeFailed(text);
    if (this.#crashes.areMany) await this.#enterCrashLoop(text);
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
    // Before anything is awaited: a process started meanwhile has to become stable first.
    const isNew = this.#crashes.enterLoop(error);
    if (!this.#isServing) await this.#route({ kind: 'none' });
    // A newer desired state has not crashed yet.
    if (this.#desired !== desired) return;
    await this.#observeFailed(error);
    // It may have recovered while that was saved.
    if (!isNew || this.#desired !== desired || this.#crashes.loop === undefined) return;
    this.#host.log.warn({ deployment_id: deployment.id }, 'handler is in a crash loop');
    this.#isInError = true;
    await this.#reports.writeCrashes(() => this.#host.saveCrashLoop(deployment, revision, error));
  }

  async #becameStable(): Promise<void> {
    const { deployment } = this.#desired;
    // Others may serve only because what is desired cannot be started.
    if (!deployment || !servesAsDesired(this.#situation)) return;
    const wasLoop = this.#crashes.loop !== undefined;
    this.#crashes.forget();
    if (!wasLoop && !this.#isInError) return;
    await this.#observe(this.#desired, 'running');
    this.#isInError = false;
    await this.#reports.writeCrashes(() => this.#host.saveRecovery(deployment));
  }

  #backOff(): void {
    this.#crashes.backOff(() => this.#reconcile());
  }

  /** A handler in a crash loop is observed as failed, even while it happens to run. */
  async #observeCurrent(desired: DesiredState): Promise<void> {
    const { loop } = this.#crashes;
    if (loop === undefined) await this.#observe(desired, 'running');
    else await this.#observe(desired, 'failed', loop);
  }

  /** When only a replacement failed, with other limits for example, the deployment still runs. */
  async #observeFailed(error: string): Promise<void> {
    const { deployment } = this.#desired;
    const runs = deployment?.targets.every(({ version, artifact }) =>
      this.#handlers.all.some((running) => running.version === version && running.artifact === artifact),
    );
    await this.#observe(this.#desired, runs && this.#isServing ? 'running' : 'failed', error);
  }

  async #observe(desired: DesiredState, state: ObservedState, error: string | null = null): Promise<void> {
    const routed = this.#routed.kind === 'running' ? this.#routed.targets : [];
    const targets = [...routed].sort((left, right) => right.weight - left.weight);
    const serving = targets.flatMap(({ instance }) => this.#handlers.byInstance(instance.id) ?? []);
    await this.#reports.observe({
      state,
      revision: desired.revision,
      serving: serving.map(({ version, process }) => ({ version, pid: process.pid })),
      versions: this.#versionStates(desired.deployment?.targets ?? []),
      error,
    });
    if (state === 'running') this.idle.observed();
  }

  #versionStates(targets: readonly DeployedTarget[]): VersionState[] {
    return targets.map(({ version }) => {
      const error = this.#crashes.errorOf(version);
      const runs = this.#handlers.all.some((running) => running.version === version);
      return { version, state: error !== null ? 'failed' : runs ? 'running' : 'starting', error };
    });
  }
}
