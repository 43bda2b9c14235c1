/**
 * The connection to PostgreSQL: pool, transactions, and the announcements that go with writes.
 * Every other module of the store takes a `Store` and holds the SQL of one table.
 */
import { fileURLToPath } from 'node:url';
import knex, { type Knex } from 'knex';
import pg from 'pg';
import { type Announcement, Announcer, type Topic } from './announcements.js';
import { type ConnectionPool, HangWatch } from './hang-watch.js';

// Whole numbers of 64 bits come back as text by default; our counters stay far below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** What store functions work on: a pool, or one transaction of it. */
export interface Store {
  readonly knex: Knex;
  /** Tells listeners that a row changed; inside a transaction, once it is committed. */
  announce(topic: Topic, id: string): void;
}

/** A store that owns its connections. */
export interface Database extends Store {
  /** Sends what is still to be announced and closes all connections. */
  close(): Promise<void>;
}

/** A server that accepts a connection and then says nothing is not waited for longer. */
const CONNECT_LIMIT_MS = 3_000;

/** The configuration of knex, shared with its command line. */
export function knexConfig(connectionString: string, poolSize = 10): Knex.Config {
  return {
    client: 'pg',
    connection: {
      connectionString,
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_LIMIT_MS,
      application_name: 'edge-gateway',
    },
    // `min: 0` lets the pool drop connections that a database restart has broken.
    pool: { min: 0, max: poolSize },
    acquireConnectionTimeout: 5_000,
    // knex prints to the console what it throws as well; here, whoever catches it logs it.
    log: { warn: ignore, error: ignore, debug: ignore, deprecate: ignore },
    migrations: {
      directory: fileURLToPath(new URL('../../migrations', import.meta.url)),
      // tsc leaves .d.ts and .map files beside the migrations; knex would run anything it finds.
      loadExtensions: ['.js'],
    },
  };
}

function ignore(): void {}

/**
 * Opens a pool. Connections are made when they are needed.
 * @param onError told of what nobody waits for: announcements that were not sent, a server that hangs
 */
export function openDatabase(
  connectionString: string,
  onError: (error: Error) => void,
  poolSize = 10,
): Database {
  const connections = knex(knexConfig(connectionString, poolSize));
  const announcer = new Announcer(connections, onError);
  const watch = new HangWatch(connections.client.pool as ConnectionPool, connectionString, onError);
  return {
    knex: connections,
    announce: (topic, id) => announcer.announce({ topic, id }),
    close: async () => {
      await announcer.flushed();
      watch.stop();
      await connections.destroy();
    },
  };
}

/** Tries of a transaction that PostgreSQL ends because it and another wait for each other. */
const DEADLOCK_TRIES = 3;

/**
 * Runs `work` in a transaction; what it announces goes out after the commit, and not at all after a rollback. Locks are taken
 * in one order wherever several are; should two transactions wait for each other all the same, one of them is run again.
 */
export async function transaction<T>(store: Store, work: (tx: Store) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await runTransaction(store, work);
    } catch (error) {
      if (!isDeadlock(error) || tries === DEADLOCK_TRIES) throw error;
    }
  }
}

async function runTransaction<T>(store: Store, work: (tx: Store) => Promise<T>): Promise<T> {
  const announcements: Announcement[] = [];
  const result = await store.knex.transaction((trx) =>
    work({ knex: trx, announce: (topic, id) => announcements.push({ topic, id }) }),
  );
  for (const { topic, id } of announcements) store.announce(topic, id);
  return result;
}

/** Brings the schema up to date. */
export async function migrate(connectionString: string): Promise<readonly string[]> {
  const connections = knex(knexConfig(connectionString, 1));
  try {
    const [, applied] = (await connections.migrate.latest()) as [number, string[]];
    return applied;
  } finally {
    await connections.destroy();
  }
}

/** Makes the database that the URL names, unless the server has it. */
export async function createDatabaseIfMissing(connectionString: string): Promise<void> {
  const url = new URL(connectionString);
  const name = decodeURIComponent(url.pathname.slice(1));
  // The database that every server has.
  url.pathname = '/postgres';
  const client = new pg.Client(url.href);
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}

/** The name of the unique constraint a failed write ran into, if that is why it failed. */
export function violatedConstraint(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError && error.code === '23505') return error.constraint;
  return undefined;
}

/** True when a statement has waited for a lock longer than `lock_timeout` lets it. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03';
}

function isDeadlock(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '40P01';
}

/** `updated_at` after a change: later than before, even within the same millisecond. */
export function nextUpdatedAt(store: Store): Knex.Raw {
  return store.knex.raw("greatest(clock_timestamp(), updated_at + interval '1 millisecond')");
}

/** True for errors that mean PostgreSQL is away, as opposed to a statement it refused. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return (
    ['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT', 'EPIPE', 'ENOENT'].includes(code) ||
    // Class 57P: the server is shutting down or starting up; class 08: connection exceptions.
    code.startsWith('57P') ||
    code.startsWith('08') ||
    error.name === 'KnexTimeoutError' ||
    LOST_CONNECTION.test(error.message)
  );
}

/**
 * What pg says, without a code, of connections that broke, were given up, or did not come about in time. knex puts the
 * statement in front.
 */
const LOST_CONNECTION =
  /(^| - )(Connection terminated|Connection terminated unexpectedly|timeout expired|Client (was closed|has encountered a connection error) and is not queryable)$/;
