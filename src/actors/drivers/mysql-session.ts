/** What a server tells about a session with each answer, and how sessions begin. */
import type { Duplex } from 'node:stream';
import type { PoolConnection } from 'mysql2';

const IN_TRANSACTION = 0x0001;
const AUTOCOMMIT = 0x0002;

/** The part of a packet that is read here. */
interface Packet {
  isEOF(): boolean;
  eofStatusFlags(): number;
}

/** What the library has beside its typings. */
export type OpenConnection = PoolConnection & {
  readonly stream: Duplex;
  handlePacket(packet: Packet | undefined): void;
};

/** The flags of the server that came with an answer. */
export class SessionStatus {
  constructor(private readonly flags: number) {}

  get isInTransaction(): boolean {
    return (this.flags & IN_TRANSACTION) !== 0;
  }

  /** Statements of the next call would be committed. */
  get isClean(): boolean {
    return (this.flags & (IN_TRANSACTION | AUTOCOMMIT)) === AUTOCOMMIT;
  }
}

const lastFlags = new WeakMap<OpenConnection, number>();

/** Remembers the flags that come after rows: the library reads over them. */
export function watchStatus(connection: OpenConnection): void {
  const handle = connection.handlePacket.bind(connection);
  connection.handlePacket = (packet) => {
    if (packet?.isEOF()) lastFlags.set(connection, packet.eofStatusFlags());
    handle(packet);
  };
}

/** The flags after the rows that came last. */
export function lastStatus(connection: OpenConnection): SessionStatus {
  return new SessionStatus(lastFlags.get(connection) ?? 0);
}

/** Modes in which a text is read in another way than here, and those that imply one of them. */
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
