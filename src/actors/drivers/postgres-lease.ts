/** A connection to PostgreSQL, while a call or a transaction has it. */
import type pg from 'pg';
import type { DriverCall } from '../driver.js';
import { ServiceError } from '../service-error.js';
import type { Sockets } from '../sql/sockets.js';
import type { PostgresConfig } from './postgres-connect.js';
import { PostgresQuery, type PostgresResult } from './postgres-query.js';
import type { PostgresTypes } from './postgres-types.js';

/** Cancelling may take this long. */
const CANCEL_TIMEOUT_MS = 5_000;

/** A statement as the server takes it. */
export interface PostgresStatement {
  readonly sql: string;
  readonly values: (string | Buffer | null)[];
  readonly wantsRows: boolean;
}

export class PostgresLease {
  isOver = false;

  constructor(
    readonly client: pg.PoolClient,
    private readonly config: PostgresConfig,
    private readonly sockets: Sockets,
  ) {}

  /** Runs one statement; when it is aborted, or its result is too large, the connection is destroyed. */
  run(
    statement: PostgresStatement,
    types: PostgresTypes,
    call: DriverCall | undefined,
  ): Promise<PostgresResult> {
    return new Promise((resolve, reject) => {
      call?.onAbort(() => {
        this.destroy();
        reject(new ServiceError('deadline', 'the statement was cancelled'));
      });
      // It was aborted before.
      if (this.isOver) return;
      const { sql, values, wantsRows } = statement;
      const query = new PostgresQuery(sql, values, types, wantsRows, (error, result) => {
        call?.onAbort(undefined);
        if (result) return resolve(result);
        // Rows of it are still on their way.
        if (error instanceof ServiceError) this.destroy();
        reject(error);
      });
      this.client.query(query);
    });
  }

  /** Gives the connection back; one in an open transaction is closed. */
  release(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.client.release(this.client.getTransactionStatus() !== 'I');
  }

  /** Closes the connection, and cancels what it does on the server. */
  destroy(): void {
    if (this.isOver) return;
    this.isOver = true;
    cancel(this.client as pg.PoolClient & BackendKey, this.config, this.sockets);
    this.client.release(true);
  }
}

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
