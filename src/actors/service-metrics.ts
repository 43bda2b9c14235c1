/** Metrics of the services of an actor host. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { PoolUse } from '../contracts/service-process.js';

export type { PoolUse };

/** The result of a call: `ok`, or the kind of its ServiceError. */
export type CallResult = string;

/** The metrics of one actor. */
export interface ActorMetrics {
  called(operation: string, result: CallResult, seconds: number): void;
  reconnected(): void;
  /** Removes all series of a deleted service. */
  remove(): void;
}

const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const SERVICE_LABELS = ['service', 'service_type'] as const;

export class ServiceMetrics {
  readonly #calls: Counter;
  readonly #durations: Histogram;
  readonly #reconnects: Counter;

  /** @param pools returns the usage of all pools with their labels */
  constructor(
    registry: Registry,
    pools: () => Iterable<readonly [labels: Record<string, string>, use: PoolUse]>,
  ) {
    const registers = [registry];
    this.#calls = new Counter({
      name: 'edge_gateway_service_calls_total',
      help: 'Calls of backend services by operation and result',
      labelNames: [...SERVICE_LABELS, 'operation', 'result'],
      registers,
    });
    this.#durations = new Histogram({
      name: 'edge_gateway_service_call_duration_seconds',
      help: 'Duration of calls of backend services, the wait for a connection included',
      labelNames: [...SERVICE_LABELS, 'operation'],
      buckets: DURATION_BUCKETS,
      registers,
    });
    this.#reconnects = new Counter({
      name: 'edge_gateway_service_reconnects_total',
      help: 'Connections to backend services made again after they broke',
      labelNames: SERVICE_LABELS,
      registers,
    });
    poolGauge('edge_gateway_service_pool_in_use', 'Calls and transactions under way', ({ inUse }) => inUse);
    poolGauge(
      'edge_gateway_service_pool_waiting',
      'Calls that wait for their turn',
      ({ waiting }) => waiting,
    );

    function poolGauge(name: string, help: string, read: (use: PoolUse) => number): void {
      new Gauge({
        name,
        help,
        labelNames: SERVICE_LABELS,
        registers,
        collect() {
          this.reset();
          for (const [labels, use] of pools()) this.set(labels, read(use));
        },
      });
    }
  }

  /** The series of one service, looked up once instead of on every call. */
  of(service: string, service_type: string): ActorMetrics {
    const labels = { service, service_type };
    // Timers by operation, counters by operation and result.
    const timers = new Map<string, Histogram.Internal<string>>();
    const counters = new Map<string, Counter.Internal>();
    const used: { operation: string; result: CallResult }[] = [];
    const reconnects = this.#reconnects.labels(labels);
    reconnects.inc(0);
    return {
      called: (operation, result, seconds) => {
        const key = `${operation} ${result}`;
        let counter = counters.get(key);
        if (!counter) {
          counter = this.#calls.labels({ ...labels, operation, result });
          counters.set(key, counter);
          used.push({ operation, result });
        }
        counter.inc();
        let timer = timers.get(operation);
        if (!timer) {
          timer = this.#durations.labels({ ...labels, operation });
          timers.set(operation, timer);
        }
        timer.observe(seconds);
      },
      reconnected: () => reconnects.inc(),
      remove: () => {
        this.#reconnects.remove(labels);
        for (const { operation, result } of used) {
          this.#calls.remove({ ...labels, operation, result });
          this.#durations.remove({ ...labels, operation });
        }
      },
    };
  }
}
