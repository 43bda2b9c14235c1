/** The supervisor: runs the handlers of this node, and sends the routes to the front. */
import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import pTimeout from 'p-timeout';
import { Counter, type Registry } from 'prom-client';
import {
  type LimitSettings,
  type LimitsInForce,
  limitsAbove,
  limitsInForce,
} from '../model/endpoint-limits.js';
import type { Changes } from '../reconcile/changes.js';
import { Reconciler, type RowChange } from '../reconcile/reconciler.js';
import type { Store } from '../store/database.js';
import {
  endpointChangeCounts,
  type RoutedEndpoint,
  reportCrashLoop,
  reportRecovery,
  routedEndpoints,
} from '../store/endpoint-runs.js';
import { saveObservation } from '../store/observations.js';
import { addRequests } from '../store/request-counters.js';
import type { Logger } from '../util/log.js';
import { PeriodicTask } from '../util/periodic-task.js';
import type { ArtifactCache } from './artifact-cache.js';
import type { EndpointLog } from './endpoint-log.js';
import { EndpointRunner, type EndpointRunnerHost } from './endpoint-runner.js';
import { type Environments, explainStart } from './environments.js';
import type { Front } from './front.js';
import {
  type HandlerListeners,
  type HandlerProcess,
  type HandlerSettings,
  type ServiceAccess,
  startHandler,
} from './handler-process.js';
import type { EndpointState, ServingState } from './messages.js';
import type { MinuteFigures } from './minute-figures.js';
import type { ProcessSettings } from './process-settings.js';

/** Dependencies of a supervisor. */
export interface SupervisorOptions {
  readonly store: Store;
  readonly changes: Changes;
  readonly front: Front;
  readonly artifacts: ArtifactCache;
  readonly environments: Environments;
  readonly nodeId: string;
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
/** After the deadline of its last request, the front needs a moment to notice. */
const DRAIN_SLACK_MS = 2_000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #endpoints: Reconciler<RoutedEndpoint, EndpointRunner>;
  readonly #serving = new Map<string, ServingState>();
  readonly #starts = pLimit(CONCURRENT_STARTS);
  readonly #restarts: Counter<'endpoint' | 'reason'>;
  readonly #counting: PeriodicTask;
  #nextInstance = 1;
  #uncounted = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { store, changes, log } = options;
    this.#restarts = new Counter({
      name: 'edge_gateway_handler_restarts_total',
      help: 'Handler processes replaced because they crashed or ran over a deadline',
      labelNames: ['endpoint', 'reason'],
      registers: [options.registry],
    });
    this.#endpoints = new Reconciler<RoutedEndpoint, EndpointRunner>({
      changes,
      topic: 'endpoint',
      readVersions: () => endpointChangeCounts(store),
      readRows: (ids) => routedEndpoints(store, ids),
      apply: (changed) => this.#apply(changed),
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
    await this.#endpoints.stop();
    await this.#saveCount();
  }

  /** Routes first: a handler reports to its endpoint. */
  async #apply(changes: readonly RowChange<RoutedEndpoint>[]): Promise<void> {
    const changed: EndpointState[] = [];
    const removed: string[] = [];
    for (const { id, before, after } of changes) {
      if (after && !(before && sameRouting(before, after))) changed.push(this.stateOf(after));
      if (before && !after) removed.push(id);
    }
    if (changed.length > 0 || removed.length > 0) await this.#options.front.apply(changed, removed);
    for (const { id, after } of changes) {
      if (after) this.#run(after);
      else void this.#endpoints.remove(id).then(() => this.#forget(id));
    }
  }

  #forget(id: string): void {
    this.#serving.delete(id);
    this.#options.environments.forget(id);
  }

  #run(endpoint: RoutedEndpoint): void {
    const { id, deployment, environment, version: revision, stopped } = endpoint;
    const { runners, isSynced } = this.#endpoints;
    const runner = runners.get(id);
    const desired = { deployment, revision, environment, limits: this.#limitsOf(endpoint) };
    if (runner) runner.setDesired(desired);
    // The request that stopped it waits until this gateway observes, too, that nothing runs. Not for all endpoints that
    // were ever stopped when a gateway starts: a request that still waits then announces the endpoint again.
    else if (deployment !== null || (stopped && isSynced))
      runners.set(id, new EndpointRunner(this.#hostOf(id), desired));
  }

  /** Starts a handler beside those that serve. @param onLine called with each line that it prints */
  startBeside(
    endpoint: RoutedEndpoint,
    artifact: string,
    onLine: (line: string) => void,
  ): Promise<HandlerProcess> {
    const settings = { limits: this.#limitsOf(endpoint), environment: endpoint.environment };
    return this.#starts(() => this.#start(endpoint.id, artifact, settings, endpoint, { onLine }));
  }

  /** An endpoint as the front knows it. */
  stateOf(endpoint: RoutedEndpoint): EndpointState {
    const { id, domain, method, route, routed } = endpoint;
    const { timeout_ms: timeoutMs, concurrent_requests: concurrentRequests } = this.#limitsOf(endpoint);
    const serving = this.#serving.get(id) ?? { kind: 'none' };
    return { id, domain, method, route, routed, limits: { timeoutMs, concurrentRequests }, serving };
  }

  #limitsOf({ limits }: RoutedEndpoint): LimitsInForce {
    return limitsInForce(limits, this.#options.limits);
  }

  #hostOf(endpointId: string): EndpointRunnerHost {
    const { store, front, nodeId, limits } = this.#options;
    return {
      log: this.#options.log.child({ endpoint_id: endpointId }),
      start: (artifact, settings, version) => {
        const { endpointLog, figures } = this.#options;
        return this.#starts(() =>
          this.#start(endpointId, artifact, settings, undefined, {
            onEntry: (entry) => endpointLog.output(endpointId, version, entry),
            onUse: (cpuSeconds, bytes) => figures.used(endpointId, version, cpuSeconds, bytes),
          }),
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
      saveObservation: (observation) =>
        saveObservation(store, { node_id: nodeId, endpoint_id: endpointId, ...observation }),
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
    endpoint = this.#endpoints.rows.get(endpointId),
    listeners: HandlerListeners = {},
  ): Promise<HandlerProcess> {
    const { artifacts, environments, runDir, services, handlers: settings } = this.#options;
    const executable = await artifacts.get(artifact);
    const variables = await environments.of(endpointId, environment);
    const started = performance.now();
    const above = limitsAbove(endpoint?.limits ?? null, limits);
    // Its lines carry the id of the API call that asked for it.
    const request_id = endpoint?.deployment?.request_id;
    const handlerLog = this.#options.log.child({ request_id, endpoint_id: endpointId });
    if (above.length > 0)
      handlerLog.warn(
        { limits: above },
        'limits of the endpoint are above those of this gateway, which count',
      );
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
    }).catch((error: unknown) => {
      throw explainStart(error);
    });
    const ms = Math.round(performance.now() - started);
    handlerLog.info({ handler_pid: handler.pid, artifact, ms }, 'handler ready');
    return handler;
  }

  async #saveCount(): Promise<void> {
    const requests = this.#uncounted;
    if (requests === 0) return;
    this.#uncounted = 0;
    try {
      await addRequests(this.#options.store, this.#options.nodeId, requests);
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
