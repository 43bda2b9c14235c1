/**
 * MySQL and MariaDB: a pool of connections, one per call or transaction. A call that nobody waits for any more is ended
 * on the server, and its connection is closed.
 */
import { isIP, type Socket } from 'node:net';
import { checkServerIdentity, TLSSocket } from 'node:tls';
import mysql, { type ExecuteValues, type Pool } from 'mysql2';
import { toError } from '../../errors.js';
import type { ServiceConfig } from '../../service-configs.js';
import type { Connection, Driver, DriverAnswer, DriverCall, DriverContext, Transaction } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { AbortWatch } from '../sql/abort-watch.js';
import { checkParamCount, scanSql } from '../sql/placeholders.js';
import { refuseHarmful } from '../sql/refused-statements.js';
import { Sockets } from '../sql/sockets.js';
import { parseStatement } from '../sql/statement.js';
import { callError, certificateRefused, connectError } from './mysql-errors.js';
import { type MysqlResult, type MysqlStatement, type OpenConnection, runStatement } from './mysql-query.js';
import { encodeParam, READING } from './mysql-types.js';

type MysqlConfig = ServiceConfig<'mysql'>;

/** A connection that the pool opens later than the first gets this long. */
const CONNECT_TIMEOUT_MS = 15_000;
/** A connection that does not roll back within this time is closed instead. */
const ROLLBACK_TIMEOUT_MS = 5_000;
/** Statements kept prepared on a connection. */
const PREPARED = 200;
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
  private readonly aborts = new AbortWatch();
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
    return new MysqlTransaction(lease, this.where);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.sockets.destroy();
    for (const giveUp of this.waiting) giveUp();
    // Nothing is left to wait for: it would wait for calls that are stuck.
    this.pool.end((thrown) => thrown && this.context.log.debug({ err: toError(thrown) }, 'closing a pool'));
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
  private acquire(): Promise<Lease> {
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
        if (!this.closed) return resolve(new Lease(open, this.config, this.sockets, this.aborts));
        connection.destroy();
        giveUp();
      });
    });
  }

  private lost(error: Error): void {
    if (!this.closed) this.context.onLost(callError(error, this.where));
  }
}

class MysqlTransaction implements Transaction {
  constructor(
    private readonly lease: Lease,
    private readonly where: string,
  ) {}

  async call(call: DriverCall): Promise<DriverAnswer> {
    const statement = prepare(call, true);
    this.lease.requireOpen();
    try {
      return toAnswer(await this.lease.run(statement, call));
    } catch (thrown) {
      throw callError(thrown, this.where);
    }
  }

  async commit(): Promise<void> {
    this.lease.requireOpen();
    await this.end('COMMIT');
  }

  async rollback(): Promise<void> {
    if (this.lease.isOver) return;
    const timeout = setTimeout(() => this.lease.destroy(), ROLLBACK_TIMEOUT_MS);
    // When it fails the connection is closed, which has the same effect.
    await this.end('ROLLBACK').catch(() => undefined);
    clearTimeout(timeout);
  }

  private async end(sql: string): Promise<void> {
    try {
      await this.lease.run({ sql, values: [], wantsRows: false }, undefined);
      this.lease.release();
    } catch (thrown) {
      this.lease.destroy();
      throw callError(thrown, this.where);
    }
  }
}

/** A connection of the pool, while a call or a transaction has it. */
class Lease {
  isOver = false;
  /** Ends the statement under way, for whoever waits for it. */
  private stop: ((error: Error) => void) | undefined;

  constructor(
    private readonly connection: OpenConnection,
    private readonly config: MysqlConfig,
    private readonly sockets: Sockets,
    private readonly aborts: AbortWatch,
  ) {}

  /** Runs one statement; when it is aborted, or its result is too large, the connection is destroyed. */
  async run(statement: MysqlStatement, call: DriverCall | undefined): Promise<MysqlResult> {
    const cancelled = () => this.destroy(new ServiceError('deadline', 'the statement was cancelled'));
    const unwatch = call && this.aborts.watch(call, cancelled);
    try {
      return await runStatement(this.connection, statement, (stop) => {
        this.stop = stop;
      });
    } catch (thrown) {
      // Rows of it are still on their way.
      if (thrown instanceof ServiceError) this.destroy();
      throw thrown;
    } finally {
      this.stop = undefined;
      unwatch?.();
    }
  }

  /** @throws ServiceError when the transaction has lost its connection */
  requireOpen(): void {
    if (this.isOver) {
      throw new ServiceError(
        'invalid',
        'the transaction has ended: a call in it was given up or answered too much',
      );
    }
  }

  release(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.connection.release();
  }

  /** Closes the connection, and ends what it does on the server. */
  destroy(reason = new ServiceError('unavailable', 'the connection was closed')): void {
    if (this.isOver) return;
    this.isOver = true;
    kill(this.connection.threadId, this.config, this.sockets);
    this.connection.destroy();
    this.connection.stream.destroy();
    this.stop?.(reason);
  }
}

/** The library compares certificates with names only, so this does it for addresses. */
function addressProblem({ stream }: OpenConnection, { host, ssl_root_cert }: MysqlConfig): Error | undefined {
  if (!ssl_root_cert || isIP(host) === 0 || !(stream instanceof TLSSocket)) return undefined;
  return checkServerIdentity(host, stream.getPeerCertificate());
}

/** Ends a connection on the server, by another one; as good as it gets, nobody waits for it. */
function kill(threadId: number, config: MysqlConfig, sockets: Sockets): void {
  const other = mysql.createConnection({
    ...connectionOptions(config, sockets),
    connectTimeout: ROLLBACK_TIMEOUT_MS,
  });
  other.on('error', () => other.destroy());
  other.query({ sql: `KILL ${threadId}`, timeout: ROLLBACK_TIMEOUT_MS }, () => other.destroy());
}

function connectionOptions(config: MysqlConfig, sockets: Sockets): mysql.ConnectionOptions {
  const { host, port, database, username, password, use_ssl, ssl_root_cert } = config;
  const checked = ssl_root_cert
    ? { ca: ssl_root_cert, verifyIdentity: isIP(host) === 0 }
    : { rejectUnauthorized: false };
  return {
    ...{ host, port, database, user: username, password: password ?? '' },
    ...(use_ssl && { ssl: checked }),
    charset: 'utf8mb4',
    connectTimeout: CONNECT_TIMEOUT_MS,
    flags: ['-LOCAL_FILES'],
    stream: (): Socket => sockets.create().setNoDelay(true).setKeepAlive(true).connect(port, host),
  };
}

function poolOptions(config: MysqlConfig, sockets: Sockets): mysql.PoolOptions {
  return {
    ...connectionOptions(config, sockets),
    ...READING,
    connectionLimit: config.pool_size,
    maxIdle: config.pool_size,
    maxPreparedStatements: PREPARED,
  };
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
