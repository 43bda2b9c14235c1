/**
 * Prepares the libraries that handlers are linked against: the SDK, serde, and the crates a handler depends on.
 *
 * Each distinct set of dependencies is built once, in a folder keyed by the set. Handlers are then compiled by rustc
 * directly against the resulting libraries: no cargo, no lock, as many at a time as there are cores.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, realpath, rename, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ASYNC_SDK, type Preparation, SDK } from '../model/preparation.js';
import { removeTree } from '../sandbox/remove-tree.js';
import { isErrno } from '../util/errno.js';
import type { Logger } from '../util/log.js';
import { type Turn, Turns } from '../util/turns.js';
import { giveToRoot, makePassable } from '../util/untrusted-users.js';
import { INSIDE } from './build-view.js';
import { plain } from './diagnostics.js';
import { type DependencySpec, setKey } from './manifest.js';
import { SdkPreparation } from './sdk-preparation.js';
import {
  buildSet,
  type FailedSet,
  PREPARED_FILE,
  type SetBuilderOptions,
  type SetProgress,
  TARGET,
} from './set-build.js';
import { claimUnfinished, removeUnfinished } from './unfinished-sets.js';

/** A prepared set on this machine. */
export interface Libraries {
  readonly folder: string;
  /** Arguments for rustc, with `TARGET` as a placeholder for the folder of the libraries. */
  readonly rustcArgs: readonly string[];
}

/** The outcome of preparing a set: libraries, or why cargo could not build them. */
export type PreparedSet = { readonly ok: true; readonly libraries: Libraries } | FailedSet;

/** Pause between checks of whether another process has built a set. */
const POLL_MS = 500;

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

/** A set that was prepared before; undefined if it was not, or if its libraries were deleted. */
async function readPrepared(folder: string): Promise<Libraries | undefined> {
  const text = await readFile(join(folder, PREPARED_FILE), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  // The file may be truncated after a power failure.
  if (!text.endsWith(']')) return undefined;
  const libraries = { folder, rustcArgs: JSON.parse(text) as string[] };
  const files = linkingTo(libraries, targetOf(libraries))
    .filter((_, at, args) => args[at - 1] === '--extern')
    .map((extern) => extern.slice(extern.indexOf('=') + 1));
  if (!files.every((file) => existsSync(file))) return undefined;
  // Earlier versions made it inaccessible to other users, and left it to its own.
  await makePassable(folder);
  await giveToRoot(targetOf(libraries));
  return libraries;
}

/**
 * Marks a set as used, for `forgetUnused` of any worker.
 * @returns false when it no longer exists
 */
async function markUsed(folder: string): Promise<boolean> {
  const now = new Date();
  return utimes(join(folder, PREPARED_FILE), now, now).then(
    () => true,
    () => false,
  );
}

/**
 * Prepares and remembers sets below one folder. Safe to use from several processes: a set gets its final name only when
 * it is complete.
 */
export class DependencySets {
  readonly #options: SetBuilderOptions;
  readonly #log: Logger;
  readonly #inProgress = new Map<string, Promise<PreparedSet>>();
  readonly #sdkPreparations = new Set<SdkPreparation>();
  // Cargo uses all cores, but one slow set must not delay all others.
  readonly #turns = new Turns({ places: 2, beyond: 4, beyondOfParts: 2 });

  constructor(options: SetBuilderOptions, log: Logger) {
    this.#options = options;
    this.#log = log;
  }

  /**
   * Builds a set unless it was built before. Concurrent calls for one set share the work. The SDK alone has no time
   * limit, and is retried until it succeeds.
   * @param turn that it takes, of those that have none prepared before
   */
  async prepare(spec: DependencySpec, turn: string | Turn = NOBODY): Promise<PreparedSet> {
    const key = this.#keyOf(spec);
    const shared = this.#inProgress.get(key);
    const result = await (shared ?? this.#begin(key, spec, turn));
    if (!result.ok || (await markUsed(join(this.#options.root, key)))) return result;
    // Deleted since it was prepared.
    if (shared !== undefined && this.#inProgress.get(key) === shared) this.#inProgress.delete(key);
    return this.prepare(spec, turn);
  }

  #begin(key: string, spec: DependencySpec, turn: string | Turn): Promise<PreparedSet> {
    return isSdk(spec) ? this.#share(key, () => this.#prepareSdk(key, spec)) : this.#inTurn(key, spec, turn);
  }

  /**
   * Builds a set in the turn of an owner. Where several owners want the same one, the first whose turn comes builds it:
   * none waits in the line of another.
   */
  async #inTurn(key: string, spec: DependencySpec, turn: string | Turn): Promise<PreparedSet> {
    const known = await readPrepared(join(this.#options.root, key));
    if (known) return { ok: true, libraries: known };
    const prepare = () => this.#share(key, () => this.#prepare(key, spec, this.#options));
    return this.#turns.run(turn, prepare);
  }

  #share(key: string, begin: () => Promise<PreparedSet>): Promise<PreparedSet> {
    const shared = this.#inProgress.get(key);
    if (shared !== undefined) return shared;
    const preparation = begin();
    this.#inProgress.set(key, preparation);
    // A failure is not remembered: the registry may have been unreachable.
    void preparation.then(
      ({ ok }) => ok || this.#inProgress.delete(key),
      () => this.#inProgress.delete(key),
    );
    return preparation;
  }

  /** The parts of the SDK that are being built. */
  preparing(): Preparation[] {
    return [...this.#sdkPreparations].map(({ state }) => state);
  }

  /**
   * Removes the unfinished sets of workers that were killed, except for the SDK's, which are continued. To be called
   * before the first set is prepared.
   */
  removeUnfinished(): Promise<void> {
    const kept = [false, true].map((async) => this.#keyOf({ dependencies: {}, async }));
    return removeUnfinished(this.#options.root, kept, this.#log);
  }

  /** Resolves when nothing is being prepared any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#inProgress.values());
  }

  /** Deletes sets that were not used for this long: mostly those of older compilers and SDKs. */
  async forgetUnused(unusedMs: number): Promise<void> {
    const { root } = this.#options;
    const problems: unknown[] = [];
    await mkdir(root, { recursive: true });
    for (const name of await readdir(root)) {
      const folder = join(root, name);
      const { mtimeMs } = await stat(join(folder, PREPARED_FILE)).catch(() => stat(folder));
      // A failed removal does not stop the others.
      if (Date.now() - mtimeMs > unusedMs) await removeTree(folder).catch((error) => problems.push(error));
    }
    if (problems.length > 0) throw new AggregateError(problems, 'Some sets cannot be removed');
  }

  #keyOf(spec: DependencySpec): string {
    const { toolchain, sandbox } = this.#options;
    const sdk = sandbox.level === 'namespaces' ? INSIDE.sdk : toolchain.sdk;
    return setKey(toolchain.fingerprint, sdk, spec);
  }

  async #prepareSdk(key: string, spec: DependencySpec): Promise<PreparedSet> {
    const { root, limits, signal } = this.#options;
    const { cpuSeconds, ...others } = limits;
    const unlimited = { ...this.#options, limits: { ...others, timeoutMs: Number.POSITIVE_INFINITY } };
    const preparation = new SdkPreparation(spec.async ? ASYNC_SDK : SDK, this.#log);
    this.#sdkPreparations.add(preparation);
    try {
      // An error occurs again in the attempt, which reports it.
      const known = await readPrepared(join(root, key)).catch(() => undefined);
      if (known) return { ok: true, libraries: known };
      const attempt = (onProgress: (progress: SetProgress) => void) =>
        this.#turns.run(NOBODY, () => this.#prepare(key, spec, unlimited, onProgress));
      return (await preparation.run(attempt, signal)) ?? CANCELLED;
    } finally {
      this.#sdkPreparations.delete(preparation);
    }
  }

  async #prepare(
    key: string,
    spec: DependencySpec,
    options: SetBuilderOptions,
    onProgress?: (progress: SetProgress) => void,
  ): Promise<PreparedSet> {
    const { root, signal } = options;
    const folder = join(root, key);
    await mkdir(root, { recursive: true });
    for (;;) {
      const known = await readPrepared(folder);
      if (known) return { ok: true, libraries: known };
      // Symbolic links are resolved, so that all tools use the same paths.
      const unfinished = await claimUnfinished(await realpath(root), key);
      if (unfinished !== undefined) return this.#build(unfinished, folder, spec, options, onProgress);
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
      if (signal?.aborted) return CANCELLED;
    }
  }

  /** Builds a set in `unfinished`, which is kept only when the next try can continue it. */
  async #build(
    unfinished: string,
    folder: string,
    spec: DependencySpec,
    options: SetBuilderOptions,
    onProgress?: (progress: SetProgress) => void,
  ): Promise<PreparedSet> {
    let isContinued = isSdk(spec);
    try {
      const failed = await buildSet(options, spec, unfinished, onProgress);
      if (!failed) {
        isContinued = false;
        return await this.#keep(unfinished, folder);
      }
      // Output of an earlier try may have caused the failure.
      isContinued &&= failed.step === 'download' || failed.diskMayBeFull || options.signal?.aborted === true;
      return failed;
    } finally {
      if (!isContinued) await removeTree(unfinished);
    }
  }

  /** Renames a complete set to its final name. */
  async #keep(built: string, folder: string): Promise<PreparedSet> {
    try {
      await rename(built, folder);
    } catch (error) {
      if (!isErrno(error, 'ENOTEMPTY', 'EEXIST')) throw error;
      // Another process was faster.
      const theirs = await readPrepared(folder);
      if (theirs) return { ok: true, libraries: theirs };
      // The existing folder is useless: its libraries were deleted.
      await removeTree(folder);
      await rename(built, folder);
    }
    const libraries = await readPrepared(folder);
    if (!libraries) throw new Error(`the libraries of ${folder} are not where cargo said that they are`);
    return { ok: true, libraries };
  }
}

/** The owner of the SDK, which all need. */
const NOBODY = '';

const CANCELLED: FailedSet = {
  ok: false,
  step: 'download',
  outcome: 'aborted',
  diskMayBeFull: false,
  diagnostics: [plain('The build was cancelled.')],
};

/** Whether a set is the SDK with nothing else, which all handlers without dependencies share. */
function isSdk({ dependencies }: DependencySpec): boolean {
  return Object.keys(dependencies).length === 0;
}
