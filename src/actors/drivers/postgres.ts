/**
 * PostgreSQL: a pool of connections, one per call or transaction. A call that nobody waits for any more is cancelled on
 * the server, and its connection is closed.
 */
import type pg from 'pg';
import { toError } from '../../errors.js';
import type { Connection, Driver, DriverAnswer, DriverCall, DriverContext, Transaction } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { AbortWatch } from '../sql/abort-watch.js';
import { checkParamCount, scanSql } from '../sql/placeholders.js';
import { refuseHarmful } from '../sql/refused-statements.js';
import { Sockets } from '../sql/sockets.js';
import { JsonText, parseStatement, type SqlValue } from '../sql/statement.js';
import { createPool, encryptions, isWithoutTls, type PostgresConfig } from './postgres-connect.js';
import { callError, connectError, isRefusedByRules, isStalePlan } from './postgres-errors.js';
import { PostgresQuery, type PostgresResult } from './postgres-query.js';
import { PostgresTypes } from './postgres-types.js';

/** A connection that does not roll back within this time is closed instead. */
const ROLLBACK_TIMEOUT_MS = 5_000;
/** Parameters are counted in 16 bits. */
const MAX_PARAMS = 65_535;

export const postgresDriver: Driver<'postgres'> = {
  type: 'postgres',
  operations: ['query', 'execute', 'begin', 'commit', 'rollback'],
  concurrency: (config) => config.pool_size,
  connect: async (config, context) => {
    const ways = encryptions(config);
    for (const [index, ssl] of ways.entries()) {
      const connection = new PostgresConnection(config, context, ssl);
      try {
        await connection.open();
        return connection;
      } catch (thrown) {
        await connection.close();
        const mayTryNext = isWithoutTls(thrown) || isRefusedByRules(thrown);
        if (!mayTryNext || index === ways.length - 1 || context.signal.aborted) {
          const names = { database: config.database, sslMode: config.ssl_mode };
          throw connectError(thrown, `${config.host}:${config.port}`, names);
        }
      }
    }
    throw new ServiceError('unavailable', 'there is no way to connect');
  },
};

/** A statement as the server takes it. */
interface Prepared {
  readonly sql: string;
  readonly values: (string | Buffer | null)[];
  readonly wantsRows: boolean;
}

class PostgresConnection implements Connection {
  private readonly sockets = new Sockets();
  private readonly aborts = new AbortWatch();
  private readonly types = new PostgresTypes();
  private readonly pool: pg.Pool;
  private readonly where: string;
  /** Ends the wait of calls that have no connection yet. */
  private readonly waiting = new Set<() => void>();
  private closed = false;

  constructor(
    private readonly config: PostgresConfig,
    private readonly context: DriverContext,
    ssl: Parameters<typeof createPool>[2],
  ) {
    this.where = `${config.host}:${config.port}`;
    this.pool = createPool(config, this.sockets, ssl);
    this.pool.on('connect', (client) => client.on('error', (error) => this.lost(error)));
    // The same errors, of idle connections.
    this.pool.on('error', () => undefined);
  }

  /** Opens the first connection. */
  async open(): Promise<void> {
    const abort = () => this.sockets.destroy();
    this.context.signal.addEventListener('abort', abort);
    try {
      this.context.signal.throwIfAborted();
      (await this.pool.connect()).release();
    } finally {
      this.context.signal.removeEventListener('abort', abort);
    }
  }

  async test(): Promise<string> {
    try {
      const { rows } = await this.pool.query<{ server_version: string }>('SHOW server_version');
      return `PostgreSQL ${rows[0]?.server_version.split(' ')[0]}`;
    } catch (thrown) {
      throw callError(thrown, this.where);
    }
  }

  async call(call: DriverCall): Promise<DriverAnswer> {
    const statement = prepare(call, false);
    const lease = await this.acquire();
    try {
      return await this.answer(lease, statement, call);
    } catch (thrown) {
      if (!isStalePlan(thrown)) throw callError(thrown, this.where);
      // The statement was forgotten with the error, so this prepares it anew.
      return await this.answer(lease, statement, call).catch((again: unknown) => {
        throw callError(again, this.where);
      });
    } finally {
      lease.release();
    }
  }

  async begin(call: DriverCall): Promise<Transaction> {
    const lease = await this.acquire();
    try {
      await lease.run({ sql: 'BEGIN', values: [], wantsRows: false }, this.types, call);
    } catch (thrown) {
      lease.destroy();
      throw callError(thrown, this.where);
    }
    return new PostgresTransaction(lease, this, this.types, this.where);
  }

  async answer(lease: Lease, statement: Prepared, call: DriverCall): Promise<DriverAnswer> {
    const result = await lease.run(statement, this.types, call);
    const text = result.text(lease.client);
    if (text !== undefined) return { payload: await text };
    return { result: { rows_affected: result.rowsAffected, last_insert_id: null } };
  }

  async close(): Promise<void> {
    this.closed = true;
    this.sockets.destroy();
    for (const giveUp of this.waiting) giveUp();
    // Nothing is left to wait for: it would wait for calls that are stuck.
    this.pool
      .end()
      .catch((thrown: unknown) => this.context.log.debug({ err: toError(thrown) }, 'closing a pool'));
  }

  /** Waits for a free connection. */
  private acquire(): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const giveUp = () =>
        reject(new ServiceError('unavailable', `the connection to ${this.where} is closed`));
      if (this.closed) return giveUp();
      this.waiting.add(giveUp);
      this.pool.connect((thrown, client) => {
        this.waiting.delete(giveUp);
        if (!client) {
          const names = { database: this.config.database, sslMode: this.config.ssl_mode };
          return reject(connectError(thrown, this.where, names));
        }
        if (!this.closed) return resolve(new Lease(client, this.config, this.sockets, this.aborts));
        client.release(true);
        giveUp();
      });
    });
  }

  private lost(error: Error): void {
    if (!this.closed) this.context.onLost(callError(error, this.where));
  }
}

class PostgresTransaction implements Transaction {
  constructor(
    private readonly lease: Lease,
    private readonly connection: PostgresConnection,
    private readonly types: PostgresTypes,
    private readonly where: string,
  ) {}

  async call(call: DriverCall): Promise<DriverAnswer> {
    const statement = prepare(call, true);
    this.lease.requireOpen();
    try {
      return await this.connection.answer(this.lease, statement, call);
    } catch (thrown) {
      throw callError(thrown, this.where);
    }
  }

  async commit(): Promise<void> {
    this.lease.requireOpen();
    const result = await this.end('COMMIT');
    if (result.command !== 'COMMIT') {
      throw new ServiceError(
        'backend',
        'the transaction was rolled back, because a statement in it has failed',
      );
    }
  }

  async rollback(): Promise<void> {
    if (this.lease.isOver) return;
    const timeout = setTimeout(() => this.lease.destroy(), ROLLBACK_TIMEOUT_MS);
    // When it fails the connection is closed, which has the same effect.
    await this.end('ROLLBACK').catch(() => undefined);
    clearTimeout(timeout);
  }

  private async end(sql: string): Promise<PostgresResult> {
    try {
      const result = await this.lease.run({ sql, values: [], wantsRows: false }, this.types, undefined);
      this.lease.release();
      return result;
    } catch (thrown) {
      this.lease.destroy();
      throw callError(thrown, this.where);
    }
  }
}

/** A connection of the pool, while a call or a transaction has it. */
class Lease {
  isOver = false;

  constructor(
    readonly client: pg.PoolClient,
    private readonly config: PostgresConfig,
    private readonly sockets: Sockets,
    private readonly aborts: AbortWatch,
  ) {}

  /** Runs one statement; when it is aborted, or its result is too large, the connection is destroyed. */
  run(statement: Prepared, types: PostgresTypes, call: DriverCall | undefined): Promise<PostgresResult> {
    return new Promise((resolve, reject) => {
      const unwatch =
        call &&
        this.aborts.watch(call, () => {
          this.destroy();
          reject(new ServiceError('deadline', 'the statement was cancelled'));
        });
      const { sql, values, wantsRows } = statement;
      const query = new PostgresQuery(sql, values, types, wantsRows, (error, result) => {
        unwatch?.();
        if (result) return resolve(result);
        // Rows of it are still on their way.
        if (error instanceof ServiceError) this.destroy();
        reject(error);
      });
      this.client.query(query);
    });
  }

  /** @throws ServiceError when the transaction has lost its connection */
  requireOpen(): void {
    if (this.isOver)
      throw new ServiceError(
        'invalid',
        'the transaction has ended: a call in it was given up or answered too much',
      );
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
  socket.setTimeout(ROLLBACK_TIMEOUT_MS, () => socket.destroy());
  socket.connect(port, host, () => socket.end(request));
  socket.resume();
}

/** @throws ServiceError `invalid` */
function prepare(call: DriverCall, inTransaction: boolean): Prepared {
  if (call.operation !== 'query' && call.operation !== 'execute') {
    throw new ServiceError('invalid', `postgres has no operation "${call.operation}"`);
  }
  const { sql, params } = parseStatement(call.payload);
  const scanned = scanSql(sql, 'postgres');
  refuseHarmful(scanned, 'postgres', inTransaction);
  checkParamCount(scanned, params.length, 'postgres');
  if (params.length > MAX_PARAMS) {
    throw new ServiceError('invalid', `a statement can have ${MAX_PARAMS} parameters at most`);
  }
  return { sql: scanned.sql, values: params.map(toText), wantsRows: call.operation === 'query' };
}

/** Parameters go as text, and PostgreSQL finds their types; bytes go as they are. */
function toText(value: SqlValue): string | Buffer | null {
  if (value === null || typeof value === 'string' || Buffer.isBuffer(value)) return value;
  return value instanceof JsonText ? value.text : String(value);
}
