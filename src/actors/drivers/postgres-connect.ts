/** How connections to PostgreSQL are opened: settings of a session, and encryption as `libpq` defines `ssl_mode`. */
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { toError } from '../../errors.js';
import type { ServiceConfig } from '../../service-configs.js';
import type { Sockets } from '../sql/sockets.js';
import { SessionClient } from './postgres-session.js';

export type PostgresConfig = ServiceConfig<'postgres'>;

/** A connection that the pool opens later than the first gets this long. */
const CONNECT_TIMEOUT_MS = 15_000;

/** What texts of statements and values look like; settings of the server, the database and the role do not change it. */
const SESSION = [
  'standard_conforming_strings=on',
  'TimeZone=UTC',
  'DateStyle=ISO',
  'IntervalStyle=postgres',
  'bytea_output=hex',
  'extra_float_digits=1',
];

/** How to open one connection. */
export function clientOptions(
  config: PostgresConfig,
  sockets: Sockets,
  ssl: ConnectionOptions | false,
): pg.ClientConfig {
  return {
    host: config.host,
    port: config.port,
    database: config.database,
    user: config.username,
    // A function: the library takes an empty password for none, and looks for one in the environment.
    password: () => config.password ?? '',
    ssl,
    stream: () => sockets.create(),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'edge-gateway',
    options: SESSION.map((setting) => `-c ${setting}`).join(' '),
  };
}

/** Makes a pool that has no connection yet. */
export function createPool(options: pg.ClientConfig, size: number): pg.Pool {
  return new pg.Pool({ ...options, Client: SessionClient, max: size, idleTimeoutMillis: 0 });
}

/** The ways to connect, in the order in which they are tried. */
export function encryptions({
  ssl_mode,
  ssl_root_cert,
}: PostgresConfig): readonly (ConnectionOptions | false)[] {
  const ca = ssl_root_cert ? { ca: ssl_root_cert } : {};
  const unchecked: ConnectionOptions = { rejectUnauthorized: false };
  const chain: ConnectionOptions = { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined };
  switch (ssl_mode) {
    case 'disable':
      return [false];
    case 'prefer':
      return [unchecked, false];
    case 'require':
      // As libpq: who names a certificate wants it to be used.
      return [ssl_root_cert ? chain : unchecked];
    case 'verify-ca':
      return [chain];
    case 'verify-full':
      return [{ ...ca, rejectUnauthorized: true }];
  }
}

/** The server has no TLS at all. */
export function isWithoutTls(thrown: unknown): boolean {
  return toError(thrown).message === 'The server does not support SSL connections';
}
