/**
 * Collects entries of the log and writes them in batches. Nothing waits for it: while PostgreSQL is away or slow, so
 * many entries are kept, and of those beyond it is counted how many each endpoint has lost.
 */
import { toError } from '../errors.js';
import type { LogEntry } from '../model/log-entry.js';
import { isUnavailable, type Store } from '../store/database.js';
import { ensureLogPartition, hourOf } from '../store/log-partitions.js';
import { addLogWriter, databaseTime, type NumberedEntry, writeLogs } from '../store/log-writing.js';
import type { Logger } from '../util/log.js';
import { PeriodicTask } from '../util/periodic-task.js';

/** Entries become visible after this at the latest, while PostgreSQL keeps up. */
const WRITE_EVERY_MS = 100;
const MAX_BATCH = 5_000;
/** What is kept while entries cannot be written. */
const MAX_WAITING = 20_000;
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
/** Clocks of machines differ; entries have the time of PostgreSQL. */
const CLOCK_EVERY_MS = 60_000;
const HOUR_MS = 3_600_000;

export class LogWriter {
  readonly #store: Store;
  readonly #log: Logger;
  #nodeId = '';
  #writing: PeriodicTask | undefined;
  #waiting: LogEntry[] = [];
  #waitingCharacters = 0;
  /** What is being written, or could not be. */
  #batch: readonly NumberedEntry[] = [];
  readonly #lost = new Map<string, number>();
  #id: number | undefined;
  #lastNumber = 0;
  #lastAt = 0;
  #clock: { readonly offsetMs: number; readonly measuredAt: number } | undefined;
  readonly #partitions = new Set<number>();
  #isFailing = false;

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** Writes from now on what was added, and what will be. */
  start(nodeId: string): void {
    this.#nodeId = nodeId;
    this.#writing = new PeriodicTask(
      WRITE_EVERY_MS,
      () => this.#write(),
      (error) => this.#failed(error),
    );
  }

  add(entry: LogEntry): void {
    const characters = lengthOf(entry);
    const isFull =
      this.#waiting.length >= MAX_WAITING || this.#waitingCharacters + characters > MAX_WAITING_CHARACTERS;
    if (isFull) {
      this.#lost.set(entry.endpointId, (this.#lost.get(entry.endpointId) ?? 0) + 1);
      return;
    }
    this.#waitingCharacters += characters;
    this.#waiting.push(entry);
  }

  /** Writes what there is, if PostgreSQL takes it. */
  async stop(): Promise<void> {
    await this.#writing?.stop();
    await this.#write().catch((thrown: unknown) => this.#failed(toError(thrown)));
    const lost = this.#batch.length + this.#waiting.length;
    if (lost > 0) this.#log.warn({ lost }, 'entries of the log were lost: they could not be written');
  }

  async #write(): Promise<void> {
    while (this.#batch.length > 0 || this.#waiting.length > 0) {
      this.#id ??= await addLogWriter(this.#store, this.#nodeId);
      await this.#readClock();
      if (this.#batch.length === 0) this.#batch = this.#nextBatch();
      for (const hour of new Set(this.#batch.map(({ at }) => hourOf(at)))) await this.#ensurePartition(hour);
      await writeLogs(this.#store, this.#id, this.#batch);
      this.#batch = [];
      if (this.#isFailing) this.#log.info('entries of the log are written again');
      this.#isFailing = false;
    }
  }

  /** Of the next hour, too: it takes a moment that nobody should wait for. */
  async #ensurePartition(hour: number): Promise<void> {
    for (const each of [hour, hour + HOUR_MS]) {
      if (this.#partitions.has(each)) continue;
      await ensureLogPartition(this.#store, each);
      this.#partitions.add(each);
    }
  }

  #nextBatch(): NumberedEntry[] {
    const entries = this.#waiting.splice(0, MAX_BATCH);
    for (const entry of entries) this.#waitingCharacters -= lengthOf(entry);
    if (this.#waiting.length === 0) for (const lost of this.#takeLost()) entries.push(lost);
    const offsetMs = this.#clock?.offsetMs ?? 0;
    return entries.map((entry) => {
      this.#lastAt = Math.max(this.#lastAt, Math.round(entry.at + offsetMs));
      return { ...entry, at: this.#lastAt, number: ++this.#lastNumber };
    });
  }

  #takeLost(): LogEntry[] {
    const entries = [...this.#lost].map(([endpointId, lost]): LogEntry => {
      const message = `${lost} entries of the log were lost: PostgreSQL did not take them in time`;
      return noteOf(endpointId, message, { lost });
    });
    this.#lost.clear();
    return entries;
  }

  async #readClock(): Promise<void> {
    const now = Date.now();
    if (this.#clock && now - this.#clock.measuredAt < CLOCK_EVERY_MS) return;
    const theirs = await databaseTime(this.#store);
    this.#clock = { offsetMs: theirs - (now + Date.now()) / 2, measuredAt: now };
  }

  #failed(error: Error): void {
    // The partition may have been dropped, by whoever cleans up by hand.
    this.#partitions.clear();
    if (!this.#isFailing || !isUnavailable(error))
      this.#log.warn({ err: error }, 'entries of the log cannot be written; trying again');
    this.#isFailing = true;
  }
}

/** What the gateway itself says of an endpoint's log. */
export function noteOf(endpointId: string, message: string, fields: Record<string, unknown>): LogEntry {
  return {
    at: Date.now(),
    kind: 'output',
    level: 'warn',
    endpointId,
    version: null,
    requestId: null,
    message,
    fields: { target: 'gateway', ...fields },
    request: null,
  };
}

function lengthOf({ message, fields, request }: LogEntry): number {
  const path = request ? request.path.length + request.route.length : 0;
  return message.length + path + (fields ? JSON.stringify(fields).length : 0) + 200;
}
