/**
 * Builds one dependency set. Its crates are downloaded outside the sandbox, where none of their code runs, to a folder
 * that untrusted code cannot write to. They are built inside, with their build scripts and macros, without a network.
 */
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mount } from '../contracts/launcher.js';
import type { Confinement } from '../sandbox/confinement.js';
import { removeTree } from '../sandbox/remove-tree.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import {
  giveToRoot,
  giveToUser,
  HAS_UNTRUSTED_USERS,
  isUserOfProgram,
  makePassable,
} from '../util/untrusted-users.js';
import { buildEnvironment, buildView, INSIDE } from './build-view.js';
import { linkArguments, usedHashes } from './cargo-output.js';
import type { CrateCredential } from './crate-credentials.js';
import { writeProject } from './crate-downloads.js';
import { localSources } from './local-sources.js';
import { type DependencySpec, manifest } from './manifest.js';
import { PREPARED_FILE, TARGET, targetOf } from './prepared-sets.js';
import { runTool, type ToolLimits, type ToolResult } from './run-tool.js';
import { basesOf, recordCrates } from './set-bases.js';
import { cargoHome, copyCrates, runSystemTool, sourceConfig } from './set-crates.js';
import { type FailedSet, failedSet, idleMsOf, refusedSet } from './set-failure.js';
import { type CrateGraph, readGraph } from './set-graph.js';
import { CargoProgress, type SetProgress } from './set-progress.js';
import type { Toolchain } from './toolchain.js';

/** The dependencies of set builds. */
export interface SetBuilderOptions {
  readonly toolchain: Toolchain;
  readonly sandbox: Sandbox;
  /** The folder of all sets, unfinished ones included. */
  readonly root: string;
  /** The environment of cargo when it downloads crates. */
  readonly env: Readonly<Record<string, string>>;
  /** Its time limit is that of a download, and of the processor while no crate gets finished. */
  readonly limits: ToolLimits;
  /** Origins of the git repositories and registries that crates may come from besides crates.io. */
  readonly crateSources: readonly string[];
  /** Reads how these let cargo in. */
  readonly credentials: () => Promise<readonly CrateCredential[]>;
  /** Aborts running and later calls of cargo. */
  readonly signal?: AbortSignal;
}

/** The folders of one set. */
interface SetFolders {
  /** The set's own folder. */
  readonly set: string;
  /** The project of the build. */
  readonly project: string;
  /** CARGO_HOME of the build. */
  readonly cargo: string;
  /** Writable for untrusted code. After an interruption, cargo reuses complete output. */
  readonly target: string;
}

/** One build of a set. */
export interface SetRun {
  readonly spec: DependencySpec;
  /** The text of its Cargo.lock; the crates in it have been downloaded. */
  readonly lock: string;
  /** Its folder, with symbolic links resolved. */
  readonly set: string;
  /** Called with each step. */
  readonly onProgress: ((progress: SetProgress) => void) | undefined;
}

/**
 * Builds a set in its folder, or continues an interrupted build.
 * @returns why it failed; undefined when the set is complete
 */
export async function buildSet(options: SetBuilderOptions, run: SetRun): Promise<FailedSet | undefined> {
  const { set } = run;
  const folder = (name: string) => join(set, name);
  const folders = { set, project: folder('project'), cargo: folder('cargo'), target: folder('target') };
  await makePassable(set);
  // These are cheap to make again: downloads are cached in the user's CARGO_HOME.
  for (const path of [folders.project, folders.cargo]) {
    await removeTree(path);
    await mkdir(path);
  }
  // A crash came between the end of cargo and that of this: no cargo may go on here.
  if (await isOfRoot(folders.target)) await removeTree(folders.target);
  await mkdir(folders.target, { recursive: true });
  const home = cargoHome(options.env);
  const sources = localSources(await sourceConfig(home), home);
  // The output of an earlier try belongs to the user it ran as.
  const { uid } = await stat(folders.target);
  await options.sandbox.killAbandoned();
  const build = new SetBuild(options, run, folders, sources, isUserOfProgram(uid) ? uid : undefined);
  const failed = (await build.copyDownloads()) ?? (await build.build());
  if (failed) return failed;
  // Only the sources are needed later: the compiler quotes lines of them.
  for (const path of ['git/db', 'registry/cache', 'registry/index'])
    await removeTree(join(folders.cargo, path));
  return undefined;
}

async function isOfRoot(target: string): Promise<boolean> {
  return HAS_UNTRUSTED_USERS && (await stat(target).catch(() => undefined))?.uid === 0;
}

class SetBuild {
  readonly #options: SetBuilderOptions;
  readonly #run: SetRun;
  readonly #folders: SetFolders;
  readonly #confinement: Confinement;

  /** @param user the user to run as; a new one by default */
  constructor(
    options: SetBuilderOptions,
    run: SetRun,
    folders: SetFolders,
    sources: readonly string[],
    user: number | undefined,
  ) {
    this.#options = options;
    this.#run = run;
    this.#folders = folders;
    const { toolchain, sandbox } = options;
    const { project, cargo, target } = folders;
    this.#confinement = sandbox.confine(
      buildView(toolchain, {
        readOnly: [
          [project, INSIDE.project],
          [cargo, INSIDE.cargo],
          ...sources.map((path, at): Mount => [path, `${INSIDE.sources}/${at}`]),
        ],
        writable: [[target, INSIDE.target]],
      }),
      user,
    );
  }

  /** Makes what was downloaded visible to the build. */
  async copyDownloads(): Promise<FailedSet | undefined> {
    const { env, limits, signal } = this.#options;
    const { project, cargo } = this.#folders;
    const { spec, lock } = this.#run;
    await writeProject(project, { manifest: manifest(this.#sdk, spec), lock, local: spec.local });
    const inside = (path: string) => this.#confinement.inside(path);
    const failed = await copyCrates(lock, cargo, inside, { env, limits, signal });
    return failed && this.#failure('download', failed);
  }

  async build(): Promise<FailedSet | undefined> {
    const { toolchain } = this.#options;
    const { set, target } = this.#folders;
    const { spec, lock, onProgress } = this.#run;
    await this.#confinement.handOver(target);
    // First, before untrusted code has run.
    const platform = `--filter-platform=${toolchain.host}`;
    const metadata = await this.#cargo(['metadata', '--format-version=1', platform]);
    if (!hasSucceeded(metadata)) return this.#failure('compile', metadata);
    const graph = readGraph(metadata.stdout, lock, spec.local?.digest ?? '');
    if (!existsSync(join(target, RELEASE))) await this.#beginWithBases(graph);
    const progress = new CargoProgress(graph.names, onProgress);
    const build = await this.#cargo(['build', '--release', '--message-format=json'], progress);
    if (!hasSucceeded(build)) return this.#failure('compile', build, progress);

    const built = this.#confinement.inside(target);
    const rustcArgs = linkArguments(built, build.stdout, metadata.stdout).map((arg) =>
      arg.replaceAll(built, TARGET),
    );
    // All that could change it has ended; what follows trusts its folders to be folders.
    await giveToRoot(target);
    if (!(await hasPlainFolders(target))) return refusedSet(MISLED);
    await removeUnused(join(target, RELEASE), build.stdout);
    await recordCrates(set, graph, { toolchain, sdk: this.#sdk });
    await writeFile(join(set, PREPARED_FILE), JSON.stringify(rustcArgs));
    return undefined;
  }

  /** The path of the SDK as the build sees it. */
  get #sdk(): string {
    return this.#confinement.inside(this.#options.toolchain.sdk);
  }

  /** Cargo takes what it finds there for its own: the crates are the same, in the same place. */
  async #beginWithBases(graph: CrateGraph): Promise<void> {
    const { root, toolchain, limits } = this.#options;
    const { set, target } = this.#folders;
    const mostBytes = (limits.diskMb / 2) * MEGABYTE;
    const bases = await basesOf(root, graph, { toolchain, sdk: this.#sdk }, mostBytes);
    if (bases.length === 0) return;
    const begun = join(set, 'begun');
    await removeTree(begun);
    await mkdir(begun);
    for (const base of bases) {
      if (!(await hasPlainFolders(targetOf({ folder: base })))) continue;
      const from = `${join(targetOf({ folder: base }), RELEASE)}/.`;
      // What a macro has left there may be a link, which must not be followed.
      const args = ['-RPp', '--remove-destination', '--reflink=auto', '--', from, begun];
      if (await runSystemTool('cp', args, this.#options)) return;
    }
    const { user } = this.#confinement;
    if (user) await giveToUser(begun, user.id);
    await rename(begun, join(target, RELEASE));
  }

  #cargo(args: readonly string[], progress?: CargoProgress): Promise<ToolResult> {
    const { toolchain, env, signal } = this.#options;
    const { project, cargo, target } = this.#folders;
    const confinement = this.#confinement;
    const inside = (path: string) => confinement.inside(path);
    return runTool({
      confinement,
      file: inside(toolchain.cargo),
      args: [...args, '--offline', '--locked', `--manifest-path=${inside(join(project, 'Cargo.toml'))}`],
      // In a folder, cargo would look for configuration in all folders above it.
      cwd: '/',
      env: {
        ...buildEnvironment(toolchain, env, target, confinement),
        CARGO_HOME: inside(cargo),
        CARGO_TARGET_DIR: inside(target),
        CARGO_TERM_COLOR: 'never',
        RUSTC: inside(toolchain.rustc),
      },
      limits: this.#buildLimits(),
      groups: this.#options.sandbox.groups,
      writable: [target],
      signal,
      ...(progress && {
        onLine: progress.onLine,
        onErrorLine: progress.onErrorLine,
        progress: () => progress.state.crates,
      }),
    });
  }

  /** How long crates take depends on their number, and on what else the machine does. */
  #buildLimits(): ToolLimits {
    const { timeoutMs, ...others } = this.#options.limits;
    const untilProgress = { cpuMsWithoutProgress: timeoutMs, idleMs: idleMsOf(timeoutMs) };
    return {
      ...others,
      timeoutMs: Number.POSITIVE_INFINITY,
      ...(Number.isFinite(timeoutMs) && untilProgress),
    };
  }

  #failure(step: FailedSet['step'], result: ToolResult, progress?: CargoProgress): Promise<FailedSet> {
    const { limits, toolchain, env } = this.#options;
    const { project, target } = this.#folders;
    const where = { step, limits, toolchain, target, projects: [project], cargoHome: cargoHome(env) };
    return failedSet(result, { ...where, ...(progress && { progress }) });
  }
}

const MEGABYTE = 1024 * 1024;
/** The folder of the profile within cargo's output, and those in it that are read. */
const RELEASE = 'release';
const FOLDERS = ['deps', 'build', '.fingerprint'];

function hasSucceeded({ outcome, exitCode }: ToolResult): boolean {
  return outcome === 'exited' && exitCode === 0;
}

const MISLED =
  'A build script or a macro has replaced folders of the compiled crates by something else: they cannot be used.';

/** Whether the folders of cargo's output are folders: untrusted code could make links of them, to any other place. */
async function hasPlainFolders(target: string): Promise<boolean> {
  const paths = ['', RELEASE, ...FOLDERS.map((name) => join(RELEASE, name))].map((name) =>
    join(target, name),
  );
  const kinds = await Promise.all(paths.map((path) => lstat(path).catch(() => undefined)));
  return kinds.every((status) => status === undefined || status.isDirectory());
}

/** Removes the libraries that this set has begun with, and does not use. */
async function removeUnused(release: string, buildOutput: string): Promise<void> {
  const used = usedHashes(buildOutput);
  for (const folder of ['deps', 'build'])
    for (const name of await readdir(join(release, folder)).catch(() => [])) {
      const hash = HASH_IN_NAME.exec(name)?.[1];
      if (hash !== undefined && !used.has(hash)) await removeTree(join(release, folder, name));
    }
}

/** Cargo names files and folders of its output after what it has compiled: `libserde-2f0c….rlib`. */
const HASH_IN_NAME = /-([0-9a-f]{16})(?:\.|$)/;
