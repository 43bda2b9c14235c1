/**
 * What became of requests and what handlers used, by the minute, for each version of each endpoint and for all
 * endpoints together. Writes the whole of a minute anew while it changes, so that a write can be repeated. While
 * PostgreSQL is away so many minutes are kept and no more.
 */

import type { EndpointInterval, VersionInterval } from '../../contracts/front.js';
import type { Store } from '../../store/database.js';
import { ALL_ENDPOINTS, type Figures, saveFigures } from '../../store/figures.js';
import type { Logger } from '../../util/log.js';
import { PeriodicTask } from '../../util/periodic-task.js';

const MINUTE_MS = 60_000;
/** The front reports an interval within this time: then the rows are written, and not with each change. */
const REPORTS_WITHIN_MS = 500;
/** Rows are written whole: they are known for as long as something of them may still be told. */
const KNOWN_MS = 120_000;
/** Rows of one write. */
const MAX_BATCH = 2_000;
/** About 500 bytes each. */
const MAX_ROWS = 50_000;

type Row = { -readonly [Key in keyof Omit<Figures, 'buckets' | 'counts'>]: Figures[Key] } & {
  readonly durations: Map<number, number>;
};

export class MinuteFigures {
  readonly #store: Store;
  readonly #everyMs: number;
  readonly #log: Logger;
  /** Figures by minute, endpoint and version; the oldest first. */
  readonly #rows = new Map<string, Row>();
  /** Those that have changed since they were written. */
  readonly #changed = new Set<Row>();
  #writing: PeriodicTask | undefined;
  #nodeId = '';
  #written = 0;
  #lost = 0;
  #isFailing = false;

  /** @param everySeconds how often the front reports */
  constructor(store: Store, everySeconds: number, log: Logger) {
    this.#store = store;
    this.#everyMs = everySeconds * 1000;
    this.#log = log;
  }

  /** Writes from now on what was added, and what will be. */
  start(nodeId: string): void {
    this.#nodeId = nodeId;
    this.#writing = new PeriodicTask(
      REPORTS_WITHIN_MS,
      () => this.#writeOnce(),
      (error) => this.#failed(error),
    );
  }

  /** Writes what there is, if PostgreSQL takes it. */
  async stop(): Promise<void> {
    await this.#writing?.stop();
    await this.#write().catch((thrown: unknown) => this.#failed(thrown));
  }

  /** The front has counted requests. @param at seconds since 1970 */
  finished(at: number, endpoints: readonly EndpointInterval[]): void {
    for (const { id, inFlight, versions } of endpoints) {
      for (const figures of versions) {
        for (const row of this.#both(id, figures.version ?? 0, at * 1000)) {
          addRequests(row, figures);
          row.in_flight = Math.max(row.in_flight, inFlight);
        }
      }
    }
  }

  /** A handler was replaced because it crashed, or ran over a deadline. */
  restarted(endpointId: string, version: number): void {
    for (const row of this.#both(endpointId, version, Date.now())) row.restarts++;
  }

  /**
   * A handler has used the processor, and has so much memory. One that does nothing has no figures.
   * @param cpuSeconds since it was told last
   */
  used(endpointId: string, version: number, cpuSeconds: number, memoryBytes: number): void {
    const now = Date.now();
    const known = this.#rows.get(keyOf(endpointId, version, minuteOf(now)));
    if (cpuSeconds <= 0 && !(known && known.memory_bytes < memoryBytes)) return;
    const row = this.#row(endpointId, version, now);
    row.memory_bytes = Math.max(row.memory_bytes, memoryBytes);
    row.cpu_seconds += cpuSeconds;
    if (cpuSeconds > 0) this.#row(ALL_ENDPOINTS, 0, now).cpu_seconds += cpuSeconds;
  }

  #both(endpointId: string, version: number, at: number): Row[] {
    return [this.#row(endpointId, version, at), this.#row(ALL_ENDPOINTS, 0, at)];
  }

  /** The row of a minute, which is about to change. */
  #row(endpointId: string, version: number, time: number): Row {
    const at = minuteOf(time);
    const key = keyOf(endpointId, version, at);
    const row = this.#rows.get(key) ?? emptyRow(endpointId, version, at);
    this.#rows.set(key, row);
    this.#changed.add(row);
    if (this.#rows.size > MAX_ROWS) this.#loseOldest();
    return row;
  }

  #loseOldest(): void {
    for (const [key, row] of this.#rows) {
      this.#rows.delete(key);
      if (this.#changed.delete(row)) this.#lost++;
      return;
    }
  }

  /** Once for each interval of the front. */
  async #writeOnce(): Promise<void> {
    const reported = Math.floor((Date.now() - REPORTS_WITHIN_MS) / this.#everyMs);
    if (reported === this.#written) return;
    this.#written = reported;
    await this.#write();
  }

  async #write(): Promise<void> {
    while (this.#changed.size > 0) {
      const batch = [...this.#changed].slice(0, MAX_BATCH);
      for (const row of batch) this.#changed.delete(row);
      try {
        await saveFigures(this.#store, this.#nodeId, batch.map(figuresOf));
      } catch (error) {
        for (const row of batch) this.#changed.add(row);
        throw error;
      }
    }
    this.#forgetWritten();
    if (this.#isFailing || this.#lost > 0)
      this.#log.warn({ lost: this.#lost }, 'figures are written again; those of so many rows were lost');
    this.#isFailing = false;
    this.#lost = 0;
  }

  #forgetWritten(): void {
    const oldest = minuteOf(Date.now() - KNOWN_MS);
    for (const [key, row] of this.#rows)
      if (row.at < oldest && !this.#changed.has(row)) this.#rows.delete(key);
  }

  #failed(error: unknown): void {
    if (!this.#isFailing) this.#log.warn({ err: error }, 'figures cannot be written; trying again');
    this.#isFailing = true;
  }
}

function minuteOf(time: number): number {
  return time - (time % MINUTE_MS);
}

function keyOf(endpointId: string, version: number, minute: number): string {
  return `${minute}/${endpointId}/${version}`;
}

function emptyRow(endpoint_id: string, version: number, at: number): Row {
  return {
    ...{ endpoint_id, version, at, in_flight: 0, memory_bytes: 0, cpu_seconds: 0, restarts: 0 },
    ...{ status_2xx: 0, status_3xx: 0, status_4xx: 0, status_5xx: 0, status_other: 0 },
    durations: new Map(),
  };
}

function addRequests(row: Row, { statuses, buckets, counts }: VersionInterval): void {
  const [none = 0, informational = 0, success = 0, redirection = 0, client = 0, server = 0] = statuses;
  row.status_other += none + informational;
  row.status_2xx += success;
  row.status_3xx += redirection;
  row.status_4xx += client;
  row.status_5xx += server;
  for (const [at, bucket] of buckets.entries())
    row.durations.set(bucket, (row.durations.get(bucket) ?? 0) + (counts[at] ?? 0));
}

function figuresOf({ durations, ...row }: Row): Figures {
  return { ...row, buckets: [...durations.keys()], counts: [...durations.values()] };
}
