/**
 * Reconciles what a process runs with the desired state in the rows of a table. Rows are read when they are announced;
 * every few seconds, and after a reconnect, the versions of all rows are compared with the known ones, because
 * announcements can be lost. With many rows, most of the time only a digest of them is compared.
 */
import { toError } from '../errors.js';
import type { Topic } from '../store/announcements.js';
import type { RowsDigest } from '../store/rows-digest.js';
import { CoalescingTask } from '../util/coalescing-task.js';
import type { Logger } from '../util/log.js';
import { PeriodicTask } from '../util/periodic-task.js';
import type { Changes } from './changes.js';
import { KnownRowsDigest } from './rows-digest.js';

/** A row whose version is incremented with every change that has to be reconciled. */
export interface VersionedRow {
  readonly id: string;
  readonly version: number;
}

/** A row before and after a read; undefined where there is none. */
export interface RowChange<Row> {
  readonly id: string;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

/** Reconciles one row, and saves observations of the result. */
export interface Runner {
  /** Saves the latest observation again. */
  saveAgain(): void;
  /** Saves observations that could not be saved before. */
  retryUnsaved(): void;
  /** @param limitMs how long to wait for active work */
  stop(limitMs?: number): Promise<void>;
}

export interface ReconcilerOptions<Row> {
  readonly changes: Changes;
  /** Announces the rows. */
  readonly topic: Topic;
  /** Called before rows are read, so that whoever changes them afterwards knows this node and waits for it. */
  readonly renew: () => Promise<void>;
  /** The versions of all rows. */
  readonly readVersions: () => Promise<readonly VersionedRow[]>;
  /** Their digest, when there may be many. */
  readonly readDigest?: () => Promise<RowsDigest>;
  /** Some rows; ids that do not exist are left out. */
  readonly readRows: (ids: readonly string[]) => Promise<readonly Row[]>;
  /** Reconciles rows that were read, changed or not. When it rejects, they are read again later. */
  readonly apply: (changes: readonly RowChange<Row>[]) => Promise<void>;
  readonly log: Logger;
}

const RESYNC_MS = 5_000;
/** One of so many reads all versions, whatever the digest says. */
const WHOLE_RESYNC = 12;
const READ_BATCH = 1_000;

export class Reconciler<Row extends VersionedRow, R extends Runner> {
  /** Runners by the ids of rows. The owner adds the runners it starts. */
  readonly runners = new Map<string, R>();
  readonly #options: ReconcilerOptions<Row>;
  readonly #rows = new Map<string, Row>();
  readonly #digest = new KnownRowsDigest();
  readonly #toRead = new Set<string>();
  readonly #reading = new CoalescingTask(() => this.#readChanged());
  readonly #resyncing: PeriodicTask;
  /** Runners of deleted rows that have not stopped yet. */
  readonly #leaving = new Set<R>();
  #isSynced = false;
  #digestsRead = 0;
  #isStopping = false;

  constructor(options: ReconcilerOptions<Row>) {
    this.#options = options;
    this.#resyncing = new PeriodicTask(
      RESYNC_MS,
      () => this.#resyncIfChanged(),
      (error) => this.#warn(error),
    );
    options.changes.onChange(options.topic, (id) => this.refresh(id));
    options.changes.onConnected(() => void this.resync().catch((thrown: unknown) => this.#warn(thrown)));
  }

  /** All rows as they were applied last, or are being applied. */
  get rows(): ReadonlyMap<string, Row> {
    return this.#rows;
  }

  /** False until all rows have been read once. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Reads all rows whose versions changed, and reconciles them. */
  async resync(): Promise<void> {
    await this.#options.renew();
    const missing = new Set(this.#rows.keys());
    for (const { id, version } of await this.#options.readVersions()) {
      missing.delete(id);
      if (this.#rows.get(id)?.version !== version) this.#toRead.add(id);
    }
    for (const id of missing) this.#toRead.add(id);
    await this.#readAndRetry();
    this.#isSynced = true;
  }

  /** Schedules a read of one row. */
  refresh(id: string): void {
    this.#toRead.add(id);
    this.#reading.run().catch((thrown: unknown) => this.#warn(thrown));
  }

  /** Saves all observations again, after they were deleted together with the node. */
  saveAgain(): void {
    for (const runner of this.runners.values()) runner.saveAgain();
  }

  /** Stops the runner of a deleted row; resolves when it has ended. */
  async remove(id: string): Promise<void> {
    const runner = this.runners.get(id);
    if (!runner) return;
    this.runners.delete(id);
    this.#leaving.add(runner);
    await runner.stop();
    this.#leaving.delete(runner);
  }

  /**
   * Stops all runners.
   * @param limitMs how long each waits for active work
   */
  async stop(limitMs?: number): Promise<void> {
    this.#isStopping = true;
    await this.#resyncing.stop();
    await this.#reading.idle();
    await Promise.all([...this.runners.values(), ...this.#leaving].map((runner) => runner.stop(limitMs)));
  }

  async #resyncIfChanged(): Promise<void> {
    const { readDigest } = this.#options;
    const isDue = !readDigest || !this.#isSynced || this.#digestsRead++ % WHOLE_RESYNC === 0;
    if (isDue || !this.#digest.equals(await readDigest())) await this.resync();
    else await this.#readAndRetry();
  }

  /** Reads what could not be applied before, and has saved what could not be. */
  async #readAndRetry(): Promise<void> {
    for (const runner of this.runners.values()) runner.retryUnsaved();
    await this.#reading.run();
  }

  async #readChanged(): Promise<void> {
    while (this.#toRead.size > 0 && !this.#isStopping) {
      const ids = [...this.#toRead].slice(0, READ_BATCH);
      for (const id of ids) this.#toRead.delete(id);
      let changes: readonly RowChange<Row>[] = [];
      try {
        await this.#options.renew();
        const read = new Map((await this.#options.readRows(ids)).map((row) => [row.id, row]));
        changes = ids.map((id) => ({ id, before: this.#rows.get(id), after: read.get(id) }));
        for (const { id, after } of changes) this.#setRow(id, after);
        await this.#options.apply(changes);
      } catch (thrown) {
        // Restored, so that the next attempt applies the same change.
        for (const { id, before } of changes) this.#setRow(id, before);
        for (const id of ids) this.#toRead.add(id);
        throw thrown;
      }
    }
  }

  #setRow(id: string, row: Row | undefined): void {
    const before = this.#rows.get(id);
    if (before) this.#digest.remove(id, before.version);
    if (row) this.#digest.add(id, row.version);
    // So that the text of its id is in memory once, the row's own is the key.
    this.#rows.delete(id);
    if (row) this.#rows.set(row.id, row);
  }

  #warn(thrown: unknown): void {
    const { log, topic } = this.#options;
    log.warn({ err: toError(thrown), topic }, 'changed rows could not be read; trying again soon');
  }
}
