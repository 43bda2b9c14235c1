/**
 * MySQL and MariaDB: a pool of connections, one per call or transaction. An aborted call is killed on the server, and
 * its connection is closed.
 */
import mysql, { type Pool } from 'mysql2';
import { toError } from '../../../errors.js';
import type { Log } from '../../../util/log.js';
import { defineDriver } from '../../driver.js';
import { ServiceError } from '../../service-error.js';
import { SQL_OPERATIONS } from '../../sql/statement.js';
import { CLOSED, certificateRefused, connectError, type MysqlConfig, refusalOf } from './errors.js';
import { MysqlLease } from './lease.js';
import { type Lease, openPooled, type SqlPool } from './pooled-connection.js';
import { runText } from './query.js';
import {
  addressProblem,
  BEGIN_SESSION,
  connectionOptions,
  type OpenConnection,
  poolOptions,
  watchStatus,
} from './session.js';
import type { Sockets } from './sockets.js';

/** Timeout of the probe for a new connection. */
const PROBE_TIMEOUT_MS = 3_000;

export const mysqlDriver = defineDriver({
  type: 'mysql',
  concurrency: (config) => config.pool_size,
  connect: (config, context) =>
    openPooled(
      context,
      (sockets, onConnectionLost) => new MysqlPool(config, sockets, context.log, onConnectionLost),
    ),
  operations: SQL_OPERATIONS,
});

class MysqlPool implements SqlPool {
  readonly #config: MysqlConfig;
  readonly #sockets: Sockets;
  readonly #log: Log;
  readonly where: string;
  readonly versionQuery = 'SELECT VERSION()';
  readonly closedMessage = CLOSED;
  readonly refusal = refusalOf;
  readonly #pool: Pool;

  constructor(config: MysqlConfig, sockets: Sockets, log: Log, onConnectionLost: () => void) {
    this.#config = config;
    this.#sockets = sockets;
    this.#log = log;
    this.where = `${config.host}:${config.port}`;
    this.#pool = mysql.createPool(poolOptions(config, sockets));
    this.#pool.on('connection', (connection) => {
      const open = connection as OpenConnection;
      watchStatus(open);
      open.on('error', onConnectionLost);
      // Sent before the first statement of a call. The library itself would keep all rows that come.
      runText(open, BEGIN_SESSION, () => undefined).catch((thrown) => this.#discard(open, toError(thrown)));
    });
  }

  /** @param version like `8.4.0`, or `10.11.19-MariaDB-deb12` */
  product(version: string): string {
    const number = /^[\d.]+/.exec(version)?.[0] ?? version;
    return `${/mariadb/i.test(version) ? 'MariaDB' : 'MySQL'} ${number}`;
  }

  take(done: (error: ServiceError | undefined, lease?: Lease) => void): void {
    this.#pool.getConnection((thrown, connection) => {
      if (thrown) return done(connectError(thrown, this.where, this.#config));
      const open = connection as OpenConnection;
      const problem = addressProblem(open, this.#config);
      if (!problem) return done(undefined, new MysqlLease(open, this.#config, this.#sockets));
      connection.destroy();
      done(new ServiceError('unavailable', certificateRefused(this.where, problem.message)));
    });
  }

  probe(): Promise<void> {
    const options = connectionOptions(this.#config, this.#sockets);
    const connection = mysql.createConnection({ ...options, connectTimeout: PROBE_TIMEOUT_MS });
    connection.on('error', () => undefined);
    return new Promise((resolve, reject) => {
      connection.connect((thrown) => {
        if (!thrown) {
          connection.end();
          return resolve();
        }
        connection.destroy();
        reject(connectError(thrown, this.where, this.#config));
      });
    });
  }

  end(): void {
    this.#pool.end((thrown) => thrown && this.#log.debug({ err: toError(thrown) }, 'closing a pool'));
  }

  /** Destroys a connection whose session could not be set up. */
  #discard(connection: OpenConnection, thrown: Error): void {
    this.#log.warn({ err: thrown }, 'a session could not be set up');
    connection.destroy();
  }
}
