/**
 * Writes entries of the log in batches. Nothing waits for it: what PostgreSQL does not take is lost, and counted
 * (`log-buffer.ts`).
 */
import { toError } from '../../errors.js';
import type { LogEntry } from '../../model/log-entry.js';
import { isRefusedValue, type Store } from '../../store/database.js';
import { ensureLogPartition, hourOf, sizeOfLogPartition } from '../../store/log-partitions.js';
import {
  addLogWriter,
  databaseTime,
  LogWriterGoneError,
  type NumberedEntry,
  writeLogs,
} from '../../store/log-writing.js';
import { countLiveNodes } from '../../store/nodes.js';
import type { Logger } from '../../util/log.js';
import { PeriodicTask } from '../../util/periodic-task.js';
import { LogBuffer } from './log-buffer.js';
import { LogRoom } from './log-room.js';

/** Entries become visible after this at the latest, while PostgreSQL keeps up. */
const WRITE_EVERY_MS = 100;
const MAX_BATCH = 5_000;
/** How often the clock of PostgreSQL is read, whose times entries have, and the size of the hour. */
const CHECK_EVERY_MS = 5_000;
const HOUR_MS = 3_600_000;
/** After so many refusals entries are written one by one, to find the one that PostgreSQL does not take. */
const TRIES = 3;

export class LogWriter {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #waiting: LogBuffer;
  readonly #room: LogRoom;
  /** What is being written, or could not be. */
  #batch: readonly NumberedEntry[] = [];
  #writing: PeriodicTask | undefined;
  #nodeId = '';
  #id: number | undefined;
  #lastNumber = 0;
  #lastAt = 0;
  /** PostgreSQL's clock is ahead by this. */
  #offsetMs = 0;
  #checkedAt = Number.NEGATIVE_INFINITY;
  readonly #partitions = new Set<number>();
  #isFailing = false;
  #refusals = 0;

  /**
   * @param hourBytes what the entries of one hour may take, of all gateways
   * @param ownerOf whose an endpoint is, as owners share the room; undefined when it is not known
   */
  constructor(
    store: Store,
    log: Logger,
    hourBytes: number,
    ownerOf: (endpointId: string) => string | undefined,
  ) {
    this.#store = store;
    this.#log = log;
    const known = (endpointId: string) => ownerOf(endpointId) ?? '';
    this.#waiting = new LogBuffer(known);
    this.#room = new LogRoom(hourBytes, log, known);
  }

  add(entry: LogEntry): void {
    this.#waiting.add(entry);
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

  /** Writes what there is, if PostgreSQL takes it. */
  async stop(): Promise<void> {
    await this.#writing?.stop();
    await this.#write(Number.POSITIVE_INFINITY).catch((thrown: unknown) => this.#failed(toError(thrown)));
    const lost = this.#batch.length + this.#waiting.size;
    if (lost > 0) this.#log.warn({ lost }, 'entries of the log were lost: they could not be written');
  }

  /** @param now decides which entries that were left out are told of */
  async #write(now = Date.now()): Promise<void> {
    for (;;) {
      if (this.#batch.length === 0) {
        if (!this.#waiting.isEmpty) await this.#check();
        this.#batch = this.#nextBatch(now);
      }
      if (this.#batch.length === 0) return;
      this.#id ??= await addLogWriter(this.#store, this.#nodeId);
      for (const hour of new Set(this.#batch.map(({ at }) => hourOf(at)))) await this.#ensurePartition(hour);
      await (this.#refusals < TRIES
        ? writeLogs(this.#store, this.#id, this.#batch)
        : this.#writeEach(this.#id));
      this.#batch = [];
      this.#refusals = 0;
      if (this.#isFailing) this.#log.info('entries of the log are written again');
      this.#isFailing = false;
    }
  }

  /** One by one; those that PostgreSQL refuses are lost. */
  async #writeEach(id: number): Promise<void> {
    for (const entry of this.#batch) {
      try {
        await writeLogs(this.#store, id, [entry]);
      } catch (error) {
        if (!isRefusedValue(error)) throw error;
        this.#log.error(
          { err: error, endpoint_id: entry.endpointId },
          'an entry of the log cannot be stored',
        );
        this.#waiting.lose(entry);
      }
    }
  }

  /** Makes the partition of an hour, and of the next one, too: it takes a moment that nobody should wait for. */
  async #ensurePartition(hour: number): Promise<void> {
    for (const each of [hour, hour + HOUR_MS]) {
      if (this.#partitions.has(each)) continue;
      await ensureLogPartition(this.#store, each);
      this.#partitions.add(each);
    }
  }

  /** Empty only when there is nothing to write. */
  #nextBatch(now: number): NumberedEntry[] {
    const entries: LogEntry[] = [];
    while (entries.length === 0 && !this.#waiting.isEmpty)
      entries.push(...this.#waiting.take(MAX_BATCH).filter((entry) => this.#room.admits(entry)));
    return [...entries, ...this.#room.takeNotes(now)].map((entry) => {
      this.#lastAt = Math.max(this.#lastAt, Math.round(entry.at + this.#offsetMs));
      return { ...entry, at: this.#lastAt, number: ++this.#lastNumber };
    });
  }

  async #check(): Promise<void> {
    const began = Date.now();
    // Also when the clock of this machine is set back.
    if (Math.abs(began - this.#checkedAt) < CHECK_EVERY_MS) return;
    const theirs = await databaseTime(this.#store);
    this.#offsetMs = theirs - (began + Date.now()) / 2;
    const hour = hourOf(theirs);
    const [bytes, gateways] = await Promise.all([
      sizeOfLogPartition(this.#store, hour),
      countLiveNodes(this.#store, 'gateway'),
    ]);
    for (const note of this.#room.measured(hour, bytes, gateways)) this.#waiting.add(note);
    this.#checkedAt = began;
  }

  #failed(error: Error): void {
    if (error instanceof LogWriterGoneError) this.#id = undefined;
    if (!this.#isFailing)
      this.#log.warn({ err: error }, 'entries of the log cannot be written; trying again');
    this.#isFailing = true;
    if (isRefusedValue(error)) this.#refusals++;
    // One may have been dropped by hand.
    this.#partitions.clear();
  }
}
