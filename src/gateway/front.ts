/** A front: a process of the cluster that serves the public port, controlled by the supervisor. */

import { toError } from '../errors.js';
import { drain } from '../http/drain.js';
import type { ServerConfig } from '../http/server.js';
import type { HttpServer } from '../http/unread-body.js';
import { type MetricSnapshot, registrySource } from '../metrics/process-metrics.js';
import type { Logger } from '../util/log.js';
import { MemoryBudget } from '../util/memory-budget.js';
import { type Address, FrontEndpoint, type HandlerEvents } from './front-endpoint.js';
import { FrontMetrics } from './front-metrics.js';
import { createFrontServer } from './front-server.js';
import type { EndpointState, FromFront, ToFront } from './messages.js';
import { RouteTable } from './route-table.js';

/** How a front is set up. */
export interface FrontOptions {
  readonly host: string;
  readonly port: number;
  readonly bodyLimit: number;
  /** Bytes of request and response bodies that it may hold in memory. */
  readonly memoryBytes: number;
  readonly http: ServerConfig;
  readonly connectionsLimit: number;
  readonly log: Logger;
  /** Sends a message to the supervisor. */
  readonly send: (message: FromFront) => void;
}

const EXPIRE_EVERY_MS = 100;
const COUNT_EVERY_MS = 500;
const WARN_EVERY_MS = 60_000;
/** How long a client that keeps its connection busy can delay the exit of a front. */
const DRAIN_LIMIT_MS = 35_000;

export class Front {
  readonly #options: FrontOptions;
  readonly #routes = new RouteTable<FrontEndpoint>();
  readonly #endpoints = new Map<string, FrontEndpoint>();
  /** Deleted, with requests in flight. */
  readonly #removed = new Set<FrontEndpoint>();
  readonly #metrics = new FrontMetrics(
    () => this.#inFlight(),
    () => this.#connections(),
  );
  readonly #memory: MemoryBudget;
  readonly #server: HttpServer;
  readonly #timers: NodeJS.Timeout[];
  readonly #handlerEvents: HandlerEvents = {
    deadlineExceeded: (endpointId, instanceId) =>
      this.#options.send({ type: 'deadline-exceeded', endpointId, instanceId }),
    connectionLost: (endpointId, instanceId, reason) =>
      this.#options.send({ type: 'connection-lost', endpointId, instanceId, reason }),
    outOfDescriptors: (error) => this.#warnOutOfDescriptors(error),
  };
  #handled = 0;
  #warnAgainAt = Number.NEGATIVE_INFINITY;
  #stopping: Promise<void> | undefined;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#memory = new MemoryBudget(options.memoryBytes);
    this.#server = createFrontServer({
      ...options,
      routes: this.#routes,
      metrics: this.#metrics,
      onHandled: () => {
        this.#handled++;
      },
    });
    this.#timers = [
      setInterval(() => this.#expire(), EXPIRE_EVERY_MS),
      setInterval(() => this.#reportCount(), COUNT_EVERY_MS),
    ];
  }

  /** Handles a message and answers `done`. */
  async receive(message: ToFront): Promise<void> {
    const { seq } = message;
    try {
      const metrics = await this.#handle(message);
      this.#options.send({ type: 'done', seq, ...(metrics && { metrics }) });
    } catch (thrown) {
      this.#options.send({ type: 'done', seq, error: toError(thrown).message });
    }
  }

  /** Accepts no more connections; resolves when the last request is answered. */
  stop(): Promise<void> {
    this.#stopping ??= this.#drain();
    return this.#stopping;
  }

  async #handle(message: ToFront): Promise<MetricSnapshot | undefined> {
    switch (message.type) {
      case 'apply':
        await this.#apply(message.endpoints, message.removed);
        return undefined;
      case 'listen':
        await this.#listen();
        return undefined;
      case 'drain':
        await this.#drained(message.endpointId, message.instanceId);
        return undefined;
      case 'metrics':
        return registrySource(this.#metrics.registry)();
      case 'stop':
        await this.stop();
        return undefined;
    }
  }

  async #apply(endpoints: readonly EndpointState[], removed: readonly string[]): Promise<void> {
    for (const id of removed) this.#remove(id);
    const changes = endpoints.map((state) => this.#upsert(state).setHandler(state.handler));
    // A handler that cannot be reached has just exited: the supervisor knows, and sends next what replaces it.
    for (const change of await Promise.allSettled(changes)) {
      if (change.status === 'rejected')
        this.#options.log.debug({ err: toError(change.reason) }, 'handler not reachable');
    }
  }

  #warnOutOfDescriptors(error: Error): void {
    const now = performance.now();
    if (now < this.#warnAgainAt) return;
    this.#warnAgainAt = now + WARN_EVERY_MS;
    this.#options.log.warn(
      { err: error },
      'out of file descriptors for connections to handlers; trying again. Raise the limit of open files (ulimit -n)',
    );
  }

  #upsert(state: EndpointState): FrontEndpoint {
    const known = this.#endpoints.get(state.id);
    if (known) known.limits = state.limits;
    if (known && sameAddress(known.address, state)) return known;
    const { id, domain, method, route, routed } = state;
    const address = {
      domain,
      method,
      route,
      routed,
      metrics: this.#metrics.forEndpoint(id, { domain, method, route }),
    };
    const endpoint = known ?? new FrontEndpoint(id, this.#handlerEvents, this.#memory, address, state.limits);
    if (known) {
      this.#unroute(known);
      known.address.metrics.remove();
      known.address = address;
    }
    this.#endpoints.set(id, endpoint);
    if (routed) this.#routes.add(address, endpoint);
    return endpoint;
  }

  #remove(id: string): void {
    const endpoint = this.#endpoints.get(id);
    if (!endpoint) return;
    this.#unroute(endpoint);
    this.#endpoints.delete(id);
    endpoint.address.metrics.remove();
    void endpoint.setHandler({ kind: 'none' });
    this.#removed.add(endpoint);
    void endpoint.drained().then(() => this.#removed.delete(endpoint));
  }

  async #drained(endpointId: string, instanceId: number): Promise<void> {
    const removed = [...this.#removed].filter(({ id }) => id === endpointId);
    for (const endpoint of [this.#endpoints.get(endpointId), ...removed]) await endpoint?.drained(instanceId);
  }

  #unroute(endpoint: FrontEndpoint): void {
    if (endpoint.address.routed) this.#routes.remove(endpoint.address, endpoint);
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: this.#options.host, port: this.#options.port, backlog: 1024 }, () =>
        resolve(),
      );
    });
  }

  async #drain(): Promise<void> {
    await drain(this.#server, DRAIN_LIMIT_MS);
    this.#reportCount();
    for (const timer of this.#timers) clearInterval(timer);
  }

  #expire(): void {
    const now = performance.now();
    for (const endpoint of this.#endpoints.values()) endpoint.expire(now);
    for (const endpoint of this.#removed) endpoint.expire(now);
  }

  #reportCount(): void {
    if (this.#handled === 0) return;
    this.#options.send({ type: 'counted', requests: this.#handled });
    this.#handled = 0;
  }

  #connections(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });
  }

  #inFlight(): number {
    let count = 0;
    for (const endpoint of this.#endpoints.values()) count += endpoint.inFlight;
    for (const endpoint of this.#removed) count += endpoint.inFlight;
    return count;
  }
}

function sameAddress(address: Address, state: EndpointState): boolean {
  return (
    address.routed === state.routed &&
    address.domain === state.domain &&
    address.method === state.method &&
    address.route === state.route
  );
}
