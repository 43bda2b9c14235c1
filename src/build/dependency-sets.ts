/**
 * Prepares what handlers are linked against: the SDK, serde, and the crates a handler asks for.
 *
 * Each distinct set of dependencies is built once, in a folder keyed by the set. Handlers are then compiled by rustc
 * directly against the resulting libraries: no cargo, no lock, as many at a time as there are cores.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { Limiter } from '../limiter.js';
import type { Logger } from '../log.js';
import { removeTree } from '../sandbox/remove-tree.js';
import { INSIDE } from './build-view.js';
import type { FailedTool } from './diagnostics.js';
import { type DependencySpec, setKey } from './manifest.js';
import { buildSet, PREPARED_FILE, removeUnfinished, type SetBuilderOptions, TARGET } from './set-build.js';

/** A set as it is on this machine. */
export interface Libraries {
  readonly folder: string;
  /** Arguments for rustc; `TARGET` stands for the folder that the libraries are in. */
  readonly rustcArgs: readonly string[];
}

/** The outcome of preparing a set: libraries, or why cargo could not build them. */
export type PreparedSet = { readonly ok: true; readonly libraries: Libraries } | FailedTool;

/** Where the libraries of a set are. */
export function targetOf({ folder }: Libraries): string {
  return join(folder, 'target');
}

/** Where the sources of its crates are: the compiler shows lines of them. */
export function cratesOf({ folder }: Libraries): string {
  return join(folder, 'cargo', 'registry', 'src');
}

/** Arguments for a rustc which finds the libraries under this path. */
export function linkingTo({ rustcArgs }: Libraries, target: string): string[] {
  return rustcArgs.map((arg) => arg.replaceAll(TARGET, target));
}

/** The set that was prepared before; undefined when it was not, or its libraries have been cleared away. */
async function readPrepared(folder: string): Promise<Libraries | undefined> {
  const text = await readFile(join(folder, PREPARED_FILE), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const libraries = { folder, rustcArgs: JSON.parse(text) as string[] };
  const files = linkingTo(libraries, targetOf(libraries))
    .filter((_, at, args) => args[at - 1] === '--extern')
    .map((extern) => extern.slice(extern.indexOf('=') + 1));
  return files.every((file) => existsSync(file)) ? libraries : undefined;
}

/** Says to `forgetUnused`, of whichever worker, that a set is in use. @returns false when it is not there any more */
async function markUsed(folder: string): Promise<boolean> {
  const now = new Date();
  return utimes(join(folder, PREPARED_FILE), now, now).then(
    () => true,
    () => false,
  );
}

/**
 * Prepares and remembers sets below one folder. Safe to use from several processes: a set appears there when it is
 * complete.
 */
export class DependencySets {
  readonly #inProgress = new Map<string, Promise<PreparedSet>>();
  // Cargo uses all cores by itself; but a set that takes for ever is not to keep all others waiting.
  readonly #cargoTurn = new Limiter(2);

  constructor(private readonly options: SetBuilderOptions) {}

  /**
   * Builds a set if that was not done before. Concurrent calls for one set share the work.
   * @param timeoutMs time limit of one run of cargo, if not that of the constructor
   */
  async prepare(spec: DependencySpec, timeoutMs = this.options.limits.timeoutMs): Promise<PreparedSet> {
    const { root, toolchain, sandbox } = this.options;
    const sdk = sandbox.level === 'limits' ? toolchain.sdk : INSIDE.sdk;
    const key = setKey(toolchain.fingerprint, sdk, spec);
    let prepared = this.#inProgress.get(key);
    if (!prepared) {
      prepared = this.#prepare(join(root, key), spec, timeoutMs);
      this.#inProgress.set(key, prepared);
      // A failure is not remembered: the registry may have been away.
      void prepared.then(
        ({ ok }) => ok || this.#inProgress.delete(key),
        () => this.#inProgress.delete(key),
      );
    }
    const result = await prepared;
    if (!result.ok || (await markUsed(join(root, key)))) return result;
    // Cleared away since it was prepared.
    if (this.#inProgress.get(key) === prepared) this.#inProgress.delete(key);
    return this.prepare(spec, timeoutMs);
  }

  /** Removes what workers have left that were killed while they built sets. To be called before the first is prepared. */
  removeUnfinished(log: Logger): Promise<void> {
    return removeUnfinished(this.options.root, log);
  }

  /** Resolves when nothing is being prepared any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#inProgress.values());
  }

  /** Deletes the sets that nobody has asked for in this time: those of older compilers and SDKs, above all. */
  async forgetUnused(unusedMs: number): Promise<void> {
    const { root } = this.options;
    const problems: unknown[] = [];
    await mkdir(root, { recursive: true });
    for (const name of await readdir(root)) {
      const folder = join(root, name);
      const { mtimeMs } = await stat(join(folder, PREPARED_FILE)).catch(() => stat(folder));
      // One that cannot be removed does not keep the others.
      if (Date.now() - mtimeMs > unusedMs) await removeTree(folder).catch((error) => problems.push(error));
    }
    if (problems.length > 0) throw new AggregateError(problems, 'Some sets cannot be removed');
  }

  async #prepare(folder: string, spec: DependencySpec, timeoutMs: number): Promise<PreparedSet> {
    const known = await readPrepared(folder);
    if (known) return { ok: true, libraries: known };
    return this.#cargoTurn.run(() =>
      buildSet(this.options, spec, timeoutMs, (built) => this.#keep(built, folder)),
    );
  }

  /** Gives a complete set its name. */
  async #keep(built: string, folder: string): Promise<PreparedSet> {
    try {
      await rename(built, folder);
    } catch (error) {
      if (!isTaken(error)) throw error;
      // Another process was quicker.
      const theirs = await readPrepared(folder);
      if (theirs) return { ok: true, libraries: theirs };
      // What is there is of no use: its libraries have been cleared away.
      await removeTree(folder);
      await rename(built, folder);
    }
    const libraries = await readPrepared(folder);
    if (!libraries) throw new Error(`the libraries of ${folder} are not where cargo said that they are`);
    return { ok: true, libraries };
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOTEMPTY' || error.code === 'EEXIST');
}
