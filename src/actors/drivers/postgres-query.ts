/**
 * One statement on one connection to PostgreSQL, by the extended protocol. Rows become JSON text as they arrive, and
 * what is sent again is prepared once per connection.
 */
import type pg from 'pg';
import { ServiceError } from '../service-error.js';
import { MAX_RECEIVED_BYTES, ResultText, resultTooLarge } from '../sql/result-text.js';
import { isStalePlan } from './postgres-errors.js';
import { executeMessages } from './postgres-messages.js';
import { type Columns, type Session, sessionOf } from './postgres-session.js';
import type { Encoder, PostgresTypes } from './postgres-types.js';

type Row = readonly (string | null)[];

/** What is answered. */
export interface PostgresResult {
  readonly rowsAffected: number;
  /** `COMMIT`, or `ROLLBACK` when there was nothing to commit. */
  readonly command: string;
  /** The JSON text; undefined when no rows were asked for. Types that were not known yet are looked up for it. */
  text(client: pg.ClientBase): Promise<string> | string | undefined;
}

/** For `client.query`, which calls the methods below. */
export class PostgresQuery implements pg.Submittable {
  private session: Session | undefined;
  private name = '';
  private isNew = false;
  private columns: Columns | undefined;
  private encoders: readonly (Encoder | undefined)[] = [];
  private text: ResultText | undefined;
  /** Rows with a type that has to be looked up first. */
  private readonly pending: Row[] = [];
  private tag = '';
  private bytes = 0;
  private settled = false;

  /**
   * @param wantsRows whether to answer with them
   * @param done called once, with an error or the result
   */
  constructor(
    private readonly sql: string,
    private readonly values: readonly (string | Buffer | null)[],
    private readonly types: PostgresTypes,
    private readonly wantsRows: boolean,
    private readonly done: (error: unknown, result?: PostgresResult) => void,
  ) {}

  submit(connection: pg.Connection): void {
    const session = sessionOf(connection);
    const prepared = session.prepared.get(this.sql);
    this.session = session;
    session.active = this;
    this.isNew = !prepared;
    this.name = prepared?.name ?? session.newName();
    if (prepared?.columns) this.begin(prepared.columns);
    const messages = executeMessages(this.name, this.values, this.isNew);
    const { stream } = connection;
    // Where it is closed already, the library tells the error.
    if (!stream.writable) return;
    if (!this.isNew && session.obsolete.length === 0) {
      stream.write(messages);
      return;
    }
    stream.cork();
    for (const name of session.obsolete.splice(0)) connection.close({ type: 'S', name }, true);
    if (this.isNew) connection.parse({ text: this.sql, name: this.name, types: [] }, true);
    stream.write(messages);
    stream.uncork();
  }

  /** The connection has received so many bytes more. */
  received(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > MAX_RECEIVED_BYTES) this.settle(resultTooLarge());
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.begin({ names: fields.map(({ name }) => name), oids: fields.map(({ dataTypeID }) => dataTypeID) });
  }

  handleDataRow({ fields, length }: { readonly fields: Row; readonly length: number }): void {
    if (this.settled || !this.wantsRows) return;
    if (!this.text) {
      this.pending.push(fields);
      this.bytes += length;
    } else if (!this.text.addRow(encodeRow(fields, this.encoders as readonly Encoder[]))) {
      this.settle(resultTooLarge());
    }
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.tag = text;
  }

  handleEmptyQuery(): void {
    // It has no result, which is what there is before one arrives.
  }

  handlePortalSuspended(): void {
    this.settle(new ServiceError('backend', 'the server has sent rows in parts, which nobody asked for'));
  }

  handleCopyInResponse(): void {
    this.settle(new ServiceError('backend', 'the server waits for data that there is not'));
  }

  handleCopyData(): void {
    this.settle(new ServiceError('backend', 'the server has sent data outside of rows'));
  }

  handleError(error: unknown): void {
    // The server may or may not have got as far as preparing a new one.
    if (this.isNew && this.name !== '') this.session?.obsolete.push(this.name);
    else if (isStalePlan(error)) this.session?.remove(this.sql);
    this.settle(error);
  }

  handleReadyForQuery(): void {
    if (this.isNew) this.session?.add(this.sql, { name: this.name, columns: this.columns });
    this.settle(undefined);
  }

  private begin(columns: Columns): void {
    this.columns = columns;
    this.encoders = columns.oids.map((oid) => this.types.encoder(oid));
    if (this.wantsRows && !this.encoders.includes(undefined)) this.text = new ResultText(columns.names);
  }

  private settle(error: unknown): void {
    if (this.settled) return;
    this.settled = true;
    if (this.session?.active === this) this.session.active = undefined;
    if (error !== undefined) this.done(error);
    else this.done(undefined, this.result());
  }

  private result(): PostgresResult {
    const rowsAffected = this.rowsAffected();
    return {
      rowsAffected,
      command: this.tag,
      text: (client) => {
        if (!this.wantsRows) return undefined;
        if (this.text) return this.text.finish(rowsAffected);
        return this.columns ? this.lateText(client, this.columns) : new ResultText([]).finish(rowsAffected);
      },
    };
  }

  /** `INSERT 0 5`, `UPDATE 5`; `SELECT 5` counts rows that were made by CREATE TABLE ... AS. */
  private rowsAffected(): number {
    const changed = /^(?:INSERT \d+|UPDATE|DELETE|MERGE|SELECT) (\d+)$/.exec(this.tag)?.[1];
    return changed === undefined || (this.columns && this.tag.startsWith('S')) ? 0 : Number(changed);
  }

  private async lateText(client: pg.ClientBase, { names, oids }: Columns): Promise<string> {
    const unknown = new Set(oids.filter((oid) => !this.types.encoder(oid)));
    if (unknown.size > 0) await this.types.learn(client, [...unknown]);
    const encoders = oids.map((oid) => this.types.encoder(oid) ?? JSON.stringify);
    const text = new ResultText(names);
    for (const row of this.pending) if (!text.addRow(encodeRow(row, encoders))) throw resultTooLarge();
    return text.finish(this.rowsAffected());
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
