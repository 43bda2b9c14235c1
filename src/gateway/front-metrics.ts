/** The metrics of a front. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Route } from './route-table.js';

/** The metrics of one endpoint, which need no lookup of labels. */
export interface EndpointMetrics {
  /** Counts a finished request. */
  finished(status: number, seconds: number): void;
  /** Removes the series of the endpoint. */
  remove(): void;
}

const ENDPOINT_LABELS = ['endpoint', 'domain', 'method', 'route'] as const;

/** The metrics of one front process. */
export class FrontMetrics {
  readonly registry = new Registry();
  readonly #requests = new Counter({
    name: 'edge_gateway_requests_total',
    help: 'Requests by endpoint and status class',
    labelNames: [...ENDPOINT_LABELS, 'status'],
    registers: [this.registry],
  });
  readonly #durations = new Histogram({
    name: 'edge_gateway_request_duration_seconds',
    help: 'Time from the end of a request to the start of its response, by endpoint',
    labelNames: ENDPOINT_LABELS,
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [this.registry],
  });
  readonly #refused = new Counter({
    name: 'edge_gateway_refused_total',
    help: 'Requests that belong to no endpoint, by status',
    labelNames: ['status'],
    registers: [this.registry],
  });

  /**
   * @param inFlight requests in handlers right now
   * @param connections of clients right now
   */
  constructor(inFlight: () => number, connections: () => Promise<number>) {
    new Gauge({
      name: 'edge_gateway_requests_in_flight',
      help: 'Requests that handlers are working on',
      registers: [this.registry],
      collect() {
        this.set(inFlight());
      },
    });
    new Gauge({
      name: 'edge_gateway_connections',
      help: 'Connections of clients that are open',
      registers: [this.registry],
      async collect() {
        this.set(await connections());
      },
    });
  }

  refused(status: number): void {
    this.#refused.inc({ status });
  }

  forEndpoint(id: string, { domain, method, route }: Route): EndpointMetrics {
    const labels = { endpoint: id, domain, method, route };
    // Series are created with the first request: most endpoints of a large installation have none.
    const byClass: (Counter.Internal | undefined)[] = [];
    let duration: Histogram.Internal<string> | undefined;
    return {
      finished: (status, seconds) => {
        const statusClass = (status / 100) | 0;
        byClass[statusClass] ??= this.#requests.labels({ ...labels, status: `${statusClass}xx` });
        byClass[statusClass].inc();
        duration ??= this.#durations.labels(labels);
        duration.observe(seconds);
      },
      remove: () => {
        for (const statusClass of byClass.keys())
          this.#requests.remove({ ...labels, status: `${statusClass}xx` });
        this.#durations.remove(labels);
      },
    };
  }
}
