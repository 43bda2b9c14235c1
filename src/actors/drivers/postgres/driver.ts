/**
 * PostgreSQL: a pool of connections, one per call or transaction. An aborted call is cancelled on the server, and its
 * connection is closed.
 */
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { toError } from '../../../errors.js';
import { isUnixSocket, NO_UNIX_SOCKET } from '../../../model/service-configs.js';
import type { Log } from '../../../util/log.js';
import { defineDriver } from '../../driver.js';
import { ServiceError } from '../../service-error.js';
import { type Lease, openPooled, type SqlPool } from '../../sql/pooled-connection.js';
import type { Sockets } from '../../sql/sockets.js';
import { SQL_OPERATIONS } from '../../sql/statement.js';
import { CLOSED, connectError, mayConnectOtherwise, type PostgresConfig, refusalOf } from './errors.js';
import { type LeasedClient, PostgresLease, SessionClient } from './lease.js';
import { PostgresTypes } from './types.js';

/** Connect timeout of connections that the pool opens after the first. */
const CONNECT_TIMEOUT_MS = 15_000;
/** Timeout of the probe for a new connection. */
const PROBE_TIMEOUT_MS = 3_000;

/** Fixes the format of statements and values against settings of the server, the database and the role. */
const SESSION = [
  'standard_conforming_strings=on',
  'TimeZone=UTC',
  'DateStyle=ISO',
  'IntervalStyle=postgres',
  'bytea_output=hex',
  'extra_float_digits=1',
];

export const postgresDriver = defineDriver({
  type: 'postgres',
  concurrency: (config) => config.pool_size,
  connect: async (config, context) => {
    // Those of earlier versions were stored without this check.
    if (isUnixSocket(config.host)) throw new ServiceError('unavailable', `host: ${NO_UNIX_SOCKET}`);
    const ways = encryptions(config);
    for (const [index, ssl] of ways.entries()) {
      try {
        return await openPooled(
          context,
          (sockets, onConnectionLost) =>
            new PostgresPool(config, ssl, sockets, context.log, onConnectionLost),
        );
      } catch (thrown) {
        const mayTryNext = mayConnectOtherwise(toError(thrown).cause) && !context.isAborted;
        if (!mayTryNext || index === ways.length - 1) throw thrown;
      }
    }
    throw new ServiceError('unavailable', 'there is no way to connect');
  },
  operations: SQL_OPERATIONS,
});

/** The TLS options to try, in order, for each `ssl_mode` as `libpq` defines it. */
function encryptions({ ssl_mode, ssl_root_cert }: PostgresConfig): readonly (ConnectionOptions | false)[] {
  const ca = ssl_root_cert ? { ca: ssl_root_cert } : {};
  const unchecked: ConnectionOptions = { rejectUnauthorized: false };
  const chain: ConnectionOptions = { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined };
  switch (ssl_mode) {
    case 'disable':
      return [false];
    case 'prefer':
      return [unchecked, false];
    case 'require':
      // As in libpq, a certificate in the config is used.
      return [ssl_root_cert ? chain : unchecked];
    case 'verify-ca':
      return [chain];
    case 'verify-full':
      return [{ ...ca, rejectUnauthorized: true }];
  }
}

class PostgresPool implements SqlPool {
  readonly #config: PostgresConfig;
  readonly #sockets: Sockets;
  readonly #log: Log;
  readonly dialect = 'postgres';
  readonly where: string;
  readonly versionQuery = 'SHOW server_version';
  readonly closedMessage = CLOSED;
  readonly refusal = refusalOf;
  readonly #types = new PostgresTypes();
  readonly #options: pg.ClientConfig;
  readonly #pool: pg.Pool;

  constructor(
    config: PostgresConfig,
    ssl: ConnectionOptions | false,
    sockets: Sockets,
    log: Log,
    onConnectionLost: () => void,
  ) {
    this.#config = config;
    this.#sockets = sockets;
    this.#log = log;
    this.where = `${config.host}:${config.port}`;
    this.#options = {
      host: config.host,
      port: config.port,
      database: config.database,
      user: config.username,
      // A function, because the library treats an empty password as none and reads one from the environment.
      password: () => config.password ?? '',
      ssl,
      stream: () => sockets.create(),
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      application_name: 'edge-gateway',
      options: SESSION.map((setting) => `-c ${setting}`).join(' '),
    };
    const ofPool = { Client: SessionClient, max: config.pool_size, idleTimeoutMillis: 0 };
    this.#pool = new pg.Pool({ ...this.#options, ...ofPool });
    this.#pool.on('connect', (client) => client.on('error', onConnectionLost));
    // Errors of idle connections, which the listeners above handle.
    this.#pool.on('error', () => undefined);
  }

  product(version: string): string {
    return `PostgreSQL ${version.split(' ')[0]}`;
  }

  take(done: (error: ServiceError | undefined, lease?: Lease) => void): void {
    this.#pool.connect((thrown, client) => {
      if (!client) return done(connectError(thrown, this.where, this.#config));
      // The pool creates clients of this class, and the typings of the library are incomplete.
      done(undefined, new PostgresLease(client as LeasedClient, this.#types, this.#config, this.#sockets));
    });
  }

  async probe(): Promise<void> {
    const client = new pg.Client({ ...this.#options, connectionTimeoutMillis: PROBE_TIMEOUT_MS });
    client.on('error', () => undefined);
    try {
      await client.connect();
    } catch (thrown) {
      throw connectError(thrown, this.where, this.#config);
    } finally {
      this.#logFailure(client.end(), 'closing a connection');
    }
  }

  end(): void {
    this.#logFailure(this.#pool.end(), 'closing a pool');
  }

  #logFailure(ended: Promise<void>, what: string): void {
    ended.catch((thrown: unknown) => this.#log.debug({ err: toError(thrown) }, what));
  }
}
