/**
 * The connection to PostgreSQL: pool, transactions, and the announcements that go with writes.
 * Every other module of the store takes a `Store` and holds the SQL of one table.
 */
import type { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import knex, { type Knex } from 'knex';
import pg from 'pg';
import { type Announcement, Announcer, type Topic } from './announcements.js';
import { pauseReads } from './paused-reads.js';
import { type ConnectionPool, ServerWatchdog } from './server-watchdog.js';

// 64-bit integers are read as text by default; our counters stay far below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** The argument of store functions: a pool, or one transaction of it. */
export interface Store {
  readonly knex: Knex;
  /** Tells listeners that a row changed; inside a transaction, once it is committed. */
  announce(topic: Topic, id: string): void;
}

/** A store that owns its connections. */
export interface Database extends Store {
  /** Sends pending announcements and closes all connections. */
  close(): Promise<void>;
}

/** Timeout for a server that accepts a connection and then does not respond. */
const CONNECT_TIMEOUT_MS = 3_000;

/** The configuration of knex, shared with its command line. */
export function knexConfig(connectionString: string, poolSize = 10): Knex.Config {
  return {
    client: 'pg',
    connection: {
      connectionString,
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: 'edge-gateway',
    },
    // `min: 0` lets the pool drop connections that a restart of the database broke.
    pool: {
      min: 0,
      max: poolSize,
      afterCreate: ({ connection }: PgClient, done: () => void) => {
        pauseReads(connection.stream);
        done();
      },
    },
    acquireConnectionTimeout: 5_000,
    // knex would also print the errors that it throws; the code that catches them logs them.
    log: { warn: ignore, error: ignore, debug: ignore, deprecate: ignore },
    migrations: {
      directory: fileURLToPath(new URL('../../migrations', import.meta.url)),
      // knex would also run the .d.ts and .map files that tsc writes beside the migrations.
      loadExtensions: ['.js'],
    },
  };
}

/** What is known of a connection of the driver besides its published members. */
interface PgClient {
  readonly connection: { readonly stream: Readable };
}

function ignore(): void {}

/**
 * Opens a pool. Connections are made on demand.
 * @param onError called with errors that no caller sees: announcements that were not sent, a server that does not
 *   respond
 */
export function openDatabase(
  connectionString: string,
  onError: (error: Error) => void,
  poolSize = 10,
): Database {
  const connections = knex(knexConfig(connectionString, poolSize));
  const announcer = new Announcer(connections, onError);
  const watchdog = new ServerWatchdog(connections.client.pool as ConnectionPool, connectionString, onError);
  return {
    knex: connections,
    announce: (topic, id) => announcer.announce({ topic, id }),
    close: async () => {
      await announcer.flushed();
      watchdog.stop();
      await connections.destroy();
    },
  };
}

/** Attempts of a transaction that PostgreSQL aborts because of a deadlock. */
const DEADLOCK_TRIES = 6;

/** Longest pause before the second attempt; it doubles with each further one. */
const DEADLOCK_PAUSE_MS = 20;

/**
 * Runs `work` in a transaction; its announcements are sent after the commit, and dropped after a rollback. Locks are
 * taken in the same order everywhere; if PostgreSQL detects a deadlock all the same, the aborted transaction is
 * retried. It pauses first, because a new attempt can lock a row again before the one that waited for it has woken up.
 */
export async function transaction<T>(store: Store, work: (tx: Store) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await runTransaction(store, work);
    } catch (error) {
      if (!isDeadlock(error) || tries === DEADLOCK_TRIES) throw error;
      const longest = DEADLOCK_PAUSE_MS * 2 ** (tries - 1);
      // At least half of it, so that the pause does pass the row on.
      await setTimeout(longest * (0.5 + Math.random() / 2));
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

/** Reads with statements that may take so long each; `isStatementTimeout` says that one has taken longer. */
export async function withinTime<T>(
  store: Store,
  ms: number,
  read: (store: Store) => Promise<T>,
): Promise<T> {
  return store.knex.transaction(async (trx) => {
    await trx.raw(`SET LOCAL statement_timeout = ${Math.round(ms)}`);
    return read({ ...store, knex: trx });
  });
}

/**
 * Brings the schema up to date.
 * @param say called with what a migration has to tell of the data that it has changed
 */
export async function migrate(
  connectionString: string,
  say: (message: string) => void = ignore,
): Promise<readonly string[]> {
  const config = knexConfig(connectionString, 1);
  const connections = knex({ ...config, log: { ...config.log, warn: say } });
  try {
    const [, applied] = (await connections.migrate.latest()) as [number, string[]];
    return applied;
  } finally {
    await connections.destroy();
  }
}

/** Creates the database that the URL names, if it does not exist. */
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

/** The name of the unique constraint that a write violated, if that is why it failed. */
export function violatedConstraint(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError && error.code === '23505') return error.constraint;
  return undefined;
}

/** True when an earlier statement of its transaction has failed. */
export function isBrokenTransaction(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25P02';
}

/** The name of the foreign key that a failed write violated: it refers to a row that does not exist. */
export function violatedForeignKey(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError && error.code === '23503') return error.constraint;
  return undefined;
}

/** True when PostgreSQL cannot hold a value (classes 22 and 54 of its errors: data exception, limit exceeded). */
export function isRefusedValue(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(?:22|54)/.test(error.code ?? '');
}

/** True when a statement has waited for a lock longer than `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03';
}

/** True when a statement has taken longer than `statement_timeout`. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57014';
}

function isDeadlock(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '40P01';
}

/** `updated_at` after a change: later than before, even within the same millisecond. */
export function nextUpdatedAt(store: Store): Knex.Raw {
  return store.knex.raw("greatest(clock_timestamp(), updated_at + interval '1 millisecond')");
}

/** True for errors of the connection to PostgreSQL, as opposed to statements that it rejected. */
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
 * Messages of pg, without a code, about connections that broke, were closed or timed out. knex prepends the statement.
 */
const LOST_CONNECTION =
  /(^| - )(Connection terminated|Connection terminated unexpectedly|timeout expired|Client (was closed|has encountered a connection error) and is not queryable)$/;
