/** Sessions with MySQL and MariaDB: how they are opened, and their state as reported by the server. */
import { isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { checkServerIdentity, TLSSocket } from 'node:tls';
import type mysql from 'mysql2';
import type { MysqlConfig } from './errors.js';
import type { Sockets } from './sockets.js';
import { READING } from './types.js';

/** Connect timeout of connections that the pool opens after the first. */
const CONNECT_TIMEOUT_MS = 15_000;
/** Maximum number of prepared statements per connection. */
const PREPARED = 200;

/** Checks the certificate of a server given by IP address: the library checks it for names only. */
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

const IN_TRANSACTION = 0x0001;
const AUTOCOMMIT = 0x0002;

/** Header, marker, warnings and status flags of the packet after rows. */
const EOF_PACKET_BYTES = 4 + 1 + 2 + 2;

/** The part of a packet that is read here. */
interface Packet {
  /** Bytes of the packet, with its header. */
  length(): number;
  isEOF(): boolean;
  eofStatusFlags(): number;
}

/** Members of the library that are missing in its typings. */
export type OpenConnection = mysql.PoolConnection & {
  readonly stream: Duplex;
  handlePacket(packet: Packet | undefined): void;
};

/** The status flags of a response. */
export class SessionStatus {
  readonly #flags: number;

  constructor(flags: number) {
    this.#flags = flags;
  }

  get isInTransaction(): boolean {
    return (this.#flags & IN_TRANSACTION) !== 0;
  }

  /** Autocommit is on, and no transaction is open. */
  get isClean(): boolean {
    return (this.#flags & (IN_TRANSACTION | AUTOCOMMIT)) === AUTOCOMMIT;
  }
}

const lastFlags = new WeakMap<OpenConnection, number>();

/** Keeps the status flags after rows, which the library skips. */
export function watchStatus(connection: OpenConnection): void {
  const handle = connection.handlePacket.bind(connection);
  connection.handlePacket = (packet) => {
    // A server may send a shorter one.
    if (packet?.isEOF() && packet.length() >= EOF_PACKET_BYTES)
      lastFlags.set(connection, packet.eofStatusFlags());
    handle(packet);
  };
}

/** The status flags after the last rows. */
export function lastStatus(connection: OpenConnection): SessionStatus {
  return new SessionStatus(lastFlags.get(connection) ?? 0);
}

/** SQL modes that change the syntax of strings, and modes that imply one of them. */
const MODES = [
  'ANSI_QUOTES',
  'NO_BACKSLASH_ESCAPES',
  'ANSI',
  'DB2',
  'MAXDB',
  'MSSQL',
  'ORACLE',
  'POSTGRESQL',
];
const OTHER_MODES = MODES.reduce(
  (modes, mode) => `REPLACE(${modes}, ',${mode},', ',')`,
  "CONCAT(',', @@sql_mode, ',')",
);

/** The first statement of a session. */
export const BEGIN_SESSION = `SET time_zone = '+00:00', sql_mode = TRIM(BOTH ',' FROM ${OTHER_MODES})`;
