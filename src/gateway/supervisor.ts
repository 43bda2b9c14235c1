/** The supervisor: runs the handlers of this node, and sends the routes to the front. */
import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import pTimeout from 'p-timeout';
import { Counter, Gauge, type Registry } from 'prom-client';
import {
  isKeptAwake,
  type LimitSettings,
  type LimitsInForce,
  limitsAbove,
  limitsInForce,
} from '../model/endpoint-limits.js';
import type { Changes } from '../reconcile/changes.js';
import type { NodeRegistration } from '../reconcile/nodes.js';
import { Reconciler, type RowChange } from '../reconcile/reconciler.js';
import type { Store } from '../store/database.js';
import {
  endpointChangeCounts,
  type RoutedEndpoint,
  reportCrashLoop,
  reportRecovery,
  routedEndpoints,
} from '../store/endpoint-runs.js';
import { wantKeySet } from '../store/key-sets.js';
import { saveObservations } from '../store/observations.js';
import { addRequests } from '../store/request-counters.js';
import { readRowsDigest } from '../store/rows-digest.js';
import type { Logger } from '../util/log.js';
import { PeriodicTask } from '../util/periodic-task.js';
import type { ArtifactCache } from './artifact-cache.js';
import { compactEndpoint, type KnownEndpoint } from './compact-endpoint.js';
import type { CompiledPolicies } from './compiled-policies.js';
import type { EndpointLog } from './endpoint-log.js';
import { EndpointRunner } from './endpoint-runner.js';
import { type Environments, explainStart } from './environments.js';
import type { Front } from './front.js';
import {
  type HandlerListeners,
  type HandlerProcess,
  type HandlerSettings,
  type ServiceAccess,
  startHandler,
} from './handler-process.js';
import { IdleHandlers } from './idle-handlers.js';
import { readMemory } from './machine-memory.js';
import type { EndpointState, ServingState } from './messages.js';
import type { MinuteFigures } from './minute-figures.js';
import { ObservationWriter } from './observation-writer.js';
import { hasPolicies, PolicyCompiler } from './policy-compiler.js';
import { type HandlerStart, PreparedHandlers } from './prepared-handlers.js';
import type { ProcessSettings } from './process-settings.js';
import type { Beginning, EndpointRunnerHost } from './runner-host.js';
import { SleepingEndpoints } from './sleeping-endpoints.js';

/** Dependencies of a supervisor. */
export interface SupervisorOptions {
  readonly store: Store;
  readonly changes: Changes;
  readonly front: Front;
  readonly artifacts: ArtifactCache;
  readonly environments: Environments;
  readonly node: Pick<NodeRegistration, 'id' | 'renew'>;
  /** Folder for the sockets of handlers. */
  readonly runDir: string;
  /** How handlers reach backend services. */
  readonly services: ServiceAccess;
  /** Settings of all handlers. */
  readonly handlers: HandlerSettings;
  /** Limits of handlers, where their endpoints set no lower ones. */
  readonly limits: LimitSettings;
  readonly registry: Registry;
  /** What handlers say. */
  readonly endpointLog: Pick<EndpointLog, 'output'>;
  /** What they use. */
  readonly figures: Pick<MinuteFigures, 'used' | 'restarted'>;
  readonly log: Logger;
}

const COUNT_EVERY_MS = 1_000;
/** Handlers started at a time when many should run, as after a restart of the machine. */
const CONCURRENT_STARTS = 8;
/** A start that takes longer does not count among those. */
const SLOW_START_MS = 500;
/** After the deadline of its last request, the front needs a moment to notice. */
const DRAIN_SLACK_MS = 2_000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #endpoints: Reconciler<KnownEndpoint, EndpointRunner>;
  /** What runners have told the front. Endpoints that should run and have no runner are asleep. */
  readonly #serving = new Map<string, ServingState>();
  /** Of those that have some, by endpoint. */
  readonly #policies = new Map<string, CompiledPolicies>();
  readonly #observations: ObservationWriter;
  readonly #sleeping: SleepingEndpoints;
  readonly #idle: IdleHandlers;
  /** What handlers had in memory when that was read last, by endpoint. */
  readonly #bytes = new Map<string, number>();
  /** For applies. */
  readonly prepared: PreparedHandlers;
  readonly #starts = pLimit(CONCURRENT_STARTS);
  readonly #restarts: Counter<'endpoint' | 'reason'>;
  readonly #counting: PeriodicTask;
  #nextInstance = 1;
  #uncounted = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { store, changes, front, log } = options;
    this.#observations = new ObservationWriter((observations) =>
      saveObservations(store, options.node.id, observations),
    );
    this.#sleeping = new SleepingEndpoints({
      revisionOf: (id) => (this.#isAsleep(id) ? this.#endpoints.rows.get(id)?.version : undefined),
      write: (observations) => this.#observations.write(...observations),
      log,
    });
    this.#restarts = new Counter({
      name: 'edge_gateway_handler_restarts_total',
      help: 'Handler processes replaced because they crashed or ran over a deadline',
      labelNames: ['endpoint', 'reason'],
      registers: [options.registry],
    });
    const asleep: Gauge = new Gauge({
      name: 'edge_gateway_endpoints_asleep',
      help: 'Endpoints that should run and whose handlers are ended until the next request',
      registers: [options.registry],
      collect: () => asleep.set(this.#sleepingIds().length),
    });
    this.#endpoints = new Reconciler<KnownEndpoint, EndpointRunner>({
      changes,
      topic: 'endpoint',
      renew: () => options.node.renew(),
      readVersions: () => endpointChangeCounts(store),
      readDigest: () => readRowsDigest(store, 'endpoints'),
      readRows: async (ids) => (await routedEndpoints(store, ids)).map(compactEndpoint),
      apply: (changed) => this.#apply(changed),
      log,
    });
    this.#idle = new IdleHandlers({
      runners: this.#endpoints.runners,
      idleMs: (ids) => front.idleMs(ids),
      readMemory,
      bytesOf: (id) => this.#bytes.get(id) ?? 0,
      log,
    });
    this.prepared = new PreparedHandlers({
      start: (wanted, listeners, abandoned) =>
        this.#inTurn(() =>
          this.#launch(wanted, this.#handlerLog(wanted.endpointId), listeners, 'info', abandoned),
        ),
      limitsOf: (limits) => limitsInForce(limits, options.limits),
      decrypted: (variable) => options.environments.valueOf(variable),
      log,
    });
    this.#counting = new PeriodicTask(
      COUNT_EVERY_MS,
      () => this.#saveCount(),
      (error) => log.warn({ err: error }, 'counting requests failed'),
    );
  }

  /** Reads all endpoints, and sends them to the front. */
  async start(): Promise<void> {
    await this.#endpoints.resync();
  }

  /** Writes all observations again. */
  saveAgain(): void {
    this.#endpoints.saveAgain();
    for (const id of this.#sleepingIds()) this.#sleeping.add(id);
  }

  /** A request waits for a handler of an endpoint that is asleep. */
  wake(endpointId: string): void {
    const runner = this.#endpoints.runners.get(endpointId);
    const endpoint = this.#endpoints.rows.get(endpointId);
    if (runner) runner.wake();
    else if (endpoint?.deployment)
      this.#addRunner(endpoint, endpoint.deployment.confirmed ? 'woken' : 'asleep');
    // The front does not know yet that nothing should run any more.
    else if (endpoint) void this.#options.front.apply([this.stateOf(endpoint)]);
    this.#idle.woken();
  }

  /** A request ran over its deadline. */
  deadlineExceeded(endpointId: string, instanceId: number): void {
    this.#endpoints.runners.get(endpointId)?.replace(instanceId);
  }

  /** The front has lost its connection to an instance that should serve. */
  connectionLost(endpointId: string, instanceId: number, reason: string): void {
    this.#endpoints.runners.get(endpointId)?.connectionLost(instanceId, reason);
  }

  /** Handlers answered so many requests. */
  handled(requests: number): void {
    this.#uncounted += requests;
  }

  /** Stops all handlers. The front must have been stopped before, so that no request is lost. */
  async stop(): Promise<void> {
    await this.#counting.stop();
    await this.#idle.stop();
    await this.prepared.stop();
    await this.#endpoints.stop();
    await this.#sleeping.stop();
    await this.#saveCount();
  }

  /** Routes first: a handler reports to its endpoint. */
  async #apply(changes: readonly RowChange<KnownEndpoint>[]): Promise<void> {
    const changed: EndpointState[] = [];
    const removed: string[] = [];
    const havePoliciesChanged = await this.#compilePolicies(changes.flatMap(({ after }) => after ?? []));
    for (const { id, before, after } of changes) {
      const isSame = before && after && sameRouting(before, after) && !havePoliciesChanged.has(id);
      if (after && !isSame) changed.push(this.stateOf(after));
      if (before && !after) removed.push(id);
    }
    if (changed.length > 0 || removed.length > 0) await this.#options.front.apply(changed, removed);
    for (const { id, before, after } of changes) {
      if (after) this.#run(after, before);
      else void this.#endpoints.remove(id).then(() => this.#forget(id));
    }
  }

  /** @returns the endpoints whose policies are others than before */
  async #compilePolicies(endpoints: readonly KnownEndpoint[]): Promise<Set<string>> {
    const changed = new Set<string>();
    const { store, environments } = this.#options;
    const compiler = new PolicyCompiler(store, environments);
    // All before any counts: one that cannot be read fails the whole change, which is tried again.
    const compiled: [string, CompiledPolicies | undefined][] = [];
    for (const endpoint of endpoints)
      if (hasPolicies(endpoint) || this.#policies.has(endpoint.id))
        compiled.push([endpoint.id, await compiler.compile(endpoint)]);
    for (const [id, after] of compiled) {
      const before = this.#policies.get(id);
      if (before?.digest === after?.digest) continue;
      changed.add(id);
      if (after) this.#policies.set(id, after);
      else this.#policies.delete(id);
      if (after?.broken !== undefined)
        this.#options.log.warn({ endpoint_id: id, error: after.broken }, 'a policy lets nobody in');
    }
    return changed;
  }

  /** A token has a key that is not known: its issuer may have a new one. */
  unknownKey(endpointId: string): void {
    const url = this.#policies.get(endpointId)?.auth?.jwt?.jwks_url;
    if (url === undefined) return;
    wantKeySet(this.#options.store, url).catch((error: unknown) =>
      this.#options.log.warn({ err: error, url }, 'keys of an issuer could not be asked for'),
    );
  }

  #forget(id: string): void {
    this.#serving.delete(id);
    this.#policies.delete(id);
    this.#bytes.delete(id);
    this.#options.environments.forget(id);
  }

  #run(endpoint: RoutedEndpoint, before: RoutedEndpoint | undefined): void {
    const { id, deployment, stopped } = endpoint;
    const { runners, isSynced } = this.#endpoints;
    const runner = runners.get(id);
    if (runner) runner.setDesired(this.#desiredOf(endpoint));
    // The request that stopped it waits until this gateway observes, too, that nothing runs. Not for all endpoints that
    // were ever stopped when a gateway starts: a request that still waits then announces the endpoint again.
    else if (deployment === null) {
      if (stopped && isSynced) this.#addRunner(endpoint, 'stopped');
    } else if (this.#needsHandler(endpoint, before)) {
      const wasAsleep = before === undefined || before.deployment !== null;
      this.#addRunner(endpoint, wasAsleep ? 'asleep' : 'stopped');
    } else {
      this.#sleeping.add(id);
    }
  }

  /**
   * Whether its handlers are started without a request: those that somebody has just asked for, and when a gateway
   * starts, those that did not run when it was last tried.
   */
  #needsHandler(endpoint: RoutedEndpoint, before: RoutedEndpoint | undefined): boolean {
    if (isKeptAwake(this.#limitsOf(endpoint))) return true;
    if (before) return before.deployment?.id !== endpoint.deployment?.id;
    return endpoint.failed || endpoint.deployment?.confirmed === false;
  }

  #addRunner(endpoint: RoutedEndpoint, beginning: Beginning): void {
    const { id } = endpoint;
    const { runners } = this.#endpoints;
    const host = this.#hostOf(id, () => {
      if (runners.get(id) !== runner) return;
      runners.delete(id);
      this.#serving.delete(id);
      this.#bytes.delete(id);
      this.#sleeping.add(id);
    });
    const runner = new EndpointRunner(host, this.#desiredOf(endpoint), beginning, endpoint.failed);
    runners.set(id, runner);
  }

  #desiredOf(endpoint: RoutedEndpoint) {
    const { deployment, environment, version: revision } = endpoint;
    return { deployment, revision, environment, limits: this.#limitsOf(endpoint) };
  }

  #isAsleep(id: string): boolean {
    return !this.#endpoints.runners.has(id) && (this.#endpoints.rows.get(id)?.deployment ?? null) !== null;
  }

  #sleepingIds(): string[] {
    return [...this.#endpoints.rows.keys()].filter((id) => this.#isAsleep(id));
  }

  /** Starts a handler beside those that serve. @param onLine called with each line that it prints */
  startBeside(
    endpoint: RoutedEndpoint,
    artifact: string,
    onLine: (line: string) => void,
  ): Promise<HandlerProcess> {
    const settings = { limits: this.#limitsOf(endpoint), environment: endpoint.environment };
    return this.#inTurn(() => this.#start(endpoint.id, artifact, settings, endpoint, { onLine }));
  }

  /** Only so many start at a time; one that takes long, which costs the machine nothing, keeps no others waiting. */
  #inTurn(start: () => Promise<HandlerProcess>): Promise<HandlerProcess> {
    return new Promise((resolve, reject) => {
      void this.#starts(() => {
        const starting = start();
        starting.then(resolve, reject);
        return pTimeout(starting, { milliseconds: SLOW_START_MS, fallback: () => undefined }).catch(
          () => undefined, // told to whom has asked for it
        );
      });
    });
  }

  /** Of all endpoints. */
  endpointIds(): Iterable<string> {
    return this.#endpoints.rows.keys();
  }

  /** An endpoint as the front knows it. */
  stateOfId(id: string): EndpointState | undefined {
    const endpoint = this.#endpoints.rows.get(id);
    return endpoint && this.stateOf(endpoint);
  }

  /** An endpoint as the front is to know it. */
  stateOf(endpoint: RoutedEndpoint): EndpointState {
    const { id, domain, method, route, routed, deployment } = endpoint;
    const { timeout_ms: timeoutMs, concurrent_requests: concurrentRequests } = this.#limitsOf(endpoint);
    const sticky = deployment?.sticky;
    const unserved: ServingState = deployment
      ? { kind: 'asleep', ...(sticky && { sticky }) }
      : { kind: 'none' };
    const serving = this.#serving.get(id) ?? unserved;
    const policies = this.#policies.get(id);
    const limits = {
      timeoutMs: Math.min(timeoutMs, policies?.timeout ?? timeoutMs),
      concurrentRequests,
    };
    return { id, domain, method, route, routed, limits, ...(policies && { policies }), serving };
  }

  #limitsOf({ limits }: RoutedEndpoint): LimitsInForce {
    return limitsInForce(limits, this.#options.limits);
  }

  /** @param asleep called when its runner is not needed until the next request */
  #hostOf(endpointId: string, asleep: () => void): EndpointRunnerHost {
    const { store, front, limits } = this.#options;
    return {
      asleep,
      log: this.#options.log.child({ endpoint_id: endpointId }),
      start: (artifact, settings, version, isWoken, abandoned) => {
        const { endpointLog, figures } = this.#options;
        const listeners: HandlerListeners = {
          onEntry: (entry) => endpointLog.output(endpointId, version, entry),
          onUse: (cpuSeconds, bytes) => {
            this.#bytes.set(endpointId, bytes);
            figures.used(endpointId, version, cpuSeconds, bytes);
          },
        };
        const level = isWoken ? 'debug' : 'info';
        return this.#inTurn(() =>
          this.#start(endpointId, artifact, settings, undefined, listeners, level, abandoned),
        );
      },
      route: async (serving) => {
        this.#serving.set(endpointId, serving);
        const endpoint = this.#endpoints.rows.get(endpointId);
        if (endpoint) await front.apply([this.stateOf(endpoint)]);
      },
      drained: ({ instance }) =>
        pTimeout(front.drained(endpointId, instance.id), {
          milliseconds: limits.REQUEST_TIMEOUT_MS + DRAIN_SLACK_MS,
          fallback: () => undefined,
        }),
      saveObservation: (observation) => this.#observations.write({ endpoint_id: endpointId, ...observation }),
      saveCrashLoop: (deployment, revision, error) =>
        reportCrashLoop(store, endpointId, deployment, revision, error),
      saveRecovery: (deployment) => reportRecovery(store, endpointId, deployment),
      restarted: (reason, version) => {
        this.#restarts.inc({ endpoint: endpointId, reason });
        this.#options.figures.restarted(endpointId, version);
      },
      failed: (version, message) =>
        this.#options.endpointLog.output(endpointId, version, {
          ...{ level: 'error', message, requestId: null, fields: { target: 'gateway' } },
        }),
    };
  }

  async #start(
    endpointId: string,
    artifact: string,
    { limits, environment }: ProcessSettings,
    endpoint: RoutedEndpoint | undefined = this.#endpoints.rows.get(endpointId),
    listeners: HandlerListeners = {},
    level: 'info' | 'debug' = 'info',
    abandoned?: AbortSignal,
  ): Promise<HandlerProcess> {
    const variables = await this.#options.environments.of(endpointId, environment);
    const above = limitsAbove(endpoint?.limits ?? null, limits);
    const handlerLog = this.#handlerLog(endpointId, endpoint);
    if (above.length > 0)
      handlerLog.warn(
        { limits: above },
        'limits of the endpoint are above those of this gateway, which count',
      );
    const wanted = { endpointId, artifact, limits, variables };
    // What is tried runs beside what serves.
    const prepared = listeners.onLine ? undefined : this.prepared.take(wanted, listeners);
    if (prepared) {
      handlerLog[level]({ handler_pid: prepared.pid, artifact }, 'handler ready, prepared before');
      return prepared;
    }
    return this.#launch(wanted, handlerLog, listeners, level, abandoned);
  }

  /** Its lines carry the id of the API call that asked for what the endpoint serves. */
  #handlerLog(
    endpointId: string,
    endpoint: RoutedEndpoint | undefined = this.#endpoints.rows.get(endpointId),
  ): Logger {
    const request_id = endpoint?.deployment?.request_id;
    return this.#options.log.child({ request_id, endpoint_id: endpointId });
  }

  async #launch(
    { endpointId, artifact, limits, variables }: HandlerStart,
    handlerLog: Logger,
    listeners: HandlerListeners,
    level: 'info' | 'debug',
    abandoned?: AbortSignal,
  ): Promise<HandlerProcess> {
    const { artifacts, runDir, services, handlers: settings } = this.#options;
    const executable = await artifacts.get(artifact);
    const started = performance.now();
    const handler = await startHandler({
      executable,
      instanceId: this.#nextInstance++,
      runDir,
      endpointId,
      variables,
      services,
      limits,
      settings,
      log: handlerLog,
      listeners,
      abandoned,
    }).catch((error: unknown) => {
      throw explainStart(error);
    });
    const ms = Math.round(performance.now() - started);
    handlerLog[level]({ handler_pid: handler.pid, artifact, ms }, 'handler ready');
    return handler;
  }

  async #saveCount(): Promise<void> {
    const requests = this.#uncounted;
    if (requests === 0) return;
    this.#uncounted = 0;
    try {
      await addRequests(this.#options.store, this.#options.node.id, requests);
    } catch (error) {
      this.#uncounted += requests;
      throw error;
    }
  }
}

function sameRouting(left: RoutedEndpoint, right: RoutedEndpoint): boolean {
  return (
    left.domain === right.domain &&
    left.method === right.method &&
    left.route === right.route &&
    left.routed === right.routed &&
    isDeepStrictEqual(left.limits, right.limits)
  );
}
