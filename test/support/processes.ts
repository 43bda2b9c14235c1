/** The real processes, started separately as by the Procfile: with a separate database, ports and folder. */
import { type ChildProcess, fork } from 'node:child_process';
import { chmod, chown, mkdir, readdir, symlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ArtifactStore } from '../../src/artifacts/artifact-store.js';
import { openArtifactStore } from '../../src/artifacts/open.js';
import { makeFolderOfRoot } from '../../src/bootstrap/reachable-folder.js';
import { handlerSocket, runDirectory } from '../../src/bootstrap/run-directory.js';
import { loadConfig } from '../../src/config.js';
import type { FileContents } from '../../src/model/source-files.js';
import { HAS_UNTRUSTED_USERS } from '../../src/util/untrusted-users.js';
import { createClient, type HttpClient } from './client.js';
import { KnownArtifacts } from './known-artifacts.js';
import { createTestLog, type TestLog } from './log.js';
import { asOtherUser, pathForOtherUser } from './other-user.js';
import { freePort } from './ports.js';
import { createDatabase, type TestDatabase } from './postgres.js';
import { tempDir } from './temp.js';

const ENTRIES = {
  web: 'src/processes/web',
  worker: 'jobs/worker',
  gateway: 'src/processes/gateway',
  'actor-host': 'src/processes/actor-host',
} as const;

export type ProcessName = keyof typeof ENTRIES;

/** One process. */
export interface TestProcess {
  readonly name: ProcessName;
  readonly pid: number;
  /** Resolves when it reports that it is ready. */
  readonly ready: Promise<void>;
  readonly logged: TestLog;
  /** Its output. */
  printed(): string;
  /** Sends a signal, and resolves with how the process ended. */
  end(signal?: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Fields of an endpoint to be created. */
export interface NewEndpoint {
  readonly entry?: string;
  readonly files?: FileContents;
  readonly path: string;
  readonly code: string;
  readonly [field: string]: unknown;
}

/** A set of processes that work together. */
export interface Stack {
  readonly api: HttpClient;
  /** The public side. */
  readonly gateway: HttpClient;
  readonly apiUrl: string;
  readonly gatewayUrl: string;
  readonly databaseUrl: string;
  readonly dataDir: string;
  /** The folder for sockets of the gateway and the actor host. */
  readonly runDir: string;
  /** DATA_DIR of these: another one where they run as another user. */
  readonly gatewayDataDir: string;
  /** The socket for service calls of handlers. */
  readonly servicesSocket: string;
  /** The running processes by name. */
  readonly processes: ReadonlyMap<ProcessName, TestProcess>;
  /** Starts a process of the stack, again if it has ended; resolves when it is ready. */
  start(name: ProcessName, env?: Record<string, string>): Promise<TestProcess>;
  /** Starts an additional process without waiting; the caller ends it. */
  launch(name: ProcessName, env?: Record<string, string>): TestProcess;
  /** Creates an endpoint, compiles and starts it; returns its id. */
  deploy(endpoint: NewEndpoint): Promise<string>;
  close(): Promise<void>;
}

export interface StackOptions {
  readonly env?: Record<string, string>;
  /** The URL by which the processes reach their database. */
  readonly databaseUrl?: (url: string) => Promise<string>;
  /** All four unless given. */
  readonly processes?: readonly ProcessName[];
  /** A shared database, which its creator drops. By default a separate one. */
  readonly database?: TestDatabase;
  /** Prepares DATA_DIR before anything is in it; resolves with a function that undoes it. */
  readonly prepareData?: (dataDir: string) => Promise<() => Promise<void>>;
  /** The user of the gateway and the actor host, which get a DATA_DIR of their own then; needs root. */
  readonly user?: number | undefined;
  /** The host name that the processes see; needs root. By default that of this machine. */
  readonly hostname?: string;
  /** A file that they read instead of /proc/meminfo; needs root. */
  readonly memoryInfo?: string;
  /** A file descriptor that the processes inherit by mistake, as from a shell. */
  readonly inheritedFile?: number;
  /** Limit of open files and connections of each process. By default that of the tests. */
  readonly openFiles?: number;
  /** A capability that root does not have, as in a container, by its name for setpriv(1); needs root. */
  readonly lacks?: string;
}

/**
 * Prepared dependency sets are shared by all test runs of a machine: each is keyed by what it was made from, so what
 * an older SDK left there is never used. Those of root are where builds can reach them that run as other users.
 */
export const BUILD_CACHE = join(
  HAS_UNTRUSTED_USERS ? '/var/cache' : (process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')),
  'edge-gateway',
  'test-build',
);

/** Makes `BUILD_CACHE`. Builds that run as other users can enter the folder above, whatever the umask is. */
export async function makeBuildCache(): Promise<void> {
  await mkdir(BUILD_CACHE, { recursive: true });
  if (HAS_UNTRUSTED_USERS) await makeFolderOfRoot(dirname(BUILD_CACHE));
}

/** The folder of a worker in `BUILD_CACHE` with what it is compiling. */
export async function scratchOf(worker: number): Promise<string> {
  const names = await readdir(BUILD_CACHE);
  const [name] = names.filter((found) => found.startsWith(`scratch-${worker}-`));
  if (name === undefined) throw new Error(`The worker ${worker} has no folder for builds.`);
  return join(BUILD_CACHE, name);
}

/** Starts the processes; resolves when all are ready. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const database = options.database ?? (await createDatabase());
  const databaseUrl = (await options.databaseUrl?.(database.url)) ?? database.url;
  const data = await tempDir('stack');
  await makeBuildCache();
  const undoData = await options.prepareData?.(data.path);
  if (!undoData) await symlink(BUILD_CACHE, join(data.path, 'build'));
  const apart = options.user === undefined ? undefined : await foldersOf(options.user);
  const [port, gatewayPort] = [await freePort(), await freePort()];
  const baseEnv: Record<string, string | undefined> = {
    ...process.env,
    DATABASE_URL: databaseUrl,
    DATA_DIR: data.path,
    PORT: String(port),
    GATEWAY_PORT: String(gatewayPort),
    HOST: '127.0.0.1',
    LOG_LEVEL: 'info',
    // Builds and readers of documents run at low priority, and other tests use the processors at the same time.
    IMPORT_READ_TIMEOUT_MS: '600000',
    COMPILE_TIMEOUT_MS: '600000',
    COMPILE_WAIT_MS: '600000',
    PERIODIC_WORK_PERCENT: '40',
    ...(apart && { ARTIFACTS_URL: apart.artifacts }),
    ...options.env,
  };
  const apiUrl = `http://127.0.0.1:${port}`;
  const gatewayUrl = `http://127.0.0.1:${gatewayPort}`;
  const processes = new Map<ProcessName, TestProcess>();
  const api = createClient(apiUrl);

  const launch = (name: ProcessName, env: Record<string, string> = {}) =>
    apart && (name === 'gateway' || name === 'actor-host')
      ? startProcess(name, { ...baseEnv, DATA_DIR: apart.data, HOME: apart.data, ...env }, options)
      : startProcess(name, { ...baseEnv, ...env }, { ...options, user: undefined });
  let store: Promise<ArtifactStore> | undefined;
  const knownArtifacts = async () => {
    store ??= openArtifactStore(loadConfig(baseEnv));
    return new KnownArtifacts(join(BUILD_CACHE, 'artifacts'), database.url, await store);
  };
  const start = async (name: ProcessName, env: Record<string, string> = {}) => {
    const started = launch(name, env);
    processes.set(name, started);
    await started.ready;
    return started;
  };
  const close = async () => {
    for (const name of ['gateway', 'worker', 'actor-host', 'web'] as const) await processes.get(name)?.end();
    if (!options.database) await database.drop();
    await undoData?.();
    await data.remove();
    await apart?.remove();
  };
  try {
    await Promise.all(
      (options.processes ?? (Object.keys(ENTRIES) as ProcessName[])).map((name) => start(name)),
    );
  } catch (error) {
    await close();
    throw error;
  }
  const runDir = apart ? join(apart.data, 'run') : await runDirectory(data.path);
  return {
    api,
    gateway: createClient(gatewayUrl),
    apiUrl,
    gatewayUrl,
    databaseUrl: database.url,
    dataDir: data.path,
    runDir,
    gatewayDataDir: apart?.data ?? data.path,
    servicesSocket: handlerSocket(runDir),
    processes,
    start,
    launch,
    deploy: async (endpoint) => deploy(api, endpoint, await knownArtifacts()),
    close,
  };
}

/** A DATA_DIR of this user, and a folder for artifacts that root writes and this user reads. */
async function foldersOf(
  user: number,
): Promise<{ data: string; artifacts: string; remove(): Promise<void> }> {
  const [data, artifacts] = [await tempDir('user'), await tempDir('artifacts')];
  await chown(data.path, user, user);
  await chmod(data.path, 0o700);
  return {
    data: data.path,
    artifacts: artifacts.path,
    remove: async () => {
      await data.remove();
      await artifacts.remove();
    },
  };
}

/** Creates an endpoint, compiles it, unless its executable is known, and starts it; returns its id. */
export async function deploy(
  api: HttpClient,
  endpoint: NewEndpoint,
  known?: KnownArtifacts,
): Promise<string> {
  const created = await must(
    api.post('/api/endpoints', { name: endpoint.path, method: 'GET', domain: '*', ...endpoint }),
  );
  const { id } = created as { id: string };
  const compile = () => must(api.post(`/api/endpoints/${id}/compile`));
  await (known ? known.compile(id, compile) : compile());
  await must(api.post(`/api/endpoints/${id}/start`));
  return id;
}

/** The `data` of a response that must be a success. */
export async function must(answer: Promise<{ status: number; body: unknown }>): Promise<unknown> {
  const { status, body } = await answer;
  const { ok, data, error } = body as { ok: boolean; data: unknown; error?: string };
  if (!ok) throw new Error(`The API answered ${status}: ${error}`);
  return data;
}

/** Node itself sees to inherited files with low numbers. */
const FREE_DESCRIPTORS = Array<'ignore'>(100).fill('ignore');

function startProcess(
  name: ProcessName,
  env: Record<string, string | undefined>,
  options: Pick<StackOptions, 'user' | 'hostname' | 'memoryInfo' | 'inheritedFile' | 'openFiles' | 'lacks'>,
): TestProcess {
  const { inheritedFile, user } = options;
  const logged = createTestLog();
  const entry = new URL(`../../${ENTRIES[name]}.js`, import.meta.url);
  const child = fork(user === undefined ? fileURLToPath(entry) : pathForOtherUser(entry), {
    env,
    stdio: [
      ...(['ignore', 'pipe', 'pipe', 'ipc'] as const),
      ...(inheritedFile === undefined ? [] : [...FREE_DESCRIPTORS, inheritedFile]),
    ],
    ...throughPrograms(options),
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      logged.write(text);
    });
  }
  const whenReady = ready(child, name, () => printed);
  // Who only launches a process need not listen.
  whenReady.catch(() => undefined);
  return {
    name,
    pid: child.pid ?? 0,
    ready: whenReady,
    logged,
    printed: () => printed,
    end: (signal = 'SIGTERM') =>
      new Promise((resolve) => {
        const done = () => resolve({ code: child.exitCode, signal: child.signalCode });
        if (child.exitCode !== null || child.signalCode !== null) return done();
        child.once('close', done);
        return child.kill(signal);
      }),
  };
}

/** Node is started by programs that replace themselves by it, so it is our direct child. */
function throughPrograms({
  hostname,
  memoryInfo,
  openFiles,
  user,
  lacks,
}: Pick<StackOptions, 'hostname' | 'memoryInfo' | 'openFiles' | 'user' | 'lacks'>): {
  execPath: string;
  execArgv: string[];
} {
  const rename = 'hostname "$0" && exec "$@"';
  const cover = 'mount --bind "$0" /proc/meminfo && exec "$@"';
  const [execPath = process.execPath, ...execArgv] = [
    ...(openFiles === undefined ? [] : ['prlimit', `--nofile=${openFiles}`]),
    ...(hostname === undefined ? [] : ['unshare', '--uts', 'sh', '-c', rename, hostname]),
    ...(memoryInfo === undefined ? [] : ['unshare', '--mount', 'sh', '-c', cover, memoryInfo]),
    ...(user === undefined ? [] : asOtherUser(user)),
    ...(lacks === undefined ? [] : ['setpriv', `--bounding-set=-${lacks}`, '--']),
    process.execPath,
  ];
  return { execPath, execArgv };
}

function ready(child: ChildProcess, name: string, printed: () => string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('exit', (code, signal) =>
      reject(
        new Error(`${name} ended (${code ?? signal}) before it was ready:\n${printed().slice(-20_000)}`),
      ),
    );
  });
}
