/**
 * PostgreSQL: a pool of connections, one per call or transaction. A call that nobody waits for any more is cancelled on
 * the server, and its connection is closed.
 */
import type pg from 'pg';
import { toError } from '../../errors.js';
import type { Connection, Driver, DriverAnswer, DriverCall, DriverContext, Transaction } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { checkParamCount, scanSql } from '../sql/placeholders.js';
import { PooledTransaction } from '../sql/pooled-transaction.js';
import { refuseHarmful } from '../sql/refused-statements.js';
import { Sockets } from '../sql/sockets.js';
import { JsonText, parseStatement, type SqlValue } from '../sql/statement.js';
import { createPool, encryptions, isWithoutTls, type PostgresConfig } from './postgres-connect.js';
import { callError, connectError, isRefusedByRules, isStalePlan } from './postgres-errors.js';
import { PostgresLease, type PostgresStatement } from './postgres-lease.js';
import { PostgresTypes } from './postgres-types.js';

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

class PostgresConnection implements Connection {
  private readonly sockets = new Sockets();
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
      return await this.answer(lease, statement, call).catch(this.rethrow);
    } finally {
      lease.release();
    }
  }

  async begin(call: DriverCall): Promise<Transaction> {
    const lease = await this.acquire();
    try {
      await this.control(lease, 'BEGIN', call);
    } catch (thrown) {
      lease.destroy();
      throw callError(thrown, this.where);
    }
    return new PooledTransaction({
      isOver: () => lease.isOver,
      call: (inside) => this.answer(lease, prepare(inside, true), inside).catch(this.rethrow),
      control: (sql) => this.control(lease, sql).catch(this.rethrow),
      release: () => lease.release(),
      destroy: () => lease.destroy(),
    });
  }

  private readonly rethrow = (thrown: unknown): never => {
    throw callError(thrown, this.where);
  };

  /** Runs a statement of ours. */
  private async control(lease: PostgresLease, sql: string, call?: DriverCall): Promise<string> {
    const { command } = await lease.run({ sql, values: [], wantsRows: false }, this.types, call);
    return command;
  }

  private async answer(
    lease: PostgresLease,
    statement: PostgresStatement,
    call: DriverCall,
  ): Promise<DriverAnswer> {
    const result = await lease.run(statement, this.types, call);
    const text = result.text(lease.client);
    if (text !== undefined) return { payload: await text };
    return { result: { rows_affected: result.rowsAffected, last_insert_id: null } };
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const giveUp of this.waiting) giveUp();
    // Says goodbye to the server on idle connections. What it waits for, calls that are stuck, ends with the sockets.
    const ended = this.pool.end();
    ended.catch((thrown: unknown) => this.context.log.debug({ err: toError(thrown) }, 'closing a pool'));
    await this.sockets.close();
  }

  /** Waits for a free connection. */
  private acquire(): Promise<PostgresLease> {
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
        if (!this.closed) return resolve(new PostgresLease(client, this.config, this.sockets));
        client.release(true);
        giveUp();
      });
    });
  }

  private lost(error: Error): void {
    if (!this.closed) this.context.onLost(callError(error, this.where));
  }
}

/** @throws ServiceError `invalid` */
function prepare(call: DriverCall, inTransaction: boolean): PostgresStatement {
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
