/**
 * Builds one dependency set. Crates are downloaded outside the sandbox, where none of their code runs, to a folder that
 * untrusted code cannot write to. They are built inside, with their build scripts and macros, without a network.
 */
import { copyFile, mkdir, readFile, realpath, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mount } from '../contracts/launcher.js';
import { type Confinement, UNCONFINED } from '../sandbox/confinement.js';
import { removeTree } from '../sandbox/remove-tree.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { giveToRoot, HAS_UNTRUSTED_USERS, isUserOfProgram, makePassable } from '../util/untrusted-users.js';
import { buildEnvironment, buildView, INSIDE, INSIDE_NAMES } from './build-view.js';
import { cargoDiagnostics, compiledPackage, linkArguments, packageCount } from './cargo-output.js';
import { type FailedTool, type FolderNames, whyEnded, withoutMachinePaths } from './diagnostics.js';
import { localSources } from './local-sources.js';
import { type DependencySpec, manifest } from './manifest.js';
import { runTool, type ToolLimits, type ToolResult } from './run-tool.js';
import { cargoHome, copyCrates, sourceConfig } from './set-crates.js';
import type { Toolchain } from './toolchain.js';

/** The dependencies of set builds. */
export interface SetBuilderOptions {
  readonly toolchain: Toolchain;
  readonly sandbox: Sandbox;
  /** The folder of all sets, unfinished ones included. */
  readonly root: string;
  /** The environment of cargo when it downloads crates. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** Aborts running and later calls of cargo. */
  readonly signal?: AbortSignal;
}

/** Progress in compiled crates. */
export interface SetProgress {
  readonly crates: number;
  readonly of: number;
}

/** Why a set could not be built, and in which step. */
export interface FailedSet extends FailedTool {
  readonly step: 'download' | 'compile';
}

/**
 * A file in the folder of a set: arguments for rustc; its presence means that the set is complete. Untrusted code
 * cannot write here.
 */
export const PREPARED_FILE = 'rustc-args.json';
/** Placeholder for the folder of the libraries in that file. */
export const TARGET = '{target}';

/** The folders of one set. */
interface SetFolders {
  /** The set's own folder. */
  readonly set: string;
  /** The project for `cargo fetch`. */
  readonly fetch: string;
  /** The project for `cargo build`. */
  readonly project: string;
  /** CARGO_HOME of the build. */
  readonly cargo: string;
  /** Writable for untrusted code. After an interruption, cargo reuses complete output. */
  readonly target: string;
}

/**
 * Builds a set in its folder, or continues an interrupted build.
 * @param set the folder, with symbolic links resolved
 * @param onProgress called whenever a crate was compiled, or found compiled
 * @returns why it failed; undefined when the set is complete
 */
export async function buildSet(
  options: SetBuilderOptions,
  spec: DependencySpec,
  set: string,
  onProgress?: (progress: SetProgress) => void,
): Promise<FailedSet | undefined> {
  const folder = (name: string) => join(set, name);
  const folders = {
    set,
    fetch: folder('fetch'),
    project: folder('project'),
    cargo: folder('cargo'),
    target: folder('target'),
  };
  await makePassable(set);
  // These are cheap to make again: downloads are cached in the user's CARGO_HOME.
  for (const path of [folders.fetch, folders.project, folders.cargo]) {
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
  const build = new SetBuild(options, folders, sources, isUserOfProgram(uid) ? uid : undefined);
  const notDownloaded = await build.fetch(spec);
  if (notDownloaded) return { ...notDownloaded, step: 'download' };
  const notCompiled = await build.build(spec, onProgress);
  if (notCompiled) return { ...notCompiled, step: 'compile' };
  // Only the sources are needed later: the compiler quotes lines of them.
  const unused = [join(folders.cargo, 'registry', 'cache'), join(folders.cargo, 'registry', 'index')];
  for (const path of [folders.fetch, ...unused]) await removeTree(path);
  return undefined;
}

async function isOfRoot(target: string): Promise<boolean> {
  return HAS_UNTRUSTED_USERS && (await stat(target).catch(() => undefined))?.uid === 0;
}

class SetBuild {
  readonly #options: SetBuilderOptions;
  readonly #folders: SetFolders;
  readonly #confinement: Confinement;

  /** @param user the user to run as; a new one by default */
  constructor(
    options: SetBuilderOptions,
    folders: SetFolders,
    sources: readonly string[],
    user: number | undefined,
  ) {
    this.#options = options;
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

  /** Downloads the crates. */
  async fetch(spec: DependencySpec): Promise<FailedTool | undefined> {
    const { toolchain, env, limits, signal } = this.#options;
    const { fetch, cargo } = this.#folders;
    await writeProject(fetch, manifest(toolchain.sdk, spec));
    // Start from the SDK's own lock, so that shared crates get the versions it was tested with.
    await copyFile(join(toolchain.sdk, 'Cargo.lock'), join(fetch, 'Cargo.lock'));
    const result = await runTool({
      confinement: UNCONFINED,
      file: toolchain.cargo,
      // Without the target, cargo would download the crates of all other platforms.
      args: ['fetch', `--target=${toolchain.host}`],
      cwd: fetch,
      env: { ...env, CARGO_TERM_COLOR: 'never', RUSTC: toolchain.rustc },
      limits,
      writable: [],
      signal,
    });
    if (result.outcome !== 'exited' || result.exitCode !== 0) return this.#failure(result);
    const lock = await readFile(join(fetch, 'Cargo.lock'), 'utf8');
    const inside = (path: string) => this.#confinement.inside(path);
    const failed = await copyCrates(lock, cargo, inside, { env, limits, signal });
    return failed && this.#failure(failed);
  }

  /** Builds the downloaded crates. */
  async build(
    spec: DependencySpec,
    onProgress: ((progress: SetProgress) => void) | undefined,
  ): Promise<FailedTool | undefined> {
    const { toolchain } = this.#options;
    const { set, fetch, project, target } = this.#folders;
    await writeProject(project, manifest(this.#confinement.inside(toolchain.sdk), spec));
    await copyFile(join(fetch, 'Cargo.lock'), join(project, 'Cargo.lock'));
    await this.#confinement.handOver(target);
    // First, before untrusted code has run.
    const platform = `--filter-platform=${toolchain.host}`;
    const metadata = await this.#cargo(['metadata', '--format-version=1', platform]);
    if (metadata.outcome !== 'exited' || metadata.exitCode !== 0) return this.#failure(metadata);
    const onLine = onProgress && countCrates(packageCount(metadata.stdout), onProgress);
    const build = await this.#cargo(['build', '--release', '--message-format=json'], onLine);
    if (build.outcome !== 'exited' || build.exitCode !== 0) return this.#failure(build);

    const built = this.#confinement.inside(target);
    const rustcArgs = linkArguments(built, build.stdout, metadata.stdout).map((arg) =>
      arg.replaceAll(built, TARGET),
    );
    await giveToRoot(target);
    await writeFile(join(set, PREPARED_FILE), JSON.stringify(rustcArgs));
    return undefined;
  }

  #cargo(args: readonly string[], onLine?: (line: string) => void): Promise<ToolResult> {
    const { toolchain, env, limits, signal } = this.#options;
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
      limits,
      groups: this.#options.sandbox.groups,
      writable: [target],
      signal,
      onLine,
    });
  }

  async #failure(result: ToolResult): Promise<FailedTool> {
    const ended = whyEnded(result.outcome, this.#options.limits);
    return {
      ok: false,
      outcome: result.outcome,
      diskMayBeFull: result.diskMayBeFull,
      diagnostics: ended ? [ended] : withoutMachinePaths(cargoDiagnostics(result), await this.#names()),
    };
  }

  async #names(): Promise<FolderNames> {
    const { fetch, project, target } = this.#folders;
    const { toolchain } = this.#options;
    const names: FolderNames = [
      [fetch, '.'],
      [project, '.'],
      [target, 'dependencies'],
      [toolchain.sdk, 'rust-edge-gateway-sdk'],
    ];
    const resolved = names.map(async ([path, name]) => [await realpath(path), name] as const);
    return [
      ...names,
      ...(await Promise.all(resolved)),
      ...(this.#confinement.hasNamespaces ? INSIDE_NAMES : []),
    ];
  }
}

/** Counts crates in the output of `cargo build`, line by line. */
function countCrates(of: number, onProgress: (progress: SetProgress) => void): (line: string) => void {
  const compiled = new Set<string>();
  onProgress({ crates: 0, of });
  return (line) => {
    const id = compiledPackage(line);
    if (id === undefined || compiled.has(id)) return;
    compiled.add(id);
    onProgress({ crates: compiled.size, of: Math.max(of, compiled.size) });
  };
}

async function writeProject(folder: string, text: string): Promise<void> {
  await mkdir(join(folder, 'src'));
  await writeFile(join(folder, 'Cargo.toml'), text);
  await writeFile(join(folder, 'src', 'main.rs'), 'fn main() {}\n');
}
