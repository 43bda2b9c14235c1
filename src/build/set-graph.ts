/** The crates of a dependency set as cargo resolves them, and whose code runs while they are built. */
import { lockedPackages } from '../model/cargo-lock.js';
import { identityOf } from './lock-file.js';

/** Names of packages, by their ids. */
export type PackageNames = ReadonlyMap<string, string>;

/** The parts of `cargo metadata` that are read: https://doc.rust-lang.org/cargo/commands/cargo-metadata.html */
export interface CargoMetadata {
  readonly packages?: readonly {
    readonly id: string;
    readonly name: string;
    readonly version?: string;
    /** null: it is in a folder. */
    readonly source?: string | null;
    readonly targets?: readonly { readonly kind: readonly string[] }[];
  }[];
  readonly resolve: {
    readonly root: string;
    readonly nodes: readonly {
      readonly id: string;
      readonly deps: readonly { readonly name: string; readonly pkg: string }[];
    }[];
  };
}

/** Crates, by what tells each from all others. */
export interface CrateGraph {
  readonly names: PackageNames;
  readonly crates: readonly string[];
  /** Those with build scripts and macros. */
  readonly running: readonly string[];
}

/**
 * @param lock that cargo has resolved
 * @param local tells the contents of crates in folders from those of other sets
 */
export function readGraph(metadata: string, lock: string, local: string): CrateGraph {
  const { packages = [], resolve } = JSON.parse(metadata) as CargoMetadata;
  const locked = lockedPackages(lock);
  const identity = ({ name, version, source }: (typeof packages)[number]) => {
    if (!source) return [name, version, local].join(' ');
    const same = locked.filter((one) => one.name === name && one.version === version);
    return same.map(identityOf).join(' ');
  };
  const ids = new Set(resolve.nodes.map(({ id }) => id).filter((id) => id !== resolve.root));
  const all = packages.filter(({ id }) => ids.has(id));
  const runs = ({ targets = [] }: (typeof all)[number]) =>
    targets.some(({ kind }) => kind.some((one) => one === 'custom-build' || one === 'proc-macro'));
  const names = new Map(packages.map(({ id, name }) => [id, name]));
  return {
    names: new Map([...ids].map((id) => [id, names.get(id) ?? id])),
    crates: all.map(identity),
    running: all.filter(runs).map(identity),
  };
}
