/**
 * The supervisor: makes what this node runs the same as what the database says should run. It reads endpoints when
 * they are announced, when it starts, and every few seconds in case an announcement was lost.
 */
import { isDeepStrictEqual } from 'node:util';
import { Counter, type Registry } from 'prom-client';
import { type LimitSettings, type LimitsInForce, limitsAbove, limitsInForce } from '../endpoint-limits.js';
import { toError } from '../errors.js';
import { Limiter } from '../limiter.js';
import type { Logger } from '../log.js';
import { type Changes, Periodically } from '../reconcile/changes.js';
import { Repeater } from '../repeater.js';
import { isUnavailable, type Store } from '../store/database.js';
import {
  endpointVersions,
  type RoutedEndpoint,
  reportCrashLoop,
  reportRecovery,
  routedEndpoints,
} from '../store/endpoint-runs.js';
import { saveObservation } from '../store/observations.js';
import { addRequests } from '../store/request-counters.js';
import { withinTime } from '../within-time.js';
import type { ArtifactCache } from './artifact-cache.js';
import { EndpointRunner, type RunnerHost } from './endpoint-runner.js';
import type { Fronts } from './fronts.js';
import {
  type HandlerProcess,
  type HandlerSettings,
  type ServiceAccess,
  startHandler,
} from './handler-process.js';
import type { EndpointState, HandlerState } from './messages.js';

/** What a supervisor works with. */
export interface SupervisorOptions {
  readonly store: Store;
  readonly changes: Changes;
  readonly fronts: Fronts;
  readonly artifacts: ArtifactCache;
  readonly nodeId: () => string;
  /** Folder for the sockets of handlers. */
  readonly runDir: string;
  /** How the handler of an endpoint reaches backend services. */
  readonly services: (endpointId: string) => ServiceAccess;
  /** What holds for all handlers. */
  readonly handlers: HandlerSettings;
  /** Limits of handlers, where their endpoints set no lower ones. */
  readonly limits: LimitSettings;
  /** How many fronts share the requests. */
  readonly frontCount: number;
  readonly registry: Registry;
  readonly log: Logger;
}

const LOOK_EVERY_MS = 5_000;
const COUNT_EVERY_MS = 1_000;
const READ_BATCH = 1_000;
/** Handlers started at a time when many should run, as after a restart of the machine. */
const CONCURRENT_STARTS = 8;
/** After the deadline of its last request, a front needs a moment to notice. */
const DRAIN_SLACK_MS = 2_000;

export class Supervisor {
  readonly #known = new Map<string, RoutedEndpoint>();
  readonly #handlers = new Map<string, HandlerState>();
  readonly #runners = new Map<string, EndpointRunner>();
  readonly #starts = new Limiter(CONCURRENT_STARTS);
  readonly #restarts: Counter<'endpoint' | 'reason'>;
  readonly #periodic: Periodically[];
  #toRead = new Set<string>();
  /** What PostgreSQL is to be told of the crashes of endpoints, and has not been yet. */
  readonly #unreported = new Map<string, () => Promise<void>>();
  readonly #reporting = new Repeater(() => this.#writeReports());
  readonly #reading = new Repeater(() => this.#read());
  #nextInstance = 1;
  /** False until all endpoints have been read once. */
  #hasLooked = false;
  #uncounted = 0;
  #isStopping = false;

  constructor(private readonly options: SupervisorOptions) {
    this.#restarts = new Counter({
      name: 'edge_gateway_handler_restarts_total',
      help: 'Handler processes replaced because they crashed or ran over a deadline',
      labelNames: ['endpoint', 'reason'],
      registers: [options.registry],
    });
    const warn = (what: string) => (error: Error) => options.log.warn({ err: error }, what);
    this.#periodic = [
      new Periodically(LOOK_EVERY_MS, () => this.lookAtAll(), warn('looking for changed endpoints failed')),
      new Periodically(COUNT_EVERY_MS, () => this.#saveCount(), warn('counting requests failed')),
    ];
    options.changes.onChange('endpoint', (id) => this.#look(id));
    options.changes.onConnected(() => {
      this.lookAtAll().catch((error: unknown) =>
        warn('looking for changed endpoints failed')(toError(error)),
      );
    });
  }

  /** Compares all endpoints with what is known, and reads those that differ. */
  async lookAtAll(): Promise<void> {
    const current = await endpointVersions(this.options.store);
    const seen = new Set<string>();
    for (const { id, version } of current) {
      seen.add(id);
      if (this.#known.get(id)?.version !== version) this.#toRead.add(id);
    }
    for (const id of this.#known.keys()) if (!seen.has(id)) this.#toRead.add(id);
    for (const runner of this.#runners.values()) if (runner.isUnsaved) runner.observeAgain();
    await this.#reading.run();
    this.#hasLooked = true;
    await this.#reporting.run();
  }

  /** Writes all observations again. */
  observeAgain(): void {
    for (const runner of this.#runners.values()) runner.observeAgain();
  }

  /** A request ran over its deadline. */
  stuck(endpointId: string, instanceId: number): void {
    this.#runners.get(endpointId)?.replace(instanceId);
  }

  /** A front has lost its connection with an instance that should serve. */
  lost(endpointId: string, instanceId: number, reason: string): void {
    this.#runners.get(endpointId)?.lost(instanceId, reason);
  }

  counted(requests: number): void {
    this.#uncounted += requests;
  }

  /** Ends all handlers. Fronts must have been stopped before, so that no request is lost. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#periodic.map((periodic) => periodic.stop()));
    await this.#reading.idle();
    await Promise.all([...this.#runners.values()].map((runner) => runner.stop()));
    await this.#saveCount();
  }

  #look(id: string): void {
    this.#toRead.add(id);
    this.#reading
      .run()
      .catch((error: unknown) =>
        this.options.log.warn(
          { err: toError(error) },
          'a changed endpoint could not be read; trying again soon',
        ),
      );
  }

  /** Reads what is to be read, in batches. */
  async #read(): Promise<void> {
    while (this.#toRead.size > 0 && !this.#isStopping) {
      const ids = [...this.#toRead].slice(0, READ_BATCH);
      for (const id of ids) this.#toRead.delete(id);
      const found = new Map(
        (await routedEndpoints(this.options.store, ids)).map((endpoint) => [endpoint.id, endpoint]),
      );
      await this.#applyChanges(ids, found);
    }
  }

  async #applyChanges(ids: readonly string[], found: ReadonlyMap<string, RoutedEndpoint>): Promise<void> {
    const changed: EndpointState[] = [];
    const removed: string[] = [];
    for (const id of ids) {
      const endpoint = found.get(id);
      const known = this.#known.get(id);
      if (!endpoint) {
        if (known) removed.push(id);
        this.#known.delete(id);
        this.#runners.get(id)?.remove((known?.version ?? 0) + 1);
        continue;
      }
      // Reads of different announcements may come back in another order.
      if (known && known.version >= endpoint.version) continue;
      this.#known.set(id, endpoint);
      if (!known || !sameRouting(known, endpoint)) changed.push(this.#stateOf(endpoint));
    }
    if (changed.length > 0 || removed.length > 0) await this.options.fronts.apply(changed, removed);
    for (const endpoint of found.values()) this.#run(endpoint);
    this.#forgetIdle();
  }

  #run(endpoint: RoutedEndpoint): void {
    const { id, desired_artifact: artifact, version, stopped } = endpoint;
    if (this.#known.get(id)?.version !== version) return;
    const runner = this.#runners.get(id);
    const desired = { artifact, version, limits: this.#limitsOf(endpoint) };
    if (runner) runner.desire(desired);
    // Who has stopped it waits to hear that nothing runs, here too. At the start of a gateway that would be all that was
    // ever stopped; somebody who still waits then announces it again.
    else if (artifact !== null || (stopped && this.#hasLooked))
      this.#runners.set(id, new EndpointRunner(this.#hostOf(id), desired));
  }

  #forgetIdle(): void {
    for (const [id, runner] of this.#runners) {
      if (!this.#known.has(id) && runner.isIdle) {
        this.#runners.delete(id);
        this.#handlers.delete(id);
      }
    }
  }

  #stateOf(endpoint: RoutedEndpoint): EndpointState {
    const { id, domain, method, route, routed } = endpoint;
    const { timeout_ms: timeoutMs, concurrent_requests } = this.#limitsOf(endpoint);
    const limits = {
      timeoutMs,
      concurrentRequests: Math.ceil(concurrent_requests / this.options.frontCount),
    };
    const handler = this.#handlers.get(id) ?? { kind: 'none' };
    return { id, domain, method, route, routed, limits, handler };
  }

  #limitsOf({ limits }: RoutedEndpoint): LimitsInForce {
    return limitsInForce(limits, this.options.limits);
  }

  #hostOf(endpointId: string): RunnerHost {
    const { store, fronts, nodeId, limits } = this.options;
    const log = this.options.log.child({ endpoint_id: endpointId });
    return {
      log,
      start: (artifact, limits) => this.#starts.run(() => this.#start(endpointId, artifact, limits)),
      route: async (handler) => {
        this.#handlers.set(endpointId, handler);
        const endpoint = this.#known.get(endpointId);
        if (endpoint) await fronts.apply([this.#stateOf(endpoint)]);
      },
      drained: ({ instance }) =>
        withinTime(fronts.drained(endpointId, instance.id), limits.REQUEST_TIMEOUT_MS + DRAIN_SLACK_MS),
      observe: (seen) => saveObservation(store, { node_id: nodeId(), endpoint_id: endpointId, ...seen }),
      crashLoop: async (artifact, version, error) => {
        log.warn({ artifact }, 'handler keeps crashing');
        await this.#report(endpointId, () => reportCrashLoop(store, endpointId, artifact, version, error));
      },
      recovered: (artifact) => this.#report(endpointId, () => reportRecovery(store, endpointId, artifact)),
      restarted: (reason) => this.#restarts.inc({ endpoint: endpointId, reason }),
    };
  }

  /** Writes something of an endpoint; later, if PostgreSQL is away and there is nothing newer by then. */
  async #report(endpointId: string, write: () => Promise<void>): Promise<void> {
    this.#unreported.set(endpointId, write);
    await this.#reporting.run();
  }

  /** One after the other, so that what was seen last is what stays. */
  async #writeReports(): Promise<void> {
    for (const [id, write] of this.#unreported) {
      try {
        await write();
        // There may be something newer by now, which is written next.
        if (this.#unreported.get(id) === write) this.#unreported.delete(id);
      } catch (error) {
        const log = this.options.log.child({ endpoint_id: id });
        log.warn({ err: error }, 'crashes or recovery could not be reported; trying again soon');
        // The others would only take as long.
        if (isUnavailable(error)) return;
      }
    }
  }

  async #start(endpointId: string, artifact: string, limits: LimitsInForce): Promise<HandlerProcess> {
    const { artifacts, runDir, services, handlers: settings } = this.options;
    const executable = await artifacts.get(artifact);
    const started = performance.now();
    const above = limitsAbove(this.#known.get(endpointId)?.limits ?? null, limits);
    // Its lines carry the id of the API call that asked for it.
    const request_id = this.#known.get(endpointId)?.desired_by ?? undefined;
    const handlerLog = this.options.log.child({ request_id, endpoint_id: endpointId });
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
      services: services(endpointId),
      limits,
      settings,
      log: handlerLog,
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
      await addRequests(this.options.store, this.options.nodeId(), requests);
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
