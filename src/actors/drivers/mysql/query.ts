/** One statement on one connection to MySQL or MariaDB. Rows become JSON text as they arrive. */
import type { ExecuteValues, FieldPacket, ResultSetHeader } from 'mysql2';
import { MAX_RECEIVED_BYTES, ResultText, resultTooLarge } from '../../sql/result-text.js';
import { isNotPreparable } from './errors.js';
import { lastStatus, type OpenConnection, SessionStatus } from './session.js';
import { type Encoder, encoderOf } from './types.js';

/** A statement with parameters of the library. */
export interface MysqlStatement {
  readonly sql: string;
  readonly values: ExecuteValues[];
  readonly wantsRows: boolean;
}

export interface MysqlResult {
  readonly rowsAffected: number;
  /** Null when there is none. */
  readonly lastInsertId: bigint | null;
  /** The JSON text; undefined when no rows were asked for. */
  readonly text: string | undefined;
  readonly status: SessionStatus;
}

/** Runs a statement without parameters as text, which takes one round trip. */
export function runText(
  connection: OpenConnection,
  sql: string,
  whenStopped: (stop: (error: Error) => void) => void,
): Promise<MysqlResult> {
  return new Run(connection, { sql, values: [], wantsRows: false }, whenStopped).finished('query');
}

/**
 * Runs a statement.
 * @param whenStopped gets a function that rejects the statement at once
 */
export async function runStatement(
  connection: OpenConnection,
  statement: MysqlStatement,
  whenStopped: (stop: (error: Error) => void) => void,
): Promise<MysqlResult> {
  try {
    return await new Run(connection, statement, whenStopped).finished('execute');
  } catch (thrown) {
    if (!isNotPreparable(thrown) || statement.values.length > 0) throw thrown;
    return new Run(connection, statement, whenStopped).finished('query');
  }
}

class Run {
  readonly #connection: OpenConnection;
  readonly #statement: MysqlStatement;
  readonly #whenStopped: (stop: (error: Error) => void) => void;
  #text: ResultText | undefined;
  #encoders: readonly Encoder[] = [];
  /** Number of results: procedures return several, and the rows of the first are used. */
  #results = 0;
  #header: ResultSetHeader | undefined;
  #endsWithRows = false;
  #received = 0;

  constructor(
    connection: OpenConnection,
    statement: MysqlStatement,
    whenStopped: (stop: (error: Error) => void) => void,
  ) {
    this.#connection = connection;
    this.#statement = statement;
    this.#whenStopped = whenStopped;
  }

  finished(how: 'execute' | 'query'): Promise<MysqlResult> {
    const connection = this.#connection;
    const statement = this.#statement;
    const { stream } = connection;
    return new Promise<void>((resolve, reject) => {
      const onData = (bytes: Buffer) => {
        this.#received += bytes.length;
        if (this.#received > MAX_RECEIVED_BYTES) end(resultTooLarge());
      };
      const end = (error?: Error) => {
        stream.off('data', onData);
        connection.off('error', end);
        if (error) reject(error);
        else resolve();
      };
      this.#whenStopped(end);
      stream.prependListener('data', onData);
      // The library does not report a lost connection on the statement.
      connection.once('error', end);
      const { sql, values } = statement;
      const command =
        how === 'execute'
          ? connection.execute({ sql, values, rowsAsArray: true })
          : connection.query({ sql, rowsAsArray: true });
      command.on('error', end);
      command.on('fields', (fields: readonly FieldPacket[] | undefined) => this.#begin(fields));
      command.on('result', (row: readonly unknown[] | ResultSetHeader) => {
        if (!this.#add(row)) end(resultTooLarge());
      });
      command.on('end', () => end());
    }).then(() => this.#result());
  }

  #begin(fields: readonly FieldPacket[] | undefined): void {
    this.#results++;
    this.#endsWithRows = fields !== undefined;
    if (!fields || this.#results > 1 || !this.#statement.wantsRows) return;
    this.#text = new ResultText(fields.map(({ name }) => name));
    this.#encoders = fields.map(encoderOf);
  }

  /** @returns false when the result has become too large */
  #add(row: readonly unknown[] | ResultSetHeader): boolean {
    if (!isRow(row)) {
      this.#header = row;
      return true;
    }
    if (!this.#text || this.#results > 1) return true;
    let text = '';
    for (let i = 0; i < row.length; i++) {
      const value = row[i];
      if (i > 0) text += ',';
      text += value === null ? 'null' : (this.#encoders[i] as Encoder)(value);
    }
    return this.#text.addRow(text);
  }

  #result(): MysqlResult {
    const rowsAffected = this.#header?.affectedRows ?? 0;
    const id = BigInt(this.#header?.insertId ?? 0);
    const lastInsertId = id === 0n ? null : id;
    const text = this.#statement.wantsRows
      ? (this.#text ?? new ResultText([])).finish(rowsAffected, String(lastInsertId))
      : undefined;
    return { rowsAffected, lastInsertId, text, status: this.#status() };
  }

  #status(): SessionStatus {
    const header = this.#header;
    return header && !this.#endsWithRows
      ? new SessionStatus(header.serverStatus)
      : lastStatus(this.#connection);
  }
}

function isRow(row: readonly unknown[] | ResultSetHeader): row is readonly unknown[] {
  return Array.isArray(row);
}
