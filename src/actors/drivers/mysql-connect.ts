/** How connections to MySQL and MariaDB are opened. */
import { isIP, type Socket } from 'node:net';
import { checkServerIdentity, TLSSocket } from 'node:tls';
import type mysql from 'mysql2';
import type { ServiceConfig } from '../../service-configs.js';
import type { Sockets } from '../sql/sockets.js';
import type { OpenConnection } from './mysql-session.js';
import { READING } from './mysql-types.js';

export type MysqlConfig = ServiceConfig<'mysql'>;

/** A connection that the pool opens later than the first gets this long. */
const CONNECT_TIMEOUT_MS = 15_000;
/** Statements kept prepared on a connection. */
const PREPARED = 200;

/** The library compares certificates with names only, so this does it for addresses. */
export function addressProblem(
  { stream }: OpenConnection,
  { host, ssl_verify }: MysqlConfig,
): Error | undefined {
  if (ssl_verify === false || isIP(host) === 0 || !(stream instanceof TLSSocket)) return undefined;
  return checkServerIdentity(host, stream.getPeerCertificate());
}

export function connectionOptions(config: MysqlConfig, sockets: Sockets): mysql.ConnectionOptions {
  const { host, port, database, username, password, use_ssl, ssl_root_cert, ssl_verify = true } = config;
  const checked = ssl_verify
    ? { ...(ssl_root_cert && { ca: ssl_root_cert }), verifyIdentity: isIP(host) === 0 }
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

export function poolOptions(config: MysqlConfig, sockets: Sockets): mysql.PoolOptions {
  return {
    ...connectionOptions(config, sockets),
    ...READING,
    connectionLimit: config.pool_size,
    maxIdle: config.pool_size,
    maxPreparedStatements: PREPARED,
  };
}
