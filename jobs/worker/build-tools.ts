/** What compiles handlers on this machine: the toolchain, the folders, and the libraries that handlers link to. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { reachableFolder } from '../../src/bootstrap/reachable-folder.js';
import type { Shutdown } from '../../src/bootstrap/shutdown.js';
import type { BuilderOptions } from '../../src/build/builder.js';
import { DependencySets, type SharedSets } from '../../src/build/dependency-sets.js';
import { reachableToolchain } from '../../src/build/reachable-toolchain.js';
import type { SetBuilderOptions } from '../../src/build/set-build.js';
import type { Toolchain } from '../../src/build/toolchain.js';
import type { Config } from '../../src/config.js';
import { removeAbandoned } from '../../src/sandbox/abandoned.js';
import { removeTree } from '../../src/sandbox/remove-tree.js';
import type { Sandbox } from '../../src/sandbox/sandbox.js';
import type { Logger } from '../../src/util/log.js';
import { PROCESS_PATTERN, THIS_PROCESS } from '../../src/util/process-liveness.js';
import { HAS_UNTRUSTED_USERS, makePassable } from '../../src/util/untrusted-users.js';

interface BuildToolsOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly shutdown: Shutdown;
  /** The toolchain as it is installed. */
  readonly installed: Toolchain;
  readonly sandbox: Sandbox;
  readonly env: BuilderOptions['env'];
  /** Ends the tools that run. */
  readonly interrupt: AbortController;
  /** Reads how hosts of crates let cargo in. */
  readonly credentials: SetBuilderOptions['credentials'];
  /** Opens the sets that all workers share. */
  readonly openShared: (toolchain: string, limits: SetBuilderOptions['limits']) => SharedSets;
}

export type BuildTools = Omit<BuilderOptions, 'artifacts' | 'turns'>;

/** Makes the folders, and copies the toolchain where programs of other users could not reach it, which takes long. */
export async function openBuildTools(options: BuildToolsOptions): Promise<BuildTools> {
  const { config, log, shutdown, installed, sandbox, env, interrupt, credentials, openShared } = options;
  const limits = limitsOf(config);
  const folder = await makeBuildFolder(config.DATA_DIR, sandbox);
  const toolchain = HAS_UNTRUSTED_USERS
    ? await reachableToolchain(installed, sandbox.needsReachablePaths, folder, log)
    : installed;
  const scratch = await makeScratch(folder, log);
  shutdown.add('scratch folder', () => removeTree(scratch));
  const root = join(folder, 'sets');
  const { cpuSeconds, ...ofSets } = { ...limits, timeoutMs: config.CRATES_TIMEOUT_MS };
  const { CARGO_SOURCES: crateSources } = config;
  const sets = new DependencySets(
    { root, toolchain, sandbox, env, limits: ofSets, crateSources, credentials, signal: interrupt.signal },
    log,
    openShared(toolchain.fingerprint, ofSets),
  );
  shutdown.add('tools', async () => {
    interrupt.abort();
    await sets.settled();
  });
  return { toolchain, sandbox, sets, scratch, env, limits, crateSources };
}

function limitsOf(config: Config): BuilderOptions['limits'] {
  return {
    timeoutMs: config.COMPILE_TIMEOUT_MS,
    memoryMb: config.COMPILE_MEMORY_MB,
    cpuSeconds: config.COMPILE_CPU_SECONDS,
    processes: config.COMPILE_PROCESSES,
    diskMb: config.COMPILE_DISK_MB,
    totalMemoryMb: config.COMPILE_TOTAL_MEMORY_MB,
    fileMb: 1024,
    openFiles: 4096,
  };
}

/** Makes the folder for all that is built on this machine. */
async function makeBuildFolder(dataDir: string, sandbox: Sandbox): Promise<string> {
  const own = join(dataDir, 'build');
  const folder = sandbox.needsReachablePaths ? await reachableFolder(dataDir, 'build') : own;
  await makePassable(folder);
  return folder;
}

/** Makes the folder for builds of this process, and removes those of workers that were killed. */
async function makeScratch(folder: string, log: Logger): Promise<string> {
  await removeAbandoned(folder, new RegExp(`^scratch-(${PROCESS_PATTERN})$`), log);
  const own = join(folder, `scratch-${THIS_PROCESS}`);
  await mkdir(own);
  return own;
}
