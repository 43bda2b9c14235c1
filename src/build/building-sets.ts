/** The sets of crates that are being built now: how far each is, and which builds wait for it. */
import type { BuildingCrates } from '../model/preparation.js';
import type { SetProgress } from './set-progress.js';

/** A build that waits for its crates. */
export type WaitingBuild = BuildingCrates['builds'][number];

interface BuildingSet {
  readonly since: number;
  /** Who want it built. */
  users: number;
  /** Undefined until its crates are known. */
  progress?: SetProgress;
}

export class BuildingSets {
  readonly #sets = new Map<string, BuildingSet>();
  readonly #waiting = new Map<string, Set<WaitingBuild>>();

  /** Waits for a set, which may be built by another call. */
  async waitFor<T>(key: string, build: WaitingBuild | undefined, set: Promise<T>): Promise<T> {
    if (!build) return set;
    const builds = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, builds.add(build));
    try {
      return await set;
    } finally {
      builds.delete(build);
      if (builds.size === 0 && this.#waiting.get(key) === builds) this.#waiting.delete(key);
    }
  }

  /** Builds a set, or waits for the turn to build it. */
  async build<T>(key: string, work: (onProgress: (progress: SetProgress) => void) => Promise<T>): Promise<T> {
    const set = this.#sets.get(key) ?? { since: performance.now(), users: 0 };
    set.users++;
    this.#sets.set(key, set);
    try {
      return await work((progress) => {
        set.progress = progress;
      });
    } finally {
      if (--set.users === 0) this.#sets.delete(key);
    }
  }

  states(): BuildingCrates[] {
    return [...this.#sets].map(([key, { since, progress }]) => ({
      crates: progress?.crates ?? 0,
      of: progress?.of ?? null,
      crate: progress?.crate ?? null,
      crate_seconds: progress?.crate == null ? null : secondsSince(progress.crateSince),
      seconds: secondsSince(since),
      builds: [...(this.#waiting.get(key) ?? [])],
    }));
  }
}

function secondsSince(time: number): number {
  return Math.floor((performance.now() - time) / 1000);
}
