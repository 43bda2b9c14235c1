/** `/metrics`: the metrics of all processes of this machine in the Prometheus text format. */
import { Gauge, Histogram, Registry } from 'prom-client';
import { collectMetrics, METRICS_CONTENT_TYPE, registrySource } from '../../metrics/process-metrics.js';
import type { Queues } from '../../queues/queues.js';
import type { ApiDependencies } from '../api-dependencies.js';
import type { ApiContext, Next } from '../route/context.js';

/** Two middlewares: `measure` observes requests, `serve` answers `/metrics`. */
export function metrics({
  queues,
  metricsFolders,
  log,
}: Pick<ApiDependencies, 'queues' | 'metricsFolders' | 'log'>) {
  const registry = new Registry();
  const durations = new Histogram({
    name: 'edge_api_request_duration_seconds',
    help: 'Duration of management API requests by route and status class',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120],
    registers: [registry],
  });
  measureQueues(queues, registry);
  // Series by method, route and status class: prom-client's lookup of labels costs more than the observation.
  const series = new Map<string, Histogram.Internal<string>>();

  return {
    /** Mount it before all middlewares that respond. */
    measure: async (context: ApiContext, next: Next): Promise<void> => {
      const started = performance.now();
      await next();
      // Not the raw path: clients could create series without bound.
      const route = context.state.route?.path ?? 'none';
      const method = context.state.route?.method ?? 'other';
      const status = `${Math.floor(context.status / 100)}xx`;
      const key = `${method} ${route} ${status}`;
      let own = series.get(key);
      if (!own) {
        own = durations.labels({ method, route, status });
        series.set(key, own);
      }
      own.observe((performance.now() - started) / 1000);
    },
    /** Mount it after authentication. */
    serve: async (context: ApiContext, next: Next): Promise<unknown> => {
      if (context.path !== '/metrics' || context.method !== 'GET') return next();
      context.type = METRICS_CONTENT_TYPE;
      context.body = await collectMetrics(metricsFolders, registrySource(registry), log);
      return undefined;
    },
  };
}

function measureQueues(queues: Queues, registry: Registry): void {
  new Gauge({
    name: 'edge_queue_jobs',
    help: 'Jobs in the queues by state',
    labelNames: ['queue', 'state'],
    registers: [registry],
    async collect() {
      // No values when Redis does not answer: stale ones would be wrong.
      this.reset();
      for (const { queue, state, jobs } of (await queues.depths()) ?? []) this.set({ queue, state }, jobs);
    },
  });
}
