/**
 * Builds one dependency set. What cargo downloads, it downloads outside the sandbox, where it runs no program of
 * strangers, and from a folder that none of them can write to; what it builds, with all their build scripts and macros,
 * it builds inside, without a network.
 */
import { copyFile, mkdir, mkdtemp, readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../log.js';
import { removeAbandoned } from '../sandbox/abandoned.js';
import { type Confinement, type Mount, UNCONFINED } from '../sandbox/confinement.js';
import { removeTree } from '../sandbox/remove-tree.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { buildEnvironment, buildView, INSIDE, INSIDE_NAMES } from './build-view.js';
import { cargoDiagnostics, linkArguments } from './cargo-output.js';
import type { PreparedSet } from './dependency-sets.js';
import { type FailedTool, type FolderNames, whyEnded, withoutMachinePaths } from './diagnostics.js';
import { localSources } from './local-sources.js';
import { type DependencySpec, manifest } from './manifest.js';
import { runTool, type ToolLimits, type ToolResult } from './run-tool.js';
import { cargoHome, copyCrates, sourceConfig } from './set-crates.js';
import type { Toolchain } from './toolchain.js';

/** What sets are built with. */
export interface SetBuilderOptions {
  readonly toolchain: Toolchain;
  readonly sandbox: Sandbox;
  /** The folder of all sets, those in the making included. */
  readonly root: string;
  /** For cargo when it downloads crates. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** Ends whatever cargo is doing, and all it would be asked to do. */
  readonly signal?: AbortSignal;
}

/**
 * In the folder of a set: arguments for rustc; its presence means that the set is complete. What is built cannot write
 * here.
 */
export const PREPARED_FILE = 'rustc-args.json';
/** Stands for the folder of the libraries in that file. */
export const TARGET = '{target}';

/** What the folder of a set in the making is called; the id of the process follows. */
const MAKING = '.making-';

/** Removes what is left of sets in the making by workers that were killed. To be called before the first is built. */
export function removeUnfinished(root: string, log: Logger): Promise<void> {
  return removeAbandoned(root, new RegExp(`^${MAKING}(\\d+)-`), log);
}

/** The folders of one set in the making. */
interface SetFolders {
  /** The set's own folder. */
  readonly set: string;
  /** From where cargo downloads. */
  readonly fetch: string;
  /** What cargo builds. */
  readonly project: string;
  /** CARGO_HOME of what is built. */
  readonly cargo: string;
  /** What programs of strangers can write to. */
  readonly target: string;
}

/** Builds a set, and gives its folder to `keep`, which moves it away; nothing is left of one that fails. */
export async function buildSet(
  options: SetBuilderOptions,
  spec: DependencySpec,
  timeoutMs: number,
  keep: (folder: string) => Promise<PreparedSet>,
): Promise<PreparedSet> {
  await mkdir(options.root, { recursive: true });
  // Without symbolic links: what cargo calls its files, which links it resolves and which not, is then certain.
  const set = await mkdtemp(join(await realpath(options.root), `${MAKING}${process.pid}-`));
  const folder = (name: string) => join(set, name);
  const folders = {
    set,
    fetch: folder('fetch'),
    project: folder('project'),
    cargo: folder('cargo'),
    target: folder('target'),
  };
  try {
    for (const path of [folders.fetch, folders.project, folders.cargo, folders.target]) await mkdir(path);
    const home = cargoHome(options.env);
    const sources = localSources(await sourceConfig(home), home);
    const build = new SetBuild({ ...options, limits: { ...options.limits, timeoutMs } }, folders, sources);
    const failed = (await build.fetch(spec)) ?? (await build.build(spec));
    if (failed) return failed;
    // Of what cargo was given, only the sources are of use later: the compiler shows lines of them.
    for (const path of [
      folders.fetch,
      join(folders.cargo, 'registry', 'cache'),
      join(folders.cargo, 'registry', 'index'),
    ])
      await removeTree(path);
    return await keep(set);
  } finally {
    await removeTree(set);
  }
}

class SetBuild {
  readonly #confinement: Confinement;

  constructor(
    private readonly options: SetBuilderOptions,
    private readonly folders: SetFolders,
    sources: readonly string[],
  ) {
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
    );
  }

  /** Downloads the crates. */
  async fetch(spec: DependencySpec): Promise<FailedTool | undefined> {
    const { toolchain, env, limits, signal } = this.options;
    const { fetch, cargo } = this.folders;
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

  /** Builds what was downloaded. */
  async build(spec: DependencySpec): Promise<FailedTool | undefined> {
    const { toolchain } = this.options;
    const { set, fetch, project, target } = this.folders;
    await writeProject(project, manifest(this.#confinement.inside(toolchain.sdk), spec));
    await copyFile(join(fetch, 'Cargo.lock'), join(project, 'Cargo.lock'));
    await this.#confinement.handOver(target);
    // First, as nothing of strangers has run yet.
    const platform = `--filter-platform=${toolchain.host}`;
    const metadata = await this.#cargo(['metadata', '--format-version=1', platform]);
    if (metadata.outcome !== 'exited' || metadata.exitCode !== 0) return this.#failure(metadata);
    const build = await this.#cargo(['build', '--release', '--message-format=json']);
    if (build.outcome !== 'exited' || build.exitCode !== 0) return this.#failure(build);

    const built = this.#confinement.inside(target);
    const rustcArgs = linkArguments(built, build.stdout, metadata.stdout).map((arg) =>
      arg.replaceAll(built, TARGET),
    );
    await writeFile(join(set, PREPARED_FILE), JSON.stringify(rustcArgs));
    return undefined;
  }

  #cargo(args: readonly string[]): Promise<ToolResult> {
    const { toolchain, env, limits, signal } = this.options;
    const { project, cargo, target } = this.folders;
    const confinement = this.#confinement;
    const inside = (path: string) => confinement.inside(path);
    return runTool({
      confinement,
      file: inside(toolchain.cargo),
      args: [...args, '--offline', '--locked'],
      cwd: inside(project),
      env: {
        ...buildEnvironment(toolchain, env, inside(target), inside),
        CARGO_HOME: inside(cargo),
        CARGO_TARGET_DIR: inside(target),
        CARGO_TERM_COLOR: 'never',
        RUSTC: inside(toolchain.rustc),
      },
      limits,
      writable: [target],
      signal,
    });
  }

  async #failure(result: ToolResult): Promise<FailedTool> {
    const ended = whyEnded(result.outcome, this.options.limits);
    return {
      ok: false,
      timedOut: result.outcome === 'timed-out',
      mayLackRoom: result.mayLackRoom,
      diagnostics: ended ? [ended] : withoutMachinePaths(cargoDiagnostics(result), await this.#names()),
    };
  }

  async #names(): Promise<FolderNames> {
    const { fetch, project, target } = this.folders;
    const { toolchain } = this.options;
    const names: FolderNames = [
      [fetch, '.'],
      [project, '.'],
      [target, 'dependencies'],
      [toolchain.sdk, 'rust-edge-gateway-sdk'],
    ];
    const resolved = names.map(async ([path, name]) => [await realpath(path), name] as const);
    return [...names, ...(await Promise.all(resolved)), ...(this.#confinement.reports ? INSIDE_NAMES : [])];
  }
}

async function writeProject(folder: string, text: string): Promise<void> {
  await mkdir(join(folder, 'src'));
  await writeFile(join(folder, 'Cargo.toml'), text);
  await writeFile(join(folder, 'src', 'main.rs'), 'fn main() {}\n');
}
