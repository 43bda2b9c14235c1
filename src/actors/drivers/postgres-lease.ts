/** A connection to PostgreSQL, while a call or a transaction has it. */
import type pg from 'pg';
import type { DriverAnswer, DriverCall } from '../driver.js';
import { ServiceError } from '../service-error.js';
import type { Lease } from '../sql/pooled-connection.js';
import type { PreparedCall } from '../sql/prepare-call.js';
import type { Sockets } from '../sql/sockets.js';
import { JsonText, type SqlValue } from '../sql/statement.js';
import type { PostgresConfig } from './postgres-connect.js';
import { isStalePlan } from './postgres-errors.js';
import { PostgresQuery, type PostgresResult } from './postgres-query.js';
import type { SessionClient } from './postgres-session.js';
import type { PostgresTypes } from './postgres-types.js';

/** Cancelling may take this long. */
const CANCEL_TIMEOUT_MS = 5_000;

export class PostgresLease implements Lease {
  isOver = false;

  constructor(
    private readonly client: LeasedClient,
    private readonly types: PostgresTypes,
    private readonly config: PostgresConfig,
    private readonly sockets: Sockets,
  ) {}

  async run({ sql, params, wantsRows }: PreparedCall, call: DriverCall | undefined): Promise<DriverAnswer> {
    const values = params.map(toText);
    let result: PostgresResult;
    try {
      result = await this.send(sql, values, wantsRows, call);
    } catch (thrown) {
      if (!isStalePlan(thrown) || this.client.getTransactionStatus() !== 'I') throw thrown;
      // The statement was forgotten with the error, so this prepares it anew.
      result = await this.send(sql, values, wantsRows, call);
    }
    const text = result.text(this.client);
    if (text !== undefined) return { payload: typeof text === 'string' ? text : await text };
    return { result: { rows_affected: result.rowsAffected, last_insert_id: null } };
  }

  async control(sql: 'BEGIN' | 'COMMIT' | 'ROLLBACK', call: DriverCall | undefined): Promise<string> {
    return (await this.send(sql, [], false, call)).command;
  }

  release(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.client.release(!this.client.isClean);
  }

  destroy(): void {
    if (this.isOver) return;
    this.isOver = true;
    cancel(this.client, this.config, this.sockets);
    this.client.release(true);
  }

  /** Runs one statement; when it is aborted, or its result is too large, the connection is destroyed. */
  private send(
    sql: string,
    values: readonly (string | Buffer | null)[],
    wantsRows: boolean,
    call: DriverCall | undefined,
  ): Promise<PostgresResult> {
    return new Promise((resolve, reject) => {
      call?.onAbort(() => {
        this.destroy();
        reject(new ServiceError('deadline', 'the statement was cancelled'));
      });
      // It was aborted before.
      if (this.isOver) return;
      const query = new PostgresQuery(sql, values, this.types, wantsRows, (error, result) => {
        call?.onAbort(undefined);
        if (result) return resolve(result);
        // Rows of it are still on their way.
        if (error instanceof ServiceError) this.destroy();
        reject(error);
      });
      this.client.query(query);
    });
  }
}

/** Parameters go as text, and PostgreSQL finds their types; bytes go as they are. */
function toText(value: SqlValue): string | Buffer | null {
  if (value === null || typeof value === 'string' || Buffer.isBuffer(value)) return value;
  return value instanceof JsonText ? value.text : String(value);
}

/** As the pool gives it out. */
export type LeasedClient = SessionClient & pg.PoolClient & BackendKey;

/** What the server told about a connection, for cancelling. */
interface BackendKey {
  readonly processID: number;
  readonly secretKey: number;
}

/** Asks the server to end the statement that a connection runs; as good as it gets, there is no answer. */
function cancel(
  { processID, secretKey }: BackendKey,
  { host, port }: PostgresConfig,
  sockets: Sockets,
): void {
  if (sockets.isClosed) return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(request.length, 0);
  request.writeInt32BE(80_877_102, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  const socket = sockets.create();
  socket.on('error', () => undefined);
  socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy());
  socket.connect(port, host, () => socket.end(request));
  socket.resume();
}
