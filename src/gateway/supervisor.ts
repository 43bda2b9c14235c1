/** The supervisor: runs the handlers of this node, and sends the routes to the front. */
import pTimeout from 'p-timeout';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Serving } from '../contracts/front.js';
import { isKeptAwake, type LimitsInForce, limitsInForce } from '../model/endpoint-limits.js';
import { ownerOfEndpoint } from '../model/owner.js';
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
import { saveObservations } from '../store/observations.js';
import { addRequests } from '../store/request-counters.js';
import { readRowsDigest } from '../store/rows-digest.js';
import type { Threads } from '../threads/threads.js';
import { mapInParts } from '../util/pauses.js';
import { PeriodicTask } from '../util/periodic-task.js';
import { compactEndpoint, type KnownEndpoint, sameRouting } from './compact-endpoint.js';
import type { Front } from './front/front.js';
import type { EndpointState } from './front/messages.js';
import type { HandlerListeners } from './handlers/handler-process.js';
import { HandlerStarts, type HandlerStartsOptions } from './handlers/handler-starts.js';
import type { PreparedHandlers } from './handlers/prepared-handlers.js';
import type { InvocationsOptions } from './invocations.js';
import type { EndpointLog } from './log/endpoint-log.js';
import { ObservationWriter } from './observation-writer.js';
import { PoliciesInForce, type PoliciesInForceOptions } from './policies/policies-in-force.js';
import { extractValidate } from './policies/validate-texts.js';
import { EndpointRunner } from './runner/endpoint-runner.js';
import type { Beginning, EndpointRunnerHost } from './runner/runner-host.js';
import { IdleHandlers } from './sleep/idle-handlers.js';
import { readMemory } from './sleep/machine-memory.js';
import { SleepingEndpoints } from './sleep/sleeping-endpoints.js';
import type { MinuteFigures } from './telemetry/minute-figures.js';

/** Dependencies of a supervisor. */
export interface SupervisorOptions
  extends Omit<HandlerStartsOptions, 'endpointOf'>,
    Pick<PoliciesInForceOptions, 'policyBytes'> {
  readonly store: Store;
  readonly changes: Changes;
  readonly front: Front;
  readonly node: Pick<NodeRegistration, 'id' | 'renew'>;
  readonly registry: Registry;
  /** What handlers say. */
  readonly endpointLog: Pick<EndpointLog, 'output'>;
  /** What they use. */
  readonly figures: Pick<MinuteFigures, 'used' | 'restarted'>;
  /** Threads for policies that take long to compile. */
  readonly threads: Threads;
  /** How long the front lets streams of a replaced handler go on. */
  readonly streamDrainMs: number;
}

const COUNT_EVERY_MS = 1_000;
/** After the deadline of its last request, the front needs a moment to notice. */
const DRAIN_SLACK_MS = 2_000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #endpoints: Reconciler<KnownEndpoint, EndpointRunner>;
  /** What runners have told the front. Endpoints that should run and have no runner are asleep. */
  readonly #serving = new Map<string, Serving>();
  readonly #policies: PoliciesInForce;
  readonly #observations: ObservationWriter;
  readonly #sleeping: SleepingEndpoints;
  readonly #idle: IdleHandlers;
  /** The deployment that last served an endpoint that fell asleep; its row may still say that it is unconfirmed. */
  readonly #servedBefore = new Map<string, string>();
  /** What handlers had in memory when that was read last, by endpoint. */
  readonly #bytes = new Map<string, number>();
  readonly #starts: HandlerStarts;
  readonly #restarts: Counter<'endpoint' | 'reason'>;
  readonly #counting: PeriodicTask;
  #uncounted = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { store, changes, front, log } = options;
    const readAgain = (id: string) => this.#endpoints.refresh(id);
    this.#policies = new PoliciesInForce({ ...options, readAgain });
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
      readRows: async (ids) =>
        mapInParts(await routedEndpoints(store, ids), (row) => compactEndpoint(extractValidate(row))),
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
    this.#starts = new HandlerStarts({ ...options, endpointOf: (id) => this.#endpoints.rows.get(id) });
    this.#counting = new PeriodicTask(
      COUNT_EVERY_MS,
      () => this.#saveCount(),
      (error) => log.warn({ err: error }, 'counting requests failed'),
    );
  }

  /** Handlers that are started for applies. */
  get prepared(): PreparedHandlers {
    return this.#starts.prepared;
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
    else if (endpoint?.deployment) {
      const { id, confirmed } = endpoint.deployment;
      const hasServed = confirmed || this.#servedBefore.get(endpointId) === id;
      this.#addRunner(endpoint, hasServed ? 'woken' : 'asleep');
    }
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
    const haveOtherPolicies = await this.#policies.update(changes.flatMap(({ after }) => after ?? []));
    for (const { id, before, after } of changes) {
      const isSame = before && after && sameRouting(before, after) && !haveOtherPolicies.has(id);
      if (after && !isSame) changed.push(this.stateOf(after));
      if (before && !after) removed.push(id);
    }
    if (changed.length > 0 || removed.length > 0) await this.#options.front.apply(changed, removed);
    this.#policies.sent(haveOtherPolicies);
    for (const { id, before, after } of changes) {
      if (after) this.#run(after, before);
      else {
        // At once: an endpoint with this id can come back, by an undo, before the last request of this one has ended.
        this.#forget(id);
        void this.#endpoints.remove(id);
      }
    }
  }

  /** A token has a key that is not known. */
  unknownKey(endpointId: string): void {
    this.#policies.unknownKey(endpointId);
  }

  #forget(id: string): void {
    this.#serving.delete(id);
    this.#policies.forget(id);
    this.#servedBefore.delete(id);
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
    let runner: EndpointRunner | undefined;
    // It may act before it is known here.
    const isCurrent = () => runner === undefined || runners.get(id) === runner;
    const host = this.#hostOf(id, isCurrent, (deployment) => {
      if (!isCurrent()) return;
      runners.delete(id);
      if (deployment !== undefined) this.#servedBefore.set(id, deployment);
      this.#serving.delete(id);
      this.#bytes.delete(id);
      this.#sleeping.add(id);
    });
    runner = new EndpointRunner(host, this.#desiredOf(endpoint), beginning, endpoint.failed);
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

  /** Starts a handler beside those that serve. */
  readonly startBeside: InvocationsOptions['start'] = (endpoint, artifact, onLine, abandoned) => {
    const settings = { limits: this.#limitsOf(endpoint), environment: endpoint.environment };
    const handler = { artifact, settings, listeners: { onLine }, level: 'info', abandoned } as const;
    return this.#starts.startBeside(endpoint, handler);
  };

  /** The ids of all endpoints. */
  endpointIds(): Iterable<string> {
    return this.#endpoints.rows.keys();
  }

  /** Who shares room with others for what an endpoint writes. */
  ownerOf(id: string): string | undefined {
    const endpoint = this.#endpoints.rows.get(id);
    return endpoint && ownerOfEndpoint(endpoint);
  }

  /** An endpoint as the front knows it. */
  stateOfId(id: string): EndpointState | undefined {
    const endpoint = this.#endpoints.rows.get(id);
    return endpoint && this.stateOf(endpoint);
  }

  /** An endpoint as the front is to know it. */
  stateOf(endpoint: RoutedEndpoint): EndpointState {
    const { id, domain, method, route, routed, deployment } = endpoint;
    const {
      timeout_ms: timeoutMs,
      idle_timeout_ms: idleTimeoutMs,
      concurrent_requests: concurrentRequests,
    } = this.#limitsOf(endpoint);
    const sticky = deployment?.sticky;
    const unserved: Serving = deployment ? { kind: 'asleep', ...(sticky && { sticky }) } : { kind: 'none' };
    const serving = this.#serving.get(id) ?? unserved;
    const policies = this.#policies.of(id);
    const limits = {
      timeoutMs: Math.min(timeoutMs, policies?.timeout ?? timeoutMs),
      idleTimeoutMs,
      concurrentRequests,
    };
    return { id, domain, method, route, routed, limits, ...(policies && { policies }), serving };
  }

  #limitsOf({ limits }: RoutedEndpoint): LimitsInForce {
    return limitsInForce(limits, this.#options.limits);
  }

  /**
   * @param isCurrent false when the endpoint was deleted: what its runner still does is not that of one that has come
   *   back with this id
   * @param asleep called when its runner is not needed until the next request
   */
  #hostOf(
    endpointId: string,
    isCurrent: () => boolean,
    asleep: EndpointRunnerHost['asleep'],
  ): EndpointRunnerHost {
    const { store, front, limits, streamDrainMs } = this.#options;
    return {
      asleep,
      log: this.#options.log.child({ endpoint_id: endpointId }),
      start: (artifact, settings, version, isWoken, abandoned) => {
        const { endpointLog, figures } = this.#options;
        const listeners: HandlerListeners = {
          onEntry: (entry) => endpointLog.output(endpointId, version, entry),
          onUse: (cpuSeconds, bytes) => {
            if (isCurrent()) this.#bytes.set(endpointId, bytes);
            figures.used(endpointId, version, cpuSeconds, bytes);
          },
        };
        const level = isWoken ? 'debug' : 'info';
        return this.#starts.start({ endpointId, artifact, settings, listeners, level, abandoned });
      },
      route: async (serving) => {
        if (!isCurrent()) return;
        this.#serving.set(endpointId, serving);
        const endpoint = this.#endpoints.rows.get(endpointId);
        if (endpoint) await front.apply([this.stateOf(endpoint)]);
      },
      drained: ({ instance }) =>
        pTimeout(front.drained(instance.id), {
          milliseconds: Math.max(limits.REQUEST_TIMEOUT_MS, streamDrainMs) + DRAIN_SLACK_MS,
          fallback: () => undefined,
        }),
      saveObservation: async (observation) => {
        if (isCurrent()) await this.#observations.write({ endpoint_id: endpointId, ...observation });
      },
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
