/** The figures of a service: its process collects them, and the actor host adds them to its metrics. */
import type { Figures, PoolUse } from '../../contracts/service-process.js';
import type { ActorMetrics, CallResult } from '../service-metrics.js';

export type { Figures };

/** Calls after which a report is due, whether or not somebody wants to know. */
const REPORT_AFTER = 10_000;

export class FigureCollector implements ActorMetrics {
  readonly #onDue: () => void;
  #calls = new Map<string, Map<CallResult, number[]>>();
  #count = 0;
  #reconnects = 0;

  /** @param onDue called when there are many: they should be taken */
  constructor(onDue: () => void) {
    this.#onDue = onDue;
  }

  called(operation: string, result: CallResult, seconds: number): void {
    let byResult = this.#calls.get(operation);
    if (!byResult) {
      byResult = new Map();
      this.#calls.set(operation, byResult);
    }
    const durations = byResult.get(result);
    if (durations) durations.push(seconds);
    else byResult.set(result, [seconds]);
    if (++this.#count === REPORT_AFTER) this.#onDue();
  }

  reconnected(): void {
    this.#reconnects++;
  }

  remove(): void {
    this.#calls = new Map();
  }

  /** The figures since the last time. */
  take(use: PoolUse): Figures {
    const calls = [...this.#calls].flatMap(([operation, byResult]) =>
      [...byResult].map(([result, seconds]) => [operation, result, seconds] as const),
    );
    const reconnects = this.#reconnects;
    this.#calls = new Map();
    this.#count = 0;
    this.#reconnects = 0;
    return { calls, reconnects, use };
  }
}

/** Adds figures to metrics. */
export function addFigures({ calls, reconnects }: Figures, metrics: ActorMetrics): void {
  for (const [operation, result, durations] of calls)
    for (const seconds of durations) metrics.called(operation, result, seconds);
  for (let count = 0; count < reconnects; count++) metrics.reconnected();
}
