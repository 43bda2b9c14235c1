/** A connection to PostgreSQL, leased to a call or a transaction. */
import pg from 'pg';
import type { DriverCall } from '../../driver-call.js';
import type { DriverAnswer } from '../../operations.js';
import { ServiceError } from '../../service-error.js';
import type { Lease, PreparedCall } from '../../sql/pooled-connection.js';
import type { Sockets } from '../../sql/sockets.js';
import { JsonText, type SqlValue } from '../../sql/statement.js';
import type { PostgresConfig } from './errors.js';
import { isStalePlan } from './errors.js';
import { PostgresQuery, type PostgresResult } from './query.js';
import type { PostgresTypes } from './types.js';

/** Timeout of a cancel request. */
const CANCEL_TIMEOUT_MS = 5_000;

export class PostgresLease implements Lease {
  readonly #client: LeasedClient;
  readonly #types: PostgresTypes;
  readonly #config: PostgresConfig;
  readonly #sockets: Sockets;
  isOver = false;

  constructor(client: LeasedClient, types: PostgresTypes, config: PostgresConfig, sockets: Sockets) {
    this.#client = client;
    this.#types = types;
    this.#config = config;
    this.#sockets = sockets;
  }

  async run({ sql, params, wantsRows }: PreparedCall, call: DriverCall | undefined): Promise<DriverAnswer> {
    const values = params.map(toText);
    let result: PostgresResult;
    try {
      result = await this.#send(sql, values, wantsRows, call);
    } catch (thrown) {
      if (!isStalePlan(thrown) || this.#client.getTransactionStatus() !== 'I') throw thrown;
      // The error has removed the prepared statement, so this prepares it again.
      result = await this.#send(sql, values, wantsRows, call);
    }
    const text = result.text(this.#client);
    if (text !== undefined) return { payload: typeof text === 'string' ? text : await text };
    return { result: { rows_affected: result.rowsAffected, last_insert_id: null } };
  }

  async control(sql: 'BEGIN' | 'COMMIT' | 'ROLLBACK', call: DriverCall | undefined): Promise<string> {
    return (await this.#send(sql, [], false, call)).command;
  }

  release(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#client.release(!this.#client.isClean);
  }

  destroy(): void {
    if (this.isOver) return;
    this.isOver = true;
    cancel(this.#client, this.#config, this.#sockets);
    this.#client.release(true);
  }

  /** Runs one statement; the connection is destroyed when it is aborted or its result is too large. */
  #send(
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
      // It was aborted already.
      if (this.isOver) return;
      const query = new PostgresQuery(sql, values, this.#types, wantsRows, (error, result) => {
        call?.onAbort(undefined);
        if (result) return resolve(result);
        // The server is still sending rows.
        if (error instanceof ServiceError) this.destroy();
        reject(error);
      });
      this.#client.query(query);
    });
  }
}

/** Parameters are sent as text, whose types PostgreSQL infers, and bytes in binary format. */
function toText(value: SqlValue): string | Buffer | null {
  if (value === null || typeof value === 'string' || Buffer.isBuffer(value)) return value;
  return value instanceof JsonText ? value.text : String(value);
}

interface ParameterStatus {
  readonly parameterName: string;
  readonly parameterValue: string;
}

/** A client that tracks whether settings that the server reports, like the time zone, have changed. */
export class SessionClient extends pg.Client {
  readonly #initial = new Map<string, string>();
  readonly #changed = new Set<string>();

  constructor(options?: pg.ClientConfig) {
    super(options);
    let isReady = false;
    this.connection.once('readyForQuery', () => {
      isReady = true;
    });
    this.connection.on(
      'parameterStatus',
      ({ parameterName: name, parameterValue: value }: ParameterStatus) => {
        if (!isReady) this.#initial.set(name, value);
        else if (this.#initial.get(name) === value) this.#changed.delete(name);
        else this.#changed.add(name);
      },
    );
  }

  /** Whether no transaction is open and the settings have their initial values. */
  get isClean(): boolean {
    return this.#changed.size === 0 && this.getTransactionStatus() === 'I';
  }
}

/** A client of the pool. */
export type LeasedClient = SessionClient & pg.PoolClient & BackendKey;

/** Data of the server for cancel requests. */
interface BackendKey {
  readonly processID: number;
  readonly secretKey: number;
}

/** Sends a cancel request for the statement in progress. Best effort: the server does not answer it. */
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
