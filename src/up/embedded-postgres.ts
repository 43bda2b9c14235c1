/** The PostgreSQL server of `npm run up`, with its data in DATA_DIR. */
import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createDatabaseIfMissing } from '../store/database.js';
import { isErrno } from '../util/errno.js';
import { isAlive } from '../util/process-liveness.js';
import { existingData } from './postgres-place.js';
import { PARENT_VARIABLE, PostgresServer } from './postgres-server.js';

/** A running server. */
export interface EmbeddedServer {
  readonly url: string;
  stop(): Promise<void>;
}

const USER = 'edge';
const DATABASE = 'edge_gateway';
/** Limit for the server of an earlier run to end. */
const LEFTOVER_LIMIT_MS = 20_000;

/**
 * Starts the server; the first time, creates its data folder.
 * @param dataDir an existing folder
 * @throws Error saying what to do when it cannot run
 */
export async function startEmbeddedPostgres(
  dataDir: string,
  onLog: (text: string) => void,
): Promise<EmbeddedServer> {
  // Before the data is moved or gets another owner.
  const data = await existingData(dataDir);
  if (data !== undefined) await endLeftover(data);
  const password = await keptPassword(join(dataDir, 'postgres.password'));
  const server = await PostgresServer.open({
    folder: dataDir,
    user: USER,
    password,
    settings: ['max_connections=200'],
    onLog,
  });
  await server.start();
  const url = `postgres://${USER}:${password}@127.0.0.1:${server.port}/${DATABASE}`;
  await createDatabaseIfMissing(url);
  return { url, stop: () => server.stop() };
}

/**
 * The URL of the server that runs with this data.
 * @throws Error when none does
 */
export async function runningServerUrl(dataDir: string): Promise<string> {
  const data = await existingData(dataDir);
  const lines = data && (await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
  // The fourth line of this file is the port.
  const port = Number(lines?.[3]);
  if (!(port > 0) || !isAlive(Number(lines?.[0])))
    throw new Error(
      `The database in ${dataDir} does not run: start \`npm run up\` first, or set DATABASE_URL.`,
    );
  const password = await readFile(join(dataDir, 'postgres.password'), 'utf8');
  return `postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}`;
}

/** Stops the server of an earlier run, which locks the data folder. */
async function endLeftover(data: string): Promise<void> {
  const pidFile = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(pidFile.split('\n')[0]);
  if (!(pid > 0) || !isAlive(pid)) return;
  const command = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
  // The process id may have been reused. A zombie has no arguments and ends soon, but blocks another server until then.
  if (command !== '' && !command.includes(data)) return;
  if (await hasParent(pid))
    throw new Error(`Another Edge Gateway uses the database in ${data} (process ${pid}): stop it first.`);
  if (command !== '') process.kill(pid, 'SIGINT');
  const deadline = Date.now() + LEFTOVER_LIMIT_MS;
  while (isAlive(pid)) {
    if (Date.now() > deadline)
      throw new Error(`A PostgreSQL server of an earlier run (pid ${pid}) does not end; end it by hand.`);
    await delay(50);
  }
}

/** Whether the process that started this server is alive: an orphan is reparented. */
async function hasParent(pid: number): Promise<boolean> {
  const [environment, status] = await Promise.all(
    ['environ', 'status'].map((name) => readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => '')),
  );
  const starter = environment?.split('\0').find((entry) => entry.startsWith(`${PARENT_VARIABLE}=`));
  return (
    starter !== undefined &&
    starter.slice(PARENT_VARIABLE.length + 1) === /^PPid:\s+(\d+)/m.exec(status ?? '')?.[1]
  );
}

async function keptPassword(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
  const password = randomBytes(24).toString('base64url');
  // Written atomically: a truncated password would go unnoticed and be used for the data folder.
  await rm(`${file}.new`, { force: true });
  await writeFile(`${file}.new`, password, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return password;
}
