/**
 * PostgreSQL: a pool of connections, one per call or transaction. A call that nobody waits for any more is cancelled on
 * the server, and its connection is closed.
 */
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { toError } from '../../errors.js';
import type { Logger } from '../../log.js';
import type { Connection, Driver, DriverContext } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { type Lease, PooledConnection, type SqlPool } from '../sql/pooled-connection.js';
import { Sockets } from '../sql/sockets.js';
import {
  clientOptions,
  createPool,
  encryptions,
  isWithoutTls,
  type PostgresConfig,
} from './postgres-connect.js';
import { callError, connectError, isRefusedByRules } from './postgres-errors.js';
import { type LeasedClient, PostgresLease } from './postgres-lease.js';
import { PostgresTypes } from './postgres-types.js';

/** A server that takes connections takes one within this time. */
const PROBE_TIMEOUT_MS = 3_000;

export const postgresDriver: Driver<'postgres'> = {
  type: 'postgres',
  operations: ['query', 'execute', 'begin', 'commit', 'rollback'],
  concurrency: (config) => config.pool_size,
  connect: async (config, context) => {
    const ways = encryptions(config);
    for (const [index, ssl] of ways.entries()) {
      try {
        return await connect(config, context, ssl);
      } catch (thrown) {
        const { cause } = toError(thrown);
        const mayTryNext = isWithoutTls(cause) || isRefusedByRules(cause);
        if (!mayTryNext || index === ways.length - 1 || context.signal.aborted) throw thrown;
      }
    }
    throw new ServiceError('unavailable', 'there is no way to connect');
  },
};

async function connect(
  config: PostgresConfig,
  context: DriverContext,
  ssl: ConnectionOptions | false,
): Promise<Connection> {
  const sockets = new Sockets();
  const newPool = (onBroken: () => void) => new PostgresPool(config, sockets, ssl, context.log, onBroken);
  const connection = new PooledConnection(newPool, sockets, context);
  try {
    await connection.open();
    return connection;
  } catch (thrown) {
    await connection.close();
    throw thrown;
  }
}

class PostgresPool implements SqlPool {
  readonly dialect = 'postgres';
  readonly where: string;
  readonly versionQuery = 'SHOW server_version';
  private readonly types = new PostgresTypes();
  private readonly options: pg.ClientConfig;
  private readonly pool: pg.Pool;

  constructor(
    private readonly config: PostgresConfig,
    private readonly sockets: Sockets,
    ssl: ConnectionOptions | false,
    private readonly log: Logger,
    onBroken: () => void,
  ) {
    this.where = `${config.host}:${config.port}`;
    this.options = clientOptions(config, sockets, ssl);
    this.pool = createPool(this.options, config.pool_size);
    this.pool.on('connect', (client) => client.on('error', onBroken));
    // The same errors, of idle connections.
    this.pool.on('error', () => undefined);
  }

  version(value: string): string {
    return `PostgreSQL ${value.split(' ')[0]}`;
  }

  take(done: (error: ServiceError | undefined, lease?: Lease) => void): void {
    this.pool.connect((thrown, client) => {
      if (!client) return done(this.connectError(thrown));
      // The pool makes clients of this class, and the library knows more of them than its typings.
      done(undefined, new PostgresLease(client as LeasedClient, this.types, this.config, this.sockets));
    });
  }

  async probe(): Promise<void> {
    const client = new pg.Client({ ...this.options, connectionTimeoutMillis: PROBE_TIMEOUT_MS });
    client.on('error', () => undefined);
    try {
      await client.connect();
    } catch (thrown) {
      throw this.connectError(thrown);
    } finally {
      this.ignore(client.end(), 'closing a connection');
    }
  }

  callError(thrown: unknown): ServiceError {
    return callError(thrown, this.where);
  }

  end(): void {
    this.ignore(this.pool.end(), 'closing a pool');
  }

  private connectError(thrown: unknown): ServiceError {
    const { database, ssl_mode } = this.config;
    return connectError(thrown, this.where, { database, sslMode: ssl_mode });
  }

  private ignore(ended: Promise<void>, what: string): void {
    ended.catch((thrown: unknown) => this.log.debug({ err: toError(thrown) }, what));
  }
}
