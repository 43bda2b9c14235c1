/**
 * Prepares the libraries that handlers are linked against: the SDK, serde, and the crates a handler depends on.
 *
 * Each distinct set of dependencies is built once, in a folder keyed by the set. Handlers are then compiled by rustc
 * directly against the resulting libraries: no cargo, no lock, as many at a time as there are cores.
 */
import { mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CRATES } from '../model/crates-line.js';
import { ASYNC_SDK, type BuildingCrates, type Preparation, SDK } from '../model/preparation.js';
import { removeTree } from '../sandbox/remove-tree.js';
import type { Logger } from '../util/log.js';
import { type Turn, Turns } from '../util/turns.js';
import { INSIDE } from './build-view.js';
import { BuildingSets, type WaitingBuild } from './building-sets.js';
import { plain } from './diagnostics.js';
import { type DependencySpec, isSdk, setKey } from './manifest.js';
import {
  forgetOthers,
  forgetUnused,
  keepPrepared,
  type Libraries,
  markUsed,
  readPrepared,
} from './prepared-sets.js';
import { SdkPreparation } from './sdk-preparation.js';
import { buildSet, type SetBuilderOptions } from './set-build.js';
import type { FailedSet } from './set-failure.js';
import { type ResolvedLock, SetLocks } from './set-locks.js';
import type { SetProgress } from './set-progress.js';
import { claimUnfinished } from './unfinished-sets.js';

/** The outcome of preparing a set: libraries, or why cargo could not build them. */
export type PreparedSet = { readonly ok: true; readonly libraries: Libraries } | FailedSet;

/** Complete sets that all workers of an installation share. */
export interface SharedSets {
  /** Copies a set that another worker has built to a folder. @returns false when there is none */
  fetch(key: string, folder: string): Promise<boolean>;
  /** Offers a set to the others, unless it is there. */
  offer(key: string, folder: string): Promise<void>;
}

/** Pause between checks of whether another process has built a set. */
const POLL_MS = 500;

/**
 * Prepares and remembers sets below one folder. Safe to use from several processes: a set gets its final name only when
 * it is complete.
 */
export class DependencySets {
  readonly #options: SetBuilderOptions;
  readonly #log: Logger;
  readonly #shared: SharedSets | undefined;
  readonly #locks: SetLocks;
  /** By what was asked for. */
  readonly #asked = new Map<string, Promise<PreparedSet>>();
  /** By their keys. */
  readonly #inProgress = new Map<string, Promise<PreparedSet>>();
  readonly #offers = new Set<Promise<void>>();
  readonly #sdkPreparations = new Set<SdkPreparation>();
  readonly #building = new BuildingSets();
  // Cargo uses all cores, but one slow set must not delay all others.
  readonly #turns = new Turns({ places: 2, beyond: 4, beyondOfParts: 2 });

  constructor(options: SetBuilderOptions, log: Logger, shared?: SharedSets) {
    this.#options = options;
    this.#log = log;
    this.#shared = shared;
    this.#locks = new SetLocks(options, join(dirname(options.root), 'locks'));
  }

  /**
   * Builds a set unless it was built before. Concurrent calls for one set share the work. The SDK alone has no time
   * limit, and is retried until it succeeds.
   * @param turn that it takes, of those that have none prepared before
   * @param build that waits for it
   */
  async prepare(
    spec: DependencySpec,
    turn: string | Turn = NOBODY,
    build?: WaitingBuild,
  ): Promise<PreparedSet> {
    // Who looks for newer crates does not share what others look for.
    const asked = `${this.#locks.keyOf(spec)}${spec.isFresh ? '-fresh' : ''}`;
    const shared = this.#asked.get(asked);
    const preparation = shared ?? this.#begin(asked, spec, turn);
    const result = await this.#building.waitFor(asked, build, preparation);
    if (!result.ok || (await markUsed(result.libraries))) return result;
    // Deleted since it was prepared.
    if (shared !== undefined && this.#asked.get(asked) === shared) this.#asked.delete(asked);
    return this.prepare({ ...spec, isFresh: false }, turn, build);
  }

  #begin(asked: string, spec: DependencySpec, turn: string | Turn): Promise<PreparedSet> {
    return isSdk(spec)
      ? remember(this.#asked, asked, () => this.#prepareSdk(spec))
      : this.#inTurn(asked, spec, turn);
  }

  /**
   * Builds a set in the turn of an owner. Where several owners want the same one, the first whose turn comes builds it:
   * none waits in the line of another.
   */
  async #inTurn(asked: string, spec: DependencySpec, turn: string | Turn): Promise<PreparedSet> {
    const known = await this.#known(spec);
    if (known) return known;
    return this.#building.build(asked, (onProgress) =>
      this.#turns.run(turn, async () => {
        // Another, whose turn came first, may have built it.
        const preparation = remember(
          this.#asked,
          asked,
          async () => (await this.#known(spec)) ?? this.#prepareCrates(spec, onProgress),
        );
        try {
          return await preparation;
        } finally {
          // The disk remembers, for as long as it is to be.
          if (this.#asked.get(asked) === preparation) this.#asked.delete(asked);
        }
      }),
    );
  }

  async #prepareCrates(
    spec: DependencySpec,
    onProgress: (progress: SetProgress) => void,
  ): Promise<PreparedSet> {
    const resolved = await this.#locks.resolve(spec);
    // A registry may be away for long: what was built before is better than nothing.
    if (!resolved.ok) return (resolved.isRefused ? undefined : await this.#known(spec, Infinity)) ?? resolved;
    const key = this.#keyOf(spec, resolved.lock);
    const preparation = remember(this.#inProgress, key, () =>
      this.#prepare(key, { spec, resolve: async () => resolved, onProgress }, this.#options),
    );
    return preparation.finally(() => this.#inProgress.delete(key));
  }

  /** What was resolved, not longer ago than this, and built. */
  async #known(spec: DependencySpec, newAfterMs?: number): Promise<PreparedSet | undefined> {
    const lock = await this.#locks.known(spec, newAfterMs);
    const libraries = lock === undefined ? undefined : await readPrepared(this.#folderOf(spec, lock));
    return libraries && { ok: true, libraries };
  }

  /** The parts of the SDK that are being built, and sets of crates, which count together. */
  preparing(): Preparation[] {
    const sdk = [...this.#sdkPreparations].map(({ state }) => state);
    const sets = this.building();
    if (sets.length === 0) return sdk;
    const isKnown = sets.every(({ of }) => of !== null);
    const sum = (count: (set: BuildingCrates) => number) => sets.reduce((all, set) => all + count(set), 0);
    return [
      ...sdk,
      {
        what: CRATES,
        crates: sum(({ crates }) => crates),
        of: isKnown ? sum(({ of }) => of ?? 0) : null,
        seconds: Math.max(...sets.map(({ seconds }) => seconds)),
        problem: null,
      },
    ];
  }

  /** The sets of crates that are being built, each with the builds that wait for it. */
  building(): BuildingCrates[] {
    return this.#building.states();
  }

  /** Resolves when nothing is being prepared any more. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#asked.values(), ...this.#offers]);
  }

  /** Deletes sets that were not used for this long: mostly those of older compilers and SDKs. */
  async forgetUnused(unusedMs: number): Promise<void> {
    await forgetUnused(this.#options.root, unusedMs);
    await this.#locks.forget(unusedMs);
  }

  #keyOf(spec: DependencySpec, lock?: string): string {
    const { toolchain, sandbox } = this.#options;
    const sdk = sandbox.level === 'namespaces' ? INSIDE.sdk : toolchain.sdk;
    return setKey(toolchain.fingerprint, sdk, spec, lock);
  }

  #folderOf(spec: DependencySpec, lock?: string): string {
    return join(this.#options.root, this.#keyOf(spec, lock));
  }

  async #prepareSdk(spec: DependencySpec): Promise<PreparedSet> {
    const { limits, signal } = this.#options;
    const unlimited = { ...this.#options, limits: { ...limits, timeoutMs: Number.POSITIVE_INFINITY } };
    const preparation = new SdkPreparation(spec.async ? ASYNC_SDK : SDK, this.#log);
    this.#sdkPreparations.add(preparation);
    const key = this.#keyOf(spec);
    try {
      // An error occurs again in the attempt, which reports it.
      const known = await readPrepared(this.#folderOf(spec)).catch(() => undefined);
      if (known) return { ok: true, libraries: known };
      const locks = new SetLocks(unlimited, join(dirname(this.#options.root), 'locks'));
      const attempt = (onProgress: (progress: SetProgress) => void) =>
        this.#turns.run(NOBODY, () =>
          this.#prepare(key, { spec, resolve: () => locks.resolve(spec), onProgress }, unlimited),
        );
      return (await preparation.run(attempt, signal)) ?? CANCELLED;
    } finally {
      this.#sdkPreparations.delete(preparation);
    }
  }

  async #prepare(key: string, set: SetToBuild, options: SetBuilderOptions): Promise<PreparedSet> {
    const { root, signal } = options;
    const folder = join(root, key);
    await mkdir(root, { recursive: true });
    for (;;) {
      const known = await readPrepared(folder);
      if (known) return { ok: true, libraries: known };
      // Symbolic links are resolved, so that all tools use the same paths.
      const unfinished = await claimUnfinished(await realpath(root), key);
      if (unfinished !== undefined) return this.#build(key, unfinished, set, options);
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
      if (signal?.aborted) return CANCELLED;
    }
  }

  /** Builds a set in `unfinished`, which is kept where the next try can go on from there. */
  async #build(
    key: string,
    unfinished: string,
    { resolve, ...set }: SetToBuild,
    options: SetBuilderOptions,
  ): Promise<PreparedSet> {
    const isFetched = (await this.#shared?.fetch(key, unfinished)) ?? false;
    if (isFetched) return this.#keep(key, unfinished);
    const resolved = await resolve();
    const failed = resolved.ok
      ? await buildSet(options, { ...set, lock: resolved.lock, set: unfinished })
      : resolved;
    if (!failed) {
      const kept = await this.#keep(key, unfinished);
      // With crates of its own, the next save makes another one.
      if (set.spec.local?.digest) await this.#forgetOthers(key);
      else this.#offer(key);
      return kept;
    }
    if (!canGoOn(failed)) await removeTree(unfinished);
    return failed;
  }

  async #forgetOthers(key: string): Promise<void> {
    try {
      await forgetOthers(this.#options.root, key);
    } catch (error) {
      this.#log.warn({ err: error }, 'sets with older local crates cannot be removed');
    }
  }

  async #keep(key: string, unfinished: string): Promise<PreparedSet> {
    try {
      return { ok: true, libraries: await keepPrepared(unfinished, join(this.#options.root, key)) };
    } finally {
      await removeTree(unfinished);
    }
  }

  #offer(key: string): void {
    if (!this.#shared) return;
    const offer = this.#shared
      .offer(key, join(this.#options.root, key))
      .catch((error: unknown) =>
        this.#log.warn({ err: error }, 'a set of crates could not be stored for other workers'),
      )
      .finally(() => this.#offers.delete(offer));
    this.#offers.add(offer);
  }
}

/** A set to build, unless another has it. */
interface SetToBuild {
  readonly spec: DependencySpec;
  /** Resolves and downloads its crates. */
  readonly resolve: () => Promise<ResolvedLock>;
  readonly onProgress: (progress: SetProgress) => void;
}

/** Begins something unless it has begun. Failures are not remembered: the registry may have been unreachable. */
function remember(
  begun: Map<string, Promise<PreparedSet>>,
  key: string,
  begin: () => Promise<PreparedSet>,
): Promise<PreparedSet> {
  const known = begun.get(key);
  if (known !== undefined) return known;
  const preparation = begin();
  begun.set(key, preparation);
  const forget = () => {
    if (begun.get(key) === preparation) begun.delete(key);
  };
  void preparation.then(({ ok }) => ok || forget(), forget);
  return preparation;
}

/** Ends that say nothing against the crates which are built. */
const INTERRUPTED = new Set<FailedSet['outcome']>(['aborted', 'no-progress', 'idle', 'over-memory']);

/** Whether the next try can go on from there. */
function canGoOn({ outcome, step, diskMayBeFull, isRefused }: FailedSet): boolean {
  return !isRefused && (step === 'download' || diskMayBeFull || INTERRUPTED.has(outcome));
}

/** The owner of the SDK, which all need. */
const NOBODY = '';

const CANCELLED: FailedSet = {
  ok: false,
  step: 'download',
  outcome: 'aborted',
  diskMayBeFull: false,
  built: 0,
  diagnostics: [plain('The build was cancelled.')],
};
