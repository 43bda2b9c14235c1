/** An open SQLite file: runs statements and writes their rows as JSON. */
import Sqlite from 'better-sqlite3';
import { encodeJson } from '../exact-json.js';
import { ServiceError } from '../service-error.js';
import { checkParamCount, type ScannedSql, scanSql } from '../sql/placeholders.js';
import { refuseHarmful } from '../sql/refused-statements.js';
import { ResultText, resultTooLarge } from '../sql/result-text.js';
import { INT64, JsonText, type SqlStatement, type SqlValue } from '../sql/statement.js';

/** Statements kept prepared; the oldest goes. */
const PREPARED = 500;
/** How long a lock that another process holds is waited for. */
const BUSY_TIMEOUT_MS = 5_000;

const CHANGES_SCHEMA = new Set(['CREATE', 'ALTER', 'DROP']);

type Bound = null | number | bigint | string | Buffer;
type Row = readonly Bound[];

export interface SqliteResult {
  /** The JSON text; undefined when no rows were asked for. */
  readonly text: string | undefined;
  readonly rowsAffected: number;
  readonly lastInsertId: bigint | null;
}

interface Prepared {
  readonly statement: Sqlite.Statement<unknown[], Row>;
  readonly columns: readonly string[];
}

export class SqliteDatabase {
  private readonly database: Sqlite.Database;
  private readonly prepared = new Map<string, Prepared>();
  private readonly schemaVersion: Sqlite.Statement<unknown[], unknown>;
  private readonly changes: Sqlite.Statement<unknown[], unknown>;
  private readonly lastInsertId: Sqlite.Statement<unknown[], unknown>;
  private readonly files: Sqlite.Statement<unknown[], string>;
  private seenSchema: unknown;

  /** @param access `create` makes a missing file; `read` may not write */
  constructor(path: string, access: 'create' | 'write' | 'read') {
    this.database = new Sqlite(path, {
      readonly: access === 'read',
      fileMustExist: access !== 'create',
      timeout: BUSY_TIMEOUT_MS,
    });
    if (access !== 'read') this.database.pragma('journal_mode = WAL');
    this.database.pragma('foreign_keys = ON');
    this.schemaVersion = this.database.prepare<unknown[], unknown>('PRAGMA schema_version').pluck();
    this.changes = this.database.prepare<unknown[], unknown>('SELECT changes()').pluck();
    this.lastInsertId = this.database
      .prepare<unknown[], unknown>('SELECT last_insert_rowid()')
      .pluck()
      .safeIntegers();
    this.files = this.database.prepare<unknown[], string>('SELECT name FROM pragma_database_list').pluck();
    this.noticeSchema();
  }

  get isInTransaction(): boolean {
    return this.database.inTransaction;
  }

  /** Forgets prepared statements when the schema has changed, because the names of their columns may have. */
  noticeSchema(): void {
    const version = this.schemaVersion.get();
    if (version === this.seenSchema) return;
    this.seenSchema = version;
    this.prepared.clear();
    // Statements are prepared with the schema that is in memory; running one reads it anew.
    this.database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').all();
  }

  /**
   * Runs a statement of a handler.
   * @throws ServiceError or SqliteError
   */
  run(statement: SqlStatement, wantsRows: boolean, inTransaction: boolean): SqliteResult {
    try {
      return this.runStatement(statement, wantsRows, inTransaction);
    } finally {
      this.requireClean(inTransaction);
    }
  }

  /** What the text of a statement did not show, its traces do: the connection is for the next call as it was before. */
  private requireClean(inTransaction: boolean): void {
    if (!inTransaction && this.database.inTransaction) {
      this.database.exec('ROLLBACK');
      throw new ServiceError(
        'invalid',
        'the statement has left a transaction open, which was rolled back: begin, commit and rollback are operations of their own',
      );
    }
  }

  private runStatement(
    { sql, params }: SqlStatement,
    wantsRows: boolean,
    inTransaction: boolean,
  ): SqliteResult {
    const scanned = scanSql(sql, 'sqlite');
    // First: some pragmas have their effect as soon as they are prepared.
    refuseHarmful(scanned, 'sqlite', inTransaction);
    checkParamCount(scanned, params.length, 'sqlite');
    const { statement, columns } = this.prepare(scanned.sql);
    const bound = bind(params, scanned.numbered);
    if (!statement.reader) return this.write(statement, bound, wantsRows, scanned);
    const result = new ResultText(columns);
    for (const row of statement.iterate(...bound)) {
      if (wantsRows && !result.addRow(encodeRow(row))) throw resultTooLarge();
    }
    const rowsAffected = statement.readonly ? 0 : Number(this.changes.get());
    const lastInsertId = statement.readonly ? null : this.insertedId(scanned, rowsAffected);
    return {
      text: wantsRows ? result.finish(rowsAffected, String(lastInsertId)) : undefined,
      rowsAffected,
      lastInsertId,
    };
  }

  private prepare(sql: string): Prepared {
    const before = this.prepared.get(sql);
    if (before) return before;
    const statement = this.database.prepare<unknown[], Row>(sql).safeIntegers();
    const columns = statement.reader
      ? statement
          .raw()
          .columns()
          .map(({ name }) => name)
      : [];
    if (this.prepared.size >= PREPARED) {
      const [oldest] = this.prepared.keys();
      if (oldest !== undefined) this.prepared.delete(oldest);
    }
    const prepared = { statement, columns };
    this.prepared.set(sql, prepared);
    return prepared;
  }

  private write(
    statement: Sqlite.Statement<unknown[], Row>,
    bound: readonly unknown[],
    wantsRows: boolean,
    scanned: ScannedSql,
  ): SqliteResult {
    const rowsAffected = statement.run(...bound).changes;
    this.detachOthers();
    const lastInsertId = this.insertedId(scanned, rowsAffected);
    const text = wantsRows ? new ResultText([]).finish(rowsAffected, String(lastInsertId)) : undefined;
    if (CHANGES_SCHEMA.has(scanned.words[0] ?? '')) this.prepared.clear();
    return { text, rowsAffected, lastInsertId };
  }

  /** A service is one file, whatever the statement has looked like. */
  private detachOthers(): void {
    const others = this.files.all().filter((name) => name !== 'main' && name !== 'temp');
    if (others.length === 0) return;
    for (const name of others) this.database.prepare('DETACH ?').run(name);
    throw new ServiceError('invalid', 'ATTACH is not possible here: a service is one file');
  }

  /** The database remembers the last one for ever, also when it was not this statement's. */
  private insertedId({ words }: ScannedSql, rowsAffected: number): bigint | null {
    const inserts = words[0] === 'INSERT' || words[0] === 'REPLACE';
    return inserts && rowsAffected > 0 ? (this.lastInsertId.get() as bigint) : null;
  }

  /** Runs a statement of our own: BEGIN, COMMIT, ROLLBACK. */
  control(sql: string): void {
    this.database.exec(sql);
  }

  version(): string {
    return String(this.database.prepare<unknown[], unknown>('SELECT sqlite_version()').pluck().get());
  }

  close(): void {
    this.database.close();
  }
}

/** Arguments of the library: one for each place, or one object by number. */
function bind(params: readonly SqlValue[], isNumbered: boolean): readonly unknown[] {
  const values = params.map(toBound);
  return isNumbered ? [Object.fromEntries(values.map((value, index) => [index + 1, value]))] : values;
}

/** Integers go as such: the library would bind a number as a float. */
function toBound(value: SqlValue): Bound {
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === 'bigint' && (value < INT64.lowest || value > INT64.highest)) {
    throw new ServiceError('invalid', `the integer ${value} does not fit in 64 bits`);
  }
  return value instanceof JsonText ? value.text : value;
}

function encodeRow(row: Row): string {
  let text = '';
  for (let i = 0; i < row.length; i++) {
    if (i > 0) text += ',';
    text += encodeJson(row[i]);
  }
  return text;
}
