/** How far cargo is with the crates of a set, by what it prints. Macros can print anything: only known crates count. */
import { finishedPackage } from './cargo-output.js';
import type { PackageNames } from './set-graph.js';

/** Progress in compiled crates. */
export interface SetProgress {
  readonly crates: number;
  readonly of: number;
  /** The one that is compiled for longest; null: none is. */
  readonly crate: string | null;
  /** Since when, as `performance.now()` says it. */
  readonly crateSince: number;
}

/** `   Compiling reqwest v0.12.9` */
const COMPILING = /^\s*Compiling ([\w-]+) v/;

export class CargoProgress {
  /** Ids of packages. */
  readonly #finished = new Set<string>();
  /** Since when which crates are compiled, by name, the first first. */
  readonly #compiling = new Map<string, number>();
  #built = 0;

  /** @param names of all packages of the set, by their ids */
  constructor(
    private readonly names: PackageNames,
    private readonly onProgress: ((progress: SetProgress) => void) | undefined,
  ) {
    this.#tell();
  }

  get state(): SetProgress {
    const [[crate, crateSince] = [null, 0]] = this.#compiling;
    return { crates: this.#finished.size, of: this.names.size, crate, crateSince };
  }

  /** How many crates were compiled, without those that were there. */
  get built(): number {
    return this.#built;
  }

  /** Takes a line of cargo's standard output. */
  readonly onLine = (line: string): void => {
    const finished = finishedPackage(line);
    const name = finished && this.names.get(finished.id);
    if (!finished || name === undefined || this.#finished.has(finished.id)) return;
    this.#finished.add(finished.id);
    this.#compiling.delete(name);
    if (!finished.wasThere) this.#built++;
    this.#tell();
  };

  /** Takes a line of its standard error. */
  readonly onErrorLine = (line: string): void => {
    const name = COMPILING.exec(line)?.[1];
    if (name === undefined || ![...this.names.values()].includes(name)) return;
    if (!this.#compiling.has(name)) this.#compiling.set(name, performance.now());
    this.#tell();
  };

  #tell(): void {
    this.onProgress?.(this.state);
  }
}
