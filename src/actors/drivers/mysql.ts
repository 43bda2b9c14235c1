/**
 * MySQL and MariaDB: a pool of connections, one per call or transaction. A call that nobody waits for any more is ended
 * on the server, and its connection is closed.
 */
import mysql, { type Pool } from 'mysql2';
import { toError } from '../../errors.js';
import type { Logger } from '../../log.js';
import type { Driver } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { type Lease, PooledConnection, type SqlPool } from '../sql/pooled-connection.js';
import { Sockets } from '../sql/sockets.js';
import { addressProblem, connectionOptions, type MysqlConfig, poolOptions } from './mysql-connect.js';
import { callError, certificateRefused, connectError } from './mysql-errors.js';
import { MysqlLease } from './mysql-lease.js';
import { BEGIN_SESSION, type OpenConnection, watchStatus } from './mysql-session.js';

/** A server that takes connections takes one within this time. */
const PROBE_TIMEOUT_MS = 3_000;

export const mysqlDriver: Driver<'mysql'> = {
  type: 'mysql',
  operations: ['query', 'execute', 'begin', 'commit', 'rollback'],
  concurrency: (config) => config.pool_size,
  connect: async (config, context) => {
    const sockets = new Sockets();
    const newPool = (onBroken: () => void) => new MysqlPool(config, sockets, context.log, onBroken);
    const connection = new PooledConnection(newPool, sockets, context);
    try {
      await connection.open();
      return connection;
    } catch (thrown) {
      await connection.close();
      throw thrown;
    }
  },
};

class MysqlPool implements SqlPool {
  readonly dialect = 'mysql';
  readonly where: string;
  readonly versionQuery = 'SELECT VERSION()';
  private readonly pool: Pool;

  constructor(
    private readonly config: MysqlConfig,
    private readonly sockets: Sockets,
    private readonly log: Logger,
    onBroken: () => void,
  ) {
    this.where = `${config.host}:${config.port}`;
    this.pool = mysql.createPool(poolOptions(config, sockets));
    this.pool.on('connection', (connection) => {
      watchStatus(connection as OpenConnection);
      connection.on('error', onBroken);
      // Goes before whatever the connection is for.
      connection.query(
        BEGIN_SESSION,
        (thrown) => thrown && this.giveUp(connection as OpenConnection, thrown),
      );
    });
  }

  /** @param value like `8.4.0`, or `10.11.19-MariaDB-deb12` */
  version(value: string): string {
    const number = /^[\d.]+/.exec(value)?.[0] ?? value;
    return `${/mariadb/i.test(value) ? 'MariaDB' : 'MySQL'} ${number}`;
  }

  take(done: (error: ServiceError | undefined, lease?: Lease) => void): void {
    this.pool.getConnection((thrown, connection) => {
      if (thrown) return done(connectError(thrown, this.where, this.config.database));
      const open = connection as OpenConnection;
      const problem = addressProblem(open, this.config);
      if (!problem) return done(undefined, new MysqlLease(open, this.config, this.sockets));
      connection.destroy();
      done(new ServiceError('unavailable', certificateRefused(this.where, problem.message)));
    });
  }

  probe(): Promise<void> {
    const options = connectionOptions(this.config, this.sockets);
    const connection = mysql.createConnection({ ...options, connectTimeout: PROBE_TIMEOUT_MS });
    connection.on('error', () => undefined);
    return new Promise((resolve, reject) => {
      connection.connect((thrown) => {
        if (!thrown) {
          connection.end();
          return resolve();
        }
        connection.destroy();
        reject(connectError(thrown, this.where, this.config.database));
      });
    });
  }

  callError(thrown: unknown): ServiceError {
    return callError(thrown, this.where);
  }

  end(): void {
    this.pool.end((thrown) => thrown && this.log.debug({ err: toError(thrown) }, 'closing a pool'));
  }

  /** A session that has not begun as it should is not used. */
  private giveUp(connection: OpenConnection, thrown: Error): void {
    this.log.warn({ err: thrown }, 'a session could not be set up');
    connection.destroy();
  }
}
