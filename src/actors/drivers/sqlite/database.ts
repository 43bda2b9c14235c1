/** An open SQLite file: runs statements and writes their rows as JSON. */
import { pathToFileURL } from 'node:url';
import { constants, DatabaseSync } from '@photostructure/sqlite';
import { MAX_BODY_BYTES } from '../../../wire/codec.js';
import { encodeJson } from '../../exact-json.js';
import { ServiceError } from '../../service-error.js';
import type { ScannedSql } from '../../sql/placeholders.js';
import { ResultText, resultTooLarge } from '../../sql/result-text.js';
import {
  checkStatement,
  INT64,
  integerTooLarge,
  JsonText,
  type SqlStatement,
  type SqlValue,
} from '../../sql/statement.js';

/** Maximum number of prepared statements; the oldest is evicted. */
const PREPARED = 500;
/** Maximum size of a value or a row: no larger one fits into an answer. */
export const MAX_VALUE_BYTES = MAX_BODY_BYTES;
/** How long to wait for a lock of another process. */
const BUSY_TIMEOUT_MS = 5_000;

/** Size that a WAL keeps after its content was moved to the file. */
const KEPT_WAL_BYTES = 16 * 1024 * 1024;

const CHANGES_SCHEMA = new Set(['CREATE', 'ALTER', 'DROP']);

/** Read-only statements by first word. WITH may write. */
const ONLY_READS = new Set(['SELECT', 'VALUES', 'PRAGMA', 'EXPLAIN']);

type Bound = null | number | bigint | string | Buffer;
type Row = readonly (null | number | bigint | string | Uint8Array)[];
type Statement = ReturnType<InstanceType<typeof DatabaseSync>['prepare']>;

export interface SqliteResult {
  /** The JSON text; undefined when no rows were requested. */
  readonly text: string | undefined;
  readonly rowsAffected: number;
  readonly lastInsertId: bigint | null;
}

interface Prepared {
  readonly statement: Statement;
  /** Empty for a statement without rows. */
  readonly columns: readonly string[];
}

export class SqliteDatabase {
  readonly #database: InstanceType<typeof DatabaseSync>;
  readonly #prepared = new Map<string, Prepared>();
  readonly #schemaVersion: Statement;
  readonly #changes: Statement;
  readonly #isReadOnly: boolean;
  #seenSchema: unknown;
  #sharesSnapshots = false;
  #hasSnapshot = false;

  /**
   * @param access `create` creates a missing file; `read` is read-only
   * @param maxSizeMb maximum size of the file, MiB; a larger one does not grow
   */
  constructor(path: string, access: 'create' | 'write' | 'read', maxSizeMb: number) {
    this.#isReadOnly = access === 'read';
    const location = pathToFileURL(path);
    location.search = { create: '?mode=rwc', write: '?mode=rw', read: '?mode=ro' }[access];
    this.#database = new DatabaseSync(location, {
      readOnly: this.#isReadOnly,
      enableForeignKeyConstraints: true,
      timeout: BUSY_TIMEOUT_MS,
      // Keeps 64 bit integers exact.
      readBigInts: true,
      returnArrays: true,
      limits: { length: MAX_VALUE_BYTES },
    });
    if (!this.#isReadOnly) {
      this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
      const [pageBytes] = this.#database.prepare('PRAGMA page_size').get() as readonly [bigint];
      const maxPages = (BigInt(maxSizeMb) * 1024n * 1024n) / pageBytes;
      this.#database.exec(
        `PRAGMA max_page_count = ${maxPages}; PRAGMA journal_size_limit = ${KEPT_WAL_BYTES}`,
      );
    }
    // A service is one file, so ATTACH is denied. VACUUM attaches a file without a name.
    this.#database.setAuthorizer((action, file) =>
      action === constants.SQLITE_ATTACH && file !== '' ? constants.SQLITE_DENY : constants.SQLITE_OK,
    );
    this.#schemaVersion = this.#database.prepare('PRAGMA schema_version');
    this.#changes = this.#database.prepare('SELECT total_changes(), changes(), last_insert_rowid()');
    this.noticeSchema();
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction && !this.#hasSnapshot;
  }

  /** Discards prepared statements after a schema change, because their column names may have changed. */
  noticeSchema(): void {
    const [version] = this.#schemaVersion.get() as Row;
    if (version === this.#seenSchema) return;
    this.#seenSchema = version;
    this.#prepared.clear();
    // Reloads the schema: preparing a statement uses the one in memory, running one reads it again.
    this.#database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').all();
  }

  /**
   * Until `endSnapshot`, SELECT statements that follow each other run in one read transaction: to lock the file costs
   * as much as to read a row, and one lock serves them all.
   */
  shareSnapshots(): void {
    this.#sharesSnapshots = true;
  }

  endSnapshot(): void {
    this.#sharesSnapshots = false;
    this.#leaveSnapshot();
  }

  #enterSnapshot(): void {
    if (this.#hasSnapshot || this.#database.isTransaction) return;
    this.#database.exec('BEGIN');
    this.#hasSnapshot = true;
  }

  #leaveSnapshot(): void {
    if (!this.#hasSnapshot) return;
    this.#hasSnapshot = false;
    // Some errors have ended it.
    if (this.#database.isTransaction) this.#database.exec('COMMIT');
  }

  /**
   * Runs a statement of a handler.
   * @throws ServiceError or SqliteError
   */
  run(statement: SqlStatement, wantsRows: boolean, inTransaction: boolean): SqliteResult {
    try {
      return this.#runStatement(statement, wantsRows, inTransaction);
    } finally {
      this.#requireClean(inTransaction);
    }
  }

  /** Rolls back a transaction that a statement has left open despite the checks. */
  #requireClean(inTransaction: boolean): void {
    if (!inTransaction && !this.#hasSnapshot && this.#database.isTransaction) {
      this.#database.exec('ROLLBACK');
      throw new ServiceError(
        'invalid',
        'the statement has left a transaction open, which was rolled back: begin, commit and rollback are operations of their own',
      );
    }
  }

  #runStatement(given: SqlStatement, wantsRows: boolean, inTransaction: boolean): SqliteResult {
    // Before preparing: some pragmas take effect when they are prepared.
    const scanned = checkStatement(given, 'sqlite', inTransaction);
    requireOne(scanned);
    if (scanned.words[0] !== 'SELECT') this.#leaveSnapshot();
    else if (this.#sharesSnapshots) this.#enterSnapshot();
    const { statement, columns } = this.#prepare(scanned.sql);
    const bound = given.params.map(toBound);
    const before = ONLY_READS.has(scanned.words[0] ?? '') ? undefined : this.#counts().total;
    const result = new ResultText(columns);
    if (columns.length === 0) {
      statement.run(...bound);
    } else {
      for (const row of statement.iterate(...bound) as Iterable<Row>) {
        if (wantsRows && !result.addRow(encodeRow(row))) throw resultTooLarge();
      }
    }
    const { rowsAffected, lastInsertId } = this.#effects(scanned, before);
    const text = wantsRows ? result.finish(rowsAffected, String(lastInsertId)) : undefined;
    return { text, rowsAffected, lastInsertId };
  }

  /** @param before total changes before the statement; undefined when it is read-only */
  #effects({ words }: ScannedSql, before: bigint | undefined): Omit<SqliteResult, 'text'> {
    if (CHANGES_SCHEMA.has(words[0] ?? '')) this.#prepared.clear();
    if (before === undefined) return { rowsAffected: 0, lastInsertId: null };
    const { total, changes, lastInsertId } = this.#counts();
    // `changes` and `lastInsertId` are those of the last statement that changed rows.
    const rowsAffected = total === before ? 0 : Number(changes);
    const inserts = words[0] === 'INSERT' || words[0] === 'REPLACE';
    return { rowsAffected, lastInsertId: inserts && rowsAffected > 0 ? lastInsertId : null };
  }

  #counts(): { total: bigint; changes: bigint; lastInsertId: bigint } {
    const [total, changes, lastInsertId] = this.#changes.get() as [bigint, bigint, bigint];
    return { total, changes, lastInsertId };
  }

  #prepare(sql: string): Prepared {
    const before = this.#prepared.get(sql);
    if (before) return before;
    const statement = this.#database.prepare(sql);
    const prepared = { statement, columns: statement.columns().map(({ name }) => name) };
    if (this.#prepared.size >= PREPARED) {
      const [oldest] = this.#prepared.keys();
      if (oldest !== undefined) this.#prepared.delete(oldest);
    }
    this.#prepared.set(sql, prepared);
    return prepared;
  }

  /** Runs BEGIN, COMMIT or ROLLBACK. */
  control(sql: string): void {
    this.#leaveSnapshot();
    this.#database.exec(sql);
  }

  /**
   * Moves the content of the WAL to the file, as far as no other program reads it. Not possible in a transaction.
   * @returns whether it was moved completely, so that the WAL begins anew
   */
  checkpoint(): boolean {
    this.#leaveSnapshot();
    if (this.#database.isTransaction) return false;
    const [busy, inWal, moved] = this.#database
      .prepare('PRAGMA wal_checkpoint(PASSIVE)')
      .get() as readonly bigint[];
    return busy === 0n && inWal === moved;
  }

  version(): string {
    const [version] = this.#database.prepare('SELECT sqlite_version()').get() as Row;
    return String(version);
  }

  /** Checkpoints the WAL first, because the library does not remove it on close. */
  close(): void {
    if (!this.#isReadOnly) {
      this.#database.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)');
    }
    this.#database.close();
  }
}

/** Refuses several statements, because the library runs only the first. */
function requireOne({ statements }: ScannedSql): void {
  if (statements === 'one') return;
  const problem =
    statements === 'none' ? 'has no statement' : 'has more than one statement: send one at a time';
  throw new ServiceError('invalid', `the text ${problem}`);
}

/** Integers become `bigint`, because the library binds a number as a float. */
function toBound(value: SqlValue): Bound {
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === 'bigint' && (value < INT64.lowest || value > INT64.highest)) {
    throw integerTooLarge(value);
  }
  const bound = value instanceof JsonText ? value.text : value;
  if (typeof bound === 'string' && bound.includes('\0')) {
    throw new ServiceError(
      'invalid',
      'a text with the character U+0000 is cut there by SQLite: send it as blob',
    );
  }
  return bound;
}

function encodeRow(row: Row): string {
  let text = '';
  for (let i = 0; i < row.length; i++) {
    if (i > 0) text += ',';
    text += encodeJson(row[i]);
  }
  return text;
}
