/**
 * A real PostgreSQL for the tests: the server of TEST_DATABASE_URL, or an embedded one that lives as long as the run.
 * Every test file gets a database of its own, cloned from one that is migrated once. All processes of a run share the
 * server: the first starts it, and its children find the template in their environment.
 */
import { randomBytes } from 'node:crypto';
import { readFile, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { runMigrations } from 'bullmq';
import pg from 'pg';
import { setUmask } from '../../src/bootstrap/start-process.js';
import { migrate } from '../../src/store/database.js';
import { PostgresServer, type ServerOptions } from '../../src/up/postgres-server.js';
import { tempDir } from './temp.js';

// Tests and benchmarks do in their own process what those of the service do; both begin here.
setUmask();

/** A database of a test file. */
export interface TestDatabase {
  readonly url: string;
  /** Terminates its remaining connections. */
  drop(): Promise<void>;
}

interface Server {
  readonly templateUrl: string;
  stop(): Promise<void>;
}

/** A folder of Linux whose files are in memory, and what must be free there for databases of tests. */
const MEMORY = '/dev/shm';
const MEMORY_NEEDED_BYTES = 4 * 1024 ** 3;

/** Where the processes of a run find the database to clone. */
const TEMPLATE_VARIABLE = 'TEST_TEMPLATE_URL';

let starting: Promise<Server> | undefined;

/** Creates a database with the current schema, including that of the queues. */
export async function createDatabase(): Promise<TestDatabase> {
  const template = process.env[TEMPLATE_VARIABLE] ?? (await shareServer());
  const adminUrl = withDatabase(template, 'postgres');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const source = new URL(template).pathname.slice(1);
  // Whole files are copied faster than page by page through the log, which is the default.
  await run(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${source} STRATEGY file_copy`);
  return {
    url: withDatabase(adminUrl, name),
    drop: () => run(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`),
  };
}

/** Starts the server, for this process and those it starts from then on. Resolves with the URL of the template. */
export async function shareServer(): Promise<string> {
  starting ??= startServer();
  const { templateUrl } = await starting;
  process.env[TEMPLATE_VARIABLE] = templateUrl;
  return templateUrl;
}

/** Stops the server, if this process has started it. For the end of the run. */
export async function stopServer(): Promise<void> {
  const server = await starting;
  starting = undefined;
  delete process.env[TEMPLATE_VARIABLE];
  await server?.stop();
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
    templateUrl,
    stop: async () => {
      await run(url, `DROP DATABASE ${template} WITH (FORCE)`);
      await stop();
    },
  };
}

async function startEmbedded(): Promise<{ url: string; stop(): Promise<void> }> {
  const { server, remove } = await openTestServer('postgres', { settings: ['max_connections=500'] });
  await server.start();
  return { url: `postgres://postgres:postgres@127.0.0.1:${server.port}/postgres`, stop: remove };
}

/** A separate server, not started; `remove` stops it. Its data need not survive a crash. */
export async function openTestServer(
  purpose: string,
  options: Partial<Pick<ServerOptions, 'password' | 'settings'>> = {},
): Promise<{ server: PostgresServer; remove(): Promise<void> }> {
  const folder = await tempDir(purpose, await quickPlace());
  const server = await PostgresServer.open({
    folder: folder.path,
    user: 'postgres',
    password: options.password ?? 'postgres',
    // A login is checked by the same steps, but costs no processor time: there are thousands.
    initdbArguments: ['--no-sync', '--set=scram_iterations=1'],
    settings: [
      ...['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'],
      ...(options.settings ?? []),
    ],
  });
  return {
    server,
    remove: async () => {
      await server.stop();
      await server.remove();
      await folder.remove();
    },
  };
}

/**
 * Where many files are quickly created and deleted: in memory, if that has room, and programs can be run there. A
 * database has hundreds of files; and ext4 without a journal, as virtual machines have it, does not use an inode again
 * for 5 s: it searches long for one where many files were deleted (`recently_deleted` in fs/ext4/ialloc.c of Linux).
 */
async function quickPlace(): Promise<string> {
  const mounts = await readFile('/proc/self/mounts', 'utf8').catch(() => '');
  const [, options] = /^\S+ \/dev\/shm tmpfs (\S+)/m.exec(mounts) ?? [];
  if (options === undefined || options.split(',').includes('noexec')) return tmpdir();
  const { bavail, bsize } = await statfs(MEMORY);
  return bavail * bsize >= MEMORY_NEEDED_BYTES ? MEMORY : tmpdir();
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
