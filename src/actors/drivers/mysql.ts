/**
 * MySQL and MariaDB: a pool of connections, one per call or transaction. A call that nobody waits for any more is ended
 * on the server, and its connection is closed.
 */
import mysql, { type ExecuteValues, type Pool } from 'mysql2';
import { toError } from '../../errors.js';
import type { Connection, Driver, DriverAnswer, DriverCall, DriverContext, Transaction } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { checkParamCount, scanSql } from '../sql/placeholders.js';
import { PooledTransaction } from '../sql/pooled-transaction.js';
import { refuseHarmful } from '../sql/refused-statements.js';
import { Sockets } from '../sql/sockets.js';
import { parseStatement } from '../sql/statement.js';
import { addressProblem, type MysqlConfig, poolOptions } from './mysql-connect.js';
import { callError, certificateRefused, connectError } from './mysql-errors.js';
import { MysqlLease } from './mysql-lease.js';
import type { MysqlResult, MysqlStatement, OpenConnection } from './mysql-query.js';
import { encodeParam } from './mysql-types.js';

/** Parameters are counted in 16 bits. */
const MAX_PARAMS = 65_535;

export const mysqlDriver: Driver<'mysql'> = {
  type: 'mysql',
  operations: ['query', 'execute', 'begin', 'commit', 'rollback'],
  concurrency: (config) => config.pool_size,
  connect: async (config, context) => {
    const connection = new MysqlConnection(config, context);
    try {
      await connection.open();
      return connection;
    } catch (thrown) {
      await connection.close();
      throw thrown;
    }
  },
};

class MysqlConnection implements Connection {
  private readonly sockets = new Sockets();
  private readonly pool: Pool;
  private readonly where: string;
  /** Ends the wait of calls that have no connection yet. */
  private readonly waiting = new Set<() => void>();
  private closed = false;

  constructor(
    private readonly config: MysqlConfig,
    private readonly context: DriverContext,
  ) {
    this.where = `${config.host}:${config.port}`;
    this.pool = mysql.createPool(poolOptions(config, this.sockets));
    this.pool.on('connection', (connection) => {
      connection.on('error', (error) => this.lost(error));
      // Goes before whatever the connection is for.
      connection.query("SET time_zone = '+00:00'", (error) => error && connection.destroy());
    });
  }

  /** Opens the first connection. */
  async open(): Promise<void> {
    const { signal } = this.context;
    const abort = () => this.sockets.destroy();
    signal.addEventListener('abort', abort);
    try {
      if (signal.aborted) throw new ServiceError('unavailable', `${this.where} did not answer in time`);
      (await this.acquire()).release();
      await this.test();
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async test(): Promise<string> {
    const answer = await this.run({ sql: 'SELECT VERSION()', values: [], wantsRows: true }, undefined);
    // 8.4.0, or 10.11.19-MariaDB-deb12
    const version = /"([\d.]+)([^"]*)"\]\]/.exec(answer.text ?? '');
    return `${/mariadb/i.test(version?.[2] ?? '') ? 'MariaDB' : 'MySQL'} ${version?.[1]}`;
  }

  async call(call: DriverCall): Promise<DriverAnswer> {
    return toAnswer(await this.run(prepare(call, false), call));
  }

  async begin(call: DriverCall): Promise<Transaction> {
    const lease = await this.acquire();
    try {
      await lease.run({ sql: 'START TRANSACTION', values: [], wantsRows: false }, call);
    } catch (thrown) {
      lease.destroy();
      throw callError(thrown, this.where);
    }
    const rethrow = (thrown: unknown): never => {
      throw callError(thrown, this.where);
    };
    return new PooledTransaction({
      isOver: () => lease.isOver,
      call: (inside) => runWithin(lease, inside).catch(rethrow),
      control: async (sql) => {
        await lease.run({ sql, values: [], wantsRows: false }, undefined).catch(rethrow);
        return sql;
      },
      release: () => lease.release(),
      destroy: () => lease.destroy(),
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const giveUp of this.waiting) giveUp();
    // Says goodbye to the server on idle connections. What it waits for, calls that are stuck, ends with the sockets.
    this.pool.end((thrown) => thrown && this.context.log.debug({ err: toError(thrown) }, 'closing a pool'));
    await this.sockets.close();
  }

  private async run(statement: MysqlStatement, call: DriverCall | undefined): Promise<MysqlResult> {
    const lease = await this.acquire();
    try {
      return await lease.run(statement, call);
    } catch (thrown) {
      throw callError(thrown, this.where);
    } finally {
      lease.release();
    }
  }

  /** Waits for a free connection. */
  private acquire(): Promise<MysqlLease> {
    return new Promise((resolve, reject) => {
      const giveUp = () =>
        reject(new ServiceError('unavailable', `the connection to ${this.where} is closed`));
      if (this.closed) return giveUp();
      this.waiting.add(giveUp);
      this.pool.getConnection((thrown, connection) => {
        this.waiting.delete(giveUp);
        if (thrown) return reject(connectError(thrown, this.where, this.config.database));
        const open = connection as OpenConnection;
        const problem = addressProblem(open, this.config);
        if (problem) {
          connection.destroy();
          return reject(new ServiceError('unavailable', certificateRefused(this.where, problem.message)));
        }
        if (!this.closed) return resolve(new MysqlLease(open, this.config, this.sockets));
        connection.destroy();
        giveUp();
      });
    });
  }

  private lost(error: Error): void {
    if (!this.closed) this.context.onLost(callError(error, this.where));
  }
}

async function runWithin(transaction: MysqlLease, call: DriverCall): Promise<DriverAnswer> {
  return toAnswer(await transaction.run(prepare(call, true), call));
}

/** @throws ServiceError `invalid` */
function prepare(call: DriverCall, inTransaction: boolean): MysqlStatement {
  if (call.operation !== 'query' && call.operation !== 'execute') {
    throw new ServiceError('invalid', `mysql has no operation "${call.operation}"`);
  }
  const { sql, params } = parseStatement(call.payload);
  const scanned = scanSql(sql, 'mysql');
  refuseHarmful(scanned, 'mysql', inTransaction);
  checkParamCount(scanned, params.length, 'mysql');
  if (params.length > MAX_PARAMS) {
    throw new ServiceError('invalid', `a statement can have ${MAX_PARAMS} parameters at most`);
  }
  // The library takes what its factories make, though its typings of values of objects are narrower.
  const values = params.map(encodeParam) as ExecuteValues[];
  return { sql: scanned.sql, values, wantsRows: call.operation === 'query' };
}

function toAnswer({ text, rowsAffected, lastInsertId }: MysqlResult): DriverAnswer {
  if (text !== undefined) return { payload: text };
  return { result: { rows_affected: rowsAffected, last_insert_id: lastInsertId } };
}
