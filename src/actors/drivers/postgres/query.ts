/**
 * One statement on one connection to PostgreSQL, in the extended query protocol. Rows become JSON text as they arrive,
 * and statements are prepared once per connection.
 */
import type pg from 'pg';
import { ServiceError } from '../../service-error.js';
import { MAX_RECEIVED_BYTES, ResultText, resultTooLarge } from '../../sql/result-text.js';
import { isStalePlan } from './errors.js';
import type { Encoder, PostgresTypes } from './types.js';

type Row = readonly (string | null)[];

export interface PostgresResult {
  readonly rowsAffected: number;
  /** The command tag, e.g. `COMMIT`, or `ROLLBACK` when a failed transaction was committed. */
  readonly command: string;
  /** The JSON text; undefined when no rows were requested. Looks up unknown types first. */
  text(client: pg.ClientBase): Promise<string> | string | undefined;
}

/** Passed to `client.query`, which calls its methods. */
export class PostgresQuery implements pg.Submittable {
  readonly #sql: string;
  readonly #values: readonly (string | Buffer | null)[];
  readonly #types: PostgresTypes;
  readonly #wantsRows: boolean;
  readonly #done: (error: unknown, result?: PostgresResult) => void;
  #session: Session | undefined;
  #name = '';
  #isNew = false;
  #columns: Columns | undefined;
  #encoders: readonly (Encoder | undefined)[] = [];
  #text: ResultText | undefined;
  /** Rows with types that must be looked up first. */
  readonly #pending: Row[] = [];
  #tag = '';
  #bytes = 0;
  #settled = false;

  /**
   * @param wantsRows whether the result includes rows
   * @param done called once, with an error or the result
   */
  constructor(
    sql: string,
    values: readonly (string | Buffer | null)[],
    types: PostgresTypes,
    wantsRows: boolean,
    done: (error: unknown, result?: PostgresResult) => void,
  ) {
    this.#sql = sql;
    this.#values = values;
    this.#types = types;
    this.#wantsRows = wantsRows;
    this.#done = done;
  }

  submit(connection: pg.Connection): void {
    const session = sessionOf(connection);
    const prepared = session.prepared.get(this.#sql);
    this.#session = session;
    session.active = this;
    this.#isNew = !prepared;
    this.#name = prepared?.name ?? session.newName();
    if (prepared?.columns) this.#begin(prepared.columns);
    const messages = executeMessages(this.#name, this.#values, this.#isNew);
    const { stream } = connection;
    // The library reports the error of a closed connection.
    if (!stream.writable) return;
    if (!this.#isNew && session.obsolete.length === 0) {
      stream.write(messages);
      return;
    }
    stream.cork();
    for (const name of session.obsolete.splice(0)) connection.close({ type: 'S', name }, true);
    if (this.#isNew) connection.parse({ text: this.#sql, name: this.#name, types: [] }, true);
    stream.write(messages);
    stream.uncork();
  }

  /** To be called with the number of bytes received on the connection. */
  received(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_RECEIVED_BYTES) this.#settle(resultTooLarge());
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#begin({ names: fields.map(({ name }) => name), oids: fields.map(({ dataTypeID }) => dataTypeID) });
  }

  handleDataRow({ fields, length }: { readonly fields: Row; readonly length: number }): void {
    if (this.#settled || !this.#wantsRows) return;
    if (!this.#text) {
      this.#pending.push(fields);
      this.#bytes += length;
    } else if (!this.#text.addRow(encodeRow(fields, this.#encoders as readonly Encoder[]))) {
      this.#settle(resultTooLarge());
    }
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#tag = text;
  }

  handleEmptyQuery(): void {
    // No result, as before the first message.
  }

  handlePortalSuspended(): void {
    this.#settle(new ServiceError('backend', 'the server has sent a partial result without request'));
  }

  handleCopyInResponse(): void {
    this.#settle(new ServiceError('backend', 'the server expects COPY data, which is not supported'));
  }

  handleCopyData(): void {
    this.#settle(new ServiceError('backend', 'the server has sent data outside of rows'));
  }

  handleError(error: unknown): void {
    // A new statement may or may not have been prepared.
    if (this.#isNew && this.#name !== '') this.#session?.obsolete.push(this.#name);
    else if (isStalePlan(error)) this.#session?.remove(this.#sql);
    this.#settle(error);
  }

  handleReadyForQuery(): void {
    if (this.#isNew) this.#session?.add(this.#sql, { name: this.#name, columns: this.#columns });
    this.#settle(undefined);
  }

  #begin(columns: Columns): void {
    this.#columns = columns;
    this.#encoders = columns.oids.map((oid) => this.#types.encoder(oid));
    if (this.#wantsRows && !this.#encoders.includes(undefined)) this.#text = new ResultText(columns.names);
  }

  #settle(error: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    if (this.#session?.active === this) this.#session.active = undefined;
    if (error !== undefined) this.#done(error);
    else this.#done(undefined, this.#result());
  }

  #result(): PostgresResult {
    const rowsAffected = this.#rowsAffected();
    return {
      rowsAffected,
      command: this.#tag,
      text: (client) => {
        if (!this.#wantsRows) return undefined;
        if (this.#text) return this.#text.finish(rowsAffected);
        return this.#columns
          ? this.#lateText(client, this.#columns)
          : new ResultText([]).finish(rowsAffected);
      },
    };
  }

  /** From tags like `INSERT 0 5`; `SELECT 5` counts only for CREATE TABLE ... AS. */
  #rowsAffected(): number {
    const changed = /^(?:INSERT \d+|UPDATE|DELETE|MERGE|SELECT) (\d+)$/.exec(this.#tag)?.[1];
    return changed === undefined || (this.#columns && this.#tag.startsWith('S')) ? 0 : Number(changed);
  }

  async #lateText(client: pg.ClientBase, { names, oids }: Columns): Promise<string> {
    const unknown = new Set(oids.filter((oid) => !this.#types.encoder(oid)));
    if (unknown.size > 0) await this.#types.learn(client, [...unknown]);
    const encoders = oids.map((oid) => this.#types.encoder(oid) ?? JSON.stringify);
    const text = new ResultText(names);
    for (const row of this.#pending) if (!text.addRow(encodeRow(row, encoders))) throw resultTooLarge();
    return text.finish(this.#rowsAffected());
  }
}

function encodeRow(row: Row, encoders: readonly Encoder[]): string {
  let text = '';
  for (let i = 0; i < row.length; i++) {
    const value = row[i];
    if (i > 0) text += ',';
    text += value === null || value === undefined ? 'null' : (encoders[i] as Encoder)(value);
  }
  return text;
}

/** Maximum number of prepared statements per connection; the oldest is evicted. */
const PREPARED = 200;

interface Columns {
  readonly names: readonly string[];
  readonly oids: readonly number[];
}

interface Prepared {
  readonly name: string;
  /** Undefined for a statement without rows. */
  readonly columns: Columns | undefined;
}

/** The prepared statements of a connection. */
class Session {
  readonly prepared = new Map<string, Prepared>();
  /** Names to close together with the next statement. */
  readonly obsolete: string[] = [];
  active: PostgresQuery | undefined;
  #names = 0;

  constructor(connection: pg.Connection) {
    connection.stream.prependListener('data', (bytes: Buffer) => this.active?.received(bytes.length));
  }

  newName(): string {
    this.#names++;
    return `s${this.#names}`;
  }

  add(sql: string, prepared: Prepared): void {
    if (this.prepared.size >= PREPARED) {
      const [oldest] = this.prepared.keys();
      if (oldest !== undefined) this.remove(oldest);
    }
    this.prepared.set(sql, prepared);
  }

  remove(sql: string): void {
    const prepared = this.prepared.get(sql);
    if (!prepared) return;
    this.prepared.delete(sql);
    this.obsolete.push(prepared.name);
  }
}

const sessions = new WeakMap<pg.Connection, Session>();

/** Only for an open connection, because the TLS handshake replaces its socket. */
function sessionOf(connection: pg.Connection): Session {
  let session = sessions.get(connection);
  if (!session) {
    session = new Session(connection);
    sessions.set(connection, session);
  }
  return session;
}

/*
 * Messages of the extended query protocol. All messages of a statement are written as one buffer, because the single
 * writes of the library cost more than the rest of a call.
 */

/** Describe of the unnamed portal. */
const DESCRIBE = Buffer.from([0x44, 0, 0, 0, 6, 0x50, 0]);
/** Execute of the unnamed portal without row limit; Sync. */
const EXECUTE_SYNC = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4]);

/**
 * Bind, optionally Describe, Execute and Sync.
 * @param name of the prepared statement, in ASCII
 * @param values strings are sent as text, buffers in binary format
 */
function executeMessages(
  name: string,
  values: readonly (string | Buffer | null)[],
  describe: boolean,
): Buffer {
  const hasBytes = values.some((value) => typeof value === 'object' && value !== null);
  const formats = hasBytes ? values.length : 0;
  const lengths = values.map(lengthOf);
  let length = 4 + 1 + name.length + 1 + 2 + 2 * formats + 2 + 2;
  for (const bytes of lengths) length += 4 + Math.max(bytes, 0);
  const tail = describe ? DESCRIBE.length + EXECUTE_SYNC.length : EXECUTE_SYNC.length;
  const buffer = Buffer.allocUnsafe(1 + length + tail);
  buffer[0] = 0x42;
  buffer.writeInt32BE(length, 1);
  buffer[5] = 0;
  let at = 6 + buffer.write(name, 6, 'latin1');
  buffer[at++] = 0;
  at = buffer.writeUInt16BE(formats, at);
  if (hasBytes) for (const value of values) at = buffer.writeInt16BE(Buffer.isBuffer(value) ? 1 : 0, at);
  at = buffer.writeUInt16BE(values.length, at);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    at = buffer.writeInt32BE(lengths[i] as number, at);
    if (typeof value === 'string') at += buffer.write(value, at);
    else if (value) at += value.copy(buffer, at);
  }
  // Results in text format.
  at = buffer.writeInt16BE(0, at);
  if (describe) at += DESCRIBE.copy(buffer, at);
  EXECUTE_SYNC.copy(buffer, at);
  return buffer;
}

/** -1 stands for null. */
function lengthOf(value: string | Buffer | null): number {
  if (value === null) return -1;
  return typeof value === 'string' ? Buffer.byteLength(value) : value.length;
}
