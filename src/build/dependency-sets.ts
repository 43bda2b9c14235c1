/**
 * Prepares what handlers are linked against: the SDK, serde, and the crates a handler asks for.
 *
 * Cargo resolves and builds each distinct set of dependencies once, in a folder keyed by the set. Handlers are then
 * compiled by rustc directly against the resulting libraries: no cargo, no lock, as many at a time as there are cores.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  copyFile,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { Dependencies } from '../dependencies.js';
import { Limiter } from '../limiter.js';
import { UNCONFINED } from '../sandbox/confinement.js';
import { type Diagnostic, parseRustcOutput, plain, timeLimit, withoutMachinePaths } from './diagnostics.js';
import { runTool, type ToolLimits, type ToolResult } from './run-tool.js';
import type { Toolchain } from './toolchain.js';

/** Which libraries a handler needs. */
export interface DependencySpec {
  readonly dependencies: Dependencies;
  /** Whether it uses the SDK's async macros. */
  readonly async: boolean;
}

/** The outcome of preparing a set: arguments for rustc, or why cargo could not build it. */
export type PreparedSet =
  | { readonly ok: true; readonly rustcArgs: readonly string[] }
  | { readonly ok: false; readonly timedOut: boolean; readonly diagnostics: readonly Diagnostic[] };

/** Arguments a set was prepared with last time; its presence means the set is complete. */
const PREPARED_FILE = 'rustc-args.json';
/** Stands for the set's folder in that file: DATA_DIR may be moved. */
const SET_FOLDER = '{set}';

function placed(rustcArgs: readonly string[], folder: string): string[] {
  return rustcArgs.map((arg) => arg.replaceAll(SET_FOLDER, folder));
}

/** The arguments of a set that was prepared before; undefined when it was not, or its libraries have been cleared away. */
async function readPrepared(folder: string): Promise<string[] | undefined> {
  const text = await readFile(join(folder, PREPARED_FILE), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const rustcArgs = placed(JSON.parse(text) as string[], folder);
  const libraries = rustcArgs
    .filter((_, at) => rustcArgs[at - 1] === '--extern')
    .map((extern) => extern.slice(extern.indexOf('=') + 1));
  return libraries.every((library) => existsSync(library)) ? rustcArgs : undefined;
}

/** Says to `forgetUnused`, of whichever worker, that a set is in use. @returns false when it is not there any more */
async function markUsed(folder: string): Promise<boolean> {
  const now = new Date();
  return utimes(join(folder, PREPARED_FILE), now, now).then(
    () => true,
    () => false,
  );
}

/** Prepares and remembers sets below one folder. Safe to use from several processes: cargo locks its target folder. */
export class DependencySets {
  readonly #inProgress = new Map<string, Promise<PreparedSet>>();
  readonly #cargoTurn = new Limiter(1);

  constructor(
    private readonly root: string,
    private readonly toolchain: Toolchain,
    private readonly env: Readonly<Record<string, string>>,
    private readonly limits: ToolLimits,
    /** Ends whatever cargo is doing, and all it would be asked to do. */
    private readonly signal?: AbortSignal,
  ) {}

  /**
   * Builds a set if that was not done before. Concurrent calls for one set share the work.
   * @param timeoutMs time limit of one run of cargo, if not that of the constructor
   */
  async prepare(spec: DependencySpec, timeoutMs = this.limits.timeoutMs): Promise<PreparedSet> {
    const key = setKey(this.toolchain, spec);
    let prepared = this.#inProgress.get(key);
    if (!prepared) {
      prepared = this.#prepare(join(this.root, key), spec, timeoutMs);
      this.#inProgress.set(key, prepared);
      // A failure is not remembered: the registry may have been away.
      void prepared.then(
        ({ ok }) => ok || this.#inProgress.delete(key),
        () => this.#inProgress.delete(key),
      );
    }
    const result = await prepared;
    if (!result.ok || (await markUsed(join(this.root, key)))) return result;
    // Cleared away since it was prepared.
    if (this.#inProgress.get(key) === prepared) this.#inProgress.delete(key);
    return this.prepare(spec, timeoutMs);
  }

  /** Resolves when nothing is being prepared any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#inProgress.values());
  }

  /** Deletes the sets that nobody has asked for in this time: those of older compilers and SDKs, above all. */
  async forgetUnused(unusedMs: number): Promise<void> {
    await mkdir(this.root, { recursive: true });
    for (const name of await readdir(this.root)) {
      const folder = join(this.root, name);
      const { mtimeMs } = await stat(join(folder, PREPARED_FILE)).catch(() => stat(folder));
      if (Date.now() - mtimeMs > unusedMs) await rm(folder, { recursive: true, force: true });
    }
  }

  async #prepare(folder: string, spec: DependencySpec, timeoutMs: number): Promise<PreparedSet> {
    const known = await readPrepared(folder);
    if (known) return { ok: true, rustcArgs: known };

    await mkdir(join(folder, 'src'), { recursive: true });
    await writeFile(join(folder, 'Cargo.toml'), manifest(this.toolchain.sdk, spec));
    await writeFile(join(folder, 'src', 'main.rs'), 'fn main() {}\n');
    // Start from the SDK's own lock, so that shared crates get the versions it was tested with.
    await copyFile(join(this.toolchain.sdk, 'Cargo.lock'), join(folder, 'Cargo.lock'));

    // One at a time: cargo uses all cores by itself.
    return this.#cargoTurn.run(() => this.#build(folder, timeoutMs));
  }

  async #build(folder: string, timeoutMs: number): Promise<PreparedSet> {
    const build = await this.#cargo(folder, ['build', '--release', '--message-format=json'], timeoutMs);
    if (build.outcome !== 'exited' || build.exitCode !== 0) {
      const timedOut = build.outcome === 'timed-out';
      return {
        ok: false,
        timedOut,
        diagnostics: timedOut
          ? [timeLimit(timeoutMs)]
          : withoutMachinePaths(cargoDiagnostics(build), [
              [folder, '.'],
              [await realpath(folder), '.'],
              [this.toolchain.sdk, 'rust-edge-gateway-sdk'],
            ]),
      };
    }
    // Without the filter, cargo would download the crates of all other platforms first.
    const platform = `--filter-platform=${this.toolchain.host}`;
    const metadata = await this.#cargo(folder, ['metadata', '--format-version=1', platform], timeoutMs);
    if (metadata.exitCode !== 0)
      throw new Error(`cargo metadata ${metadata.outcome} with ${metadata.exitCode}: ${metadata.stderr}`);

    // Cargo names its files with symbolic links resolved.
    const resolved = await realpath(folder);
    const rustcArgs = linkArguments(folder, build.stdout, metadata.stdout).map((arg) =>
      arg.replaceAll(resolved, SET_FOLDER).replaceAll(folder, SET_FOLDER),
    );
    const written = join(folder, `${PREPARED_FILE}.${process.pid}`);
    await writeFile(written, JSON.stringify(rustcArgs));
    await rename(written, join(folder, PREPARED_FILE));
    return { ok: true, rustcArgs: placed(rustcArgs, folder) };
  }

  #cargo(folder: string, args: readonly string[], timeoutMs: number): Promise<ToolResult> {
    return runTool({
      confinement: UNCONFINED,
      file: this.toolchain.cargo,
      args,
      cwd: folder,
      env: {
        ...this.env,
        CARGO_TARGET_DIR: join(folder, 'target'),
        CARGO_TERM_COLOR: 'never',
        RUSTC: this.toolchain.rustc,
      },
      limits: { ...this.limits, timeoutMs },
      signal: this.signal,
    });
  }
}

/** The manifest says all that distinguishes a set, besides the compiler and the SDK. */
function setKey(toolchain: Toolchain, spec: DependencySpec): string {
  const digest = createHash('sha256')
    .update(`${toolchain.fingerprint}\n${manifest(toolchain.sdk, spec)}`)
    .digest('hex')
    .slice(0, 24);
  if (Object.keys(spec.dependencies).length > 0) return digest;
  return `${spec.async ? 'async' : 'sync'}-${digest}`;
}

const SDK_CRATE = 'rust-edge-gateway-sdk';

function manifest(sdk: string, { dependencies, async }: DependencySpec): string {
  const { serde, serde_json, ...rest } = dependencies;
  const others = Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
  const lines = [
    `${SDK_CRATE} = { path = ${JSON.stringify(sdk)}, features = ${JSON.stringify(async ? ['async'] : [])} }`,
    // A handler may ask for versions and features of these two, but never loses what the SDK's prelude needs.
    dependencyLine('serde', preludeCrate(serde, ['derive'])),
    dependencyLine('serde_json', preludeCrate(serde_json, [])),
    // Async handlers name tokio as a matter of course; it is in the SDK anyway.
    ...(async && !('tokio' in others) ? [dependencyLine('tokio', { version: '1' })] : []),
    ...Object.entries(others).map(([name, dependency]) => dependencyLine(name, asTable(dependency))),
  ];
  return [
    '[package]\nname = "handler"\nversion = "0.0.0"\nedition = "2021"\n',
    '[workspace]\n',
    '[dependencies]',
    ...lines,
    '\n[profile.release]\nopt-level = 3\ndebug = 0\npanic = "unwind"\n',
    // Handlers share the generic code compiled into this crate, which rustc allows at this level only; what runs per
    // request is in the SDK's core, at level 3.
    `[profile.release.package.${SDK_CRATE}]\nopt-level = "s"\n`,
  ].join('\n');
}

type Dependency = Dependencies[string];
type DependencyTable = Exclude<Dependency, string>;

function asTable(dependency: Dependency | undefined): Partial<DependencyTable> {
  return typeof dependency === 'string' ? { version: dependency } : (dependency ?? {});
}

function preludeCrate(asked: Dependency | undefined, needed: readonly string[]): Partial<DependencyTable> {
  const { version = '1', features = [] } = asTable(asked);
  const all = [...new Set([...needed, ...features])];
  return { version, ...(all.length > 0 && { features: all }) };
}

/** Names, versions and features are validated to plain ASCII, for which a JSON value is a TOML value. */
function dependencyLine(name: string, table: Partial<DependencyTable>): string {
  const entries = Object.entries(table).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return `${name} = { ${entries.join(', ')} }`;
}

interface CargoMessage {
  readonly reason: string;
  readonly package_id: string;
  readonly target?: { readonly kind: readonly string[]; readonly name: string };
  readonly filenames?: readonly string[];
  readonly linked_paths?: readonly string[];
  readonly message?: unknown;
}

interface CargoMetadata {
  readonly resolve: {
    readonly root: string;
    readonly nodes: readonly {
      readonly id: string;
      readonly deps: readonly { readonly name: string; readonly pkg: string }[];
    }[];
  };
}

/** The arguments by which rustc finds the built libraries: one `--extern` for each direct dependency. */
function linkArguments(folder: string, buildOutput: string, metadataOutput: string): string[] {
  const messages = cargoMessages(buildOutput);
  const libraries = new Map<string, string>();
  const nativePaths: string[] = [];
  for (const { reason, package_id, target, filenames, linked_paths } of messages) {
    if (reason === 'build-script-executed') nativePaths.push(...(linked_paths ?? []));
    if (
      reason !== 'compiler-artifact' ||
      !target ||
      target.kind.includes('bin') ||
      target.kind.includes('custom-build')
    )
      continue;
    const library = filenames?.find((file) => file.endsWith('.rlib') || file.endsWith('.so'));
    if (library) libraries.set(package_id, library);
  }
  const { resolve } = JSON.parse(metadataOutput) as CargoMetadata;
  const direct = resolve.nodes.find(({ id }) => id === resolve.root)?.deps ?? [];
  return [
    '-L',
    `dependency=${join(folder, 'target', 'release', 'deps')}`,
    // An optional dependency is resolved but not built: it has no library, and the handler cannot name it.
    ...direct.flatMap(({ name, pkg }) =>
      libraries.has(pkg) ? ['--extern', `${name}=${libraries.get(pkg)}`] : [],
    ),
    ...nativePaths.flatMap((path) => ['-L', path]),
  ];
}

/** Compiler errors of a dependency if there are any, else what cargo itself said (unknown crate, no network ...). */
function cargoDiagnostics(build: ToolResult): Diagnostic[] {
  const compiler = cargoMessages(build.stdout)
    .filter(({ reason }) => reason === 'compiler-message')
    .flatMap(({ message }) => parseRustcOutput(JSON.stringify(message), ''))
    .filter(({ level }) => level === 'error');
  return compiler.length > 0 ? compiler : [plain(build.stderr.trim() || 'cargo ended without saying why')];
}

function cargoMessages(stdout: string): CargoMessage[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as CargoMessage);
}
