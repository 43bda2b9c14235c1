/**
 * The rights of the processes that the Procfile names, where root has started them. `web` and `actor-host` become users
 * of their own; what starts the processes of services is left behind with rights of root. Worker and gateway start
 * programs as other users: they stay root, and keep the capabilities for that. None can gain rights again. It is done
 * before a process loads anything else: it becomes the launcher, and that one Node again.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { runDirectory } from '../bootstrap/run-directory.js';
import {
  CERTIFICATE_VARIABLES,
  ConfigError,
  certificateEnvironment,
  certificatePaths,
  databaseFiles,
  loadProcessConfig,
  type ProcessPreparation,
  preparedEnvironment,
  preparedProcess,
} from '../config.js';
import type { Identity, Plan } from '../contracts/launcher.js';
import { toError } from '../errors.js';
import { launched } from '../sandbox/launcher.js';
import { isErrno } from '../util/errno.js';
import {
  ACTOR_HOST_USER,
  HAS_UNTRUSTED_USERS,
  PRODUCT_GROUP,
  SERVICE_GROUP,
  UNTRUSTED_GROUP,
  WEB_USER,
} from '../util/untrusted-users.js';
import { execute } from './execute.js';
import { giveToAll, giveToWeb } from './give.js';
import { noting } from './notes.js';
import { prepareActorHost } from './prepare-actor-host.js';

/** Numbers of capabilities, by name; see capabilities(7). */
const CAPABILITIES = {
  ...{ CHOWN: 0, DAC_OVERRIDE: 1, DAC_READ_SEARCH: 2, FOWNER: 3, FSETID: 4, KILL: 5, SETGID: 6, SETUID: 7 },
  ...{ SETPCAP: 8, NET_BIND_SERVICE: 10, NET_ADMIN: 12, SYS_CHROOT: 18, SYS_PTRACE: 19, SYS_ADMIN: 21 },
  ...{ SYS_NICE: 23, SYS_RESOURCE: 24 },
} as const;
/** Ports below are for who has NET_BIND_SERVICE. */
const FIRST_FREE_PORT = 1024;

type ProcessConfig = ReturnType<typeof loadProcessConfig>;

interface ProcessPrivileges {
  readonly identity: Identity | null;
  readonly capabilities: readonly number[];
  /** What a user of its own is to reach. */
  readonly needs: readonly string[];
  /** The command line of what starts others for it. */
  readonly starter: readonly string[] | null;
  readonly prepared: Omit<ProcessPreparation, 'user' | 'starter'>;
}

/** Those that root starts. */
const RIGHTS = {
  web: rightsOfWeb,
  'actor-host': rightsOfActorHost,
  worker: rightsOfRoot,
  gateway: rightsOfRoot,
} as const satisfies Readonly<Record<string, (config: ProcessConfig) => Promise<ProcessPrivileges>>>;

/**
 * Gives up the rights that the process does not need. Returns when it has none to give up, or has done so already, and
 * when the configuration cannot be used, which is said later.
 */
export async function giveUpRights(name: keyof typeof RIGHTS): Promise<void> {
  if (!HAS_UNTRUSTED_USERS || preparedProcess()) return;
  const config = usableConfig();
  if (!config) return;
  // The umask of all that root makes: other users need it, and private files have modes of their own.
  process.umask(0o022);
  try {
    become(await RIGHTS[name](config), config.DATA_DIR);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return;
    // Loaded only now: it takes longer than all the rest.
    const { createLogger } = await import('../util/log.js');
    createLogger(name, config.LOG_LEVEL, []).fatal({ err: toError(thrown) }, 'could not start');
    process.exit(1);
  }
}

function usableConfig(): ProcessConfig | undefined {
  try {
    return loadProcessConfig();
  } catch (thrown) {
    if (thrown instanceof ConfigError) return undefined;
    throw thrown;
  }
}

async function rightsOfRoot(config: ProcessConfig): Promise<ProcessPrivileges> {
  const prepared = { runDir: await runDirectory(config.DATA_DIR), notes: [] };
  return { identity: null, capabilities: Object.values(CAPABILITIES), needs: [], starter: null, prepared };
}

async function rightsOfWeb(config: ProcessConfig): Promise<ProcessPrivileges> {
  const { log, notes } = noting();
  const runDir = await runDirectory(config.DATA_DIR);
  const needs = await giveToWeb(config, log);
  const identity = { user: WEB_USER, group: WEB_USER, groups: [PRODUCT_GROUP, UNTRUSTED_GROUP] };
  const rights = { identity, capabilities: forPorts(config.PORT), needs, starter: null };
  return whereReachable({ ...rights, prepared: { runDir, notes } });
}

async function rightsOfActorHost(config: ProcessConfig): Promise<ProcessPrivileges> {
  const { log, notes } = noting();
  const { runDir, starter } = await prepareActorHost(config, log);
  const needs = await giveToAll(config, log);
  const groups = [PRODUCT_GROUP, UNTRUSTED_GROUP, SERVICE_GROUP];
  const identity = { user: ACTOR_HOST_USER, group: ACTOR_HOST_USER, groups };
  const capabilities = forPorts(config.ACTOR_HOST_PORT, config.METRICS_PORT);
  return whereReachable({ identity, capabilities, needs, starter, prepared: { runDir, notes } });
}

function forPorts(...ports: readonly (number | undefined)[]): readonly number[] {
  const isLow = (port: number | undefined) => port !== undefined && port > 0 && port < FIRST_FREE_PORT;
  return ports.some(isLow) ? [CAPABILITIES.NET_BIND_SERVICE] : [];
}

/**
 * The rights, with files that the operator has named. It is tried whether the process could reach them: a container may
 * refuse.
 */
async function whereReachable(rights: ProcessPrivileges): Promise<ProcessPrivileges> {
  const { prepared } = rights;
  const environment = certificateEnvironment();
  const certificates = CERTIFICATE_VARIABLES.flatMap((name) =>
    certificatePaths(name, environment[name] ?? ''),
  );
  const files = [process.execPath, prepared.runDir, ...certificates, ...databaseFiles()];
  const given = [...rights.needs, ...files].filter((path) => existsSync(path));
  // A link may be in a closed folder, and lead into one.
  const needs = [...new Set([...given, ...given.map((path) => realpathSync(path))])];
  const [file, args] = launched(planOf({ ...rights, needs, starter: null }, 3), 'true', []);
  const { status, stderr } = spawnSync(file, args, { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' });
  if (status === 0) return { ...rights, needs };
  const message =
    'this process stays root, with access to all files: it could not become a user of its own. Open closed folders ' +
    'above the product, Node and DATA_DIR for other users (chmod o+x), or let root mount (CAP_SYS_ADMIN)';
  const notes = [...prepared.notes, { level: 'warn', details: { problem: stderr.trim() }, message } as const];
  const capabilities = [...rights.capabilities, CAPABILITIES.DAC_OVERRIDE];
  return { ...rights, identity: null, capabilities, needs: [], prepared: { ...prepared, notes } };
}

/** @param streams how many descriptors the process has */
function planOf({ identity, capabilities, needs, starter }: ProcessPrivileges, streams: number): Plan {
  return {
    ...{ parent: null, streams, cwd: workingFolder(), nice: null, limits: null, identity },
    ...{ cgroup: null, keepsAttributes: false, access: null, namespaces: null, own: null },
    process: { capabilities, needs, starter },
  };
}

function become(rights: ProcessPrivileges, dataDir: string): never {
  // The parent has ended meanwhile, which Node would not find out once more.
  if (process.send && !process.connected) process.exit(0);
  const channel = channelDescriptor();
  const streams = Math.max(2, channel ?? 0) + 1;
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const [file, launcherArgs] = launched(planOf(rights, streams), process.execPath, args);
  const user = rights.identity?.user ?? 0;
  const facts = { ...rights.prepared, user, ...(rights.starter && { starter: streams }) };
  const environment = preparedEnvironment(facts, {
    DATA_DIR: dataDir,
    ...certificateEnvironment(),
    ...(channel !== undefined && {
      NODE_CHANNEL_FD: String(channel),
      NODE_CHANNEL_SERIALIZATION_MODE: 'json',
    }),
  });
  return execute(file, launcherArgs, environment, channel === undefined ? [] : [channel]);
}

/** Paths among the settings are absolute by then: the process does without it where it is closed. */
function workingFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return '/';
    throw error;
  }
}

/** The descriptor of the channel for messages to and from a parent in Node; the type in Node does not have it. */
function channelDescriptor(): number | undefined {
  return (process.channel as { readonly fd?: number } | undefined)?.fd;
}
