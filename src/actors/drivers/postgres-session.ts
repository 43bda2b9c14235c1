/** What is known of a connection to PostgreSQL beside what the library knows. */
import pg from 'pg';
import type { PostgresQuery } from './postgres-query.js';

/** Statements kept prepared on a connection; the oldest goes. */
const PREPARED = 200;

interface ParameterStatus {
  readonly parameterName: string;
  readonly parameterValue: string;
}

/** A client that notices when a setting that its server reports, like the time zone, is another one than at first. */
export class SessionClient extends pg.Client {
  private readonly atFirst = new Map<string, string>();
  private readonly changed = new Set<string>();

  constructor(options?: pg.ClientConfig) {
    super(options);
    let isReady = false;
    this.connection.once('readyForQuery', () => {
      isReady = true;
    });
    this.connection.on(
      'parameterStatus',
      ({ parameterName: name, parameterValue: value }: ParameterStatus) => {
        if (!isReady) this.atFirst.set(name, value);
        else if (this.atFirst.get(name) === value) this.changed.delete(name);
        else this.changed.add(name);
      },
    );
  }

  /** It is in no transaction, and its settings are those that it has begun with. */
  get isClean(): boolean {
    return this.changed.size === 0 && this.getTransactionStatus() === 'I';
  }
}

export interface Columns {
  readonly names: readonly string[];
  readonly oids: readonly number[];
}

interface Prepared {
  readonly name: string;
  /** Undefined when it answers no rows. */
  readonly columns: Columns | undefined;
}

/** The statements that are prepared on a connection. */
export class Session {
  readonly prepared = new Map<string, Prepared>();
  /** Names that the server may forget, with the next statement. */
  readonly obsolete: string[] = [];
  active: PostgresQuery | undefined;
  private names = 0;

  constructor(connection: pg.Connection) {
    connection.stream.prependListener('data', (bytes: Buffer) => this.active?.received(bytes.length));
  }

  newName(): string {
    this.names++;
    return `s${this.names}`;
  }

  add(sql: string, prepared: Prepared): void {
    if (this.prepared.size >= PREPARED) {
      const [oldest] = this.prepared.keys();
      if (oldest !== undefined) this.remove(oldest);
    }
    this.prepared.set(sql, prepared);
  }

  remove(sql: string): void {
    const prepared = this.prepared.get(sql);
    if (!prepared) return;
    this.prepared.delete(sql);
    this.obsolete.push(prepared.name);
  }
}

const sessions = new WeakMap<pg.Connection, Session>();

/** To be asked for when the connection is open: TLS replaces its socket before. */
export function sessionOf(connection: pg.Connection): Session {
  let session = sessions.get(connection);
  if (!session) {
    session = new Session(connection);
    sessions.set(connection, session);
  }
  return session;
}
