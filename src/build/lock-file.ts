/** What a set has of a Cargo.lock, and what it lacks. */
import { type LockedPackage, lockedPackages, packageBlocks } from '../model/cargo-lock.js';

/** What tells a package from all others, with what is in it. */
export function identityOf({ name, version, source, checksum }: LockedPackage): string {
  return [name, version, source ?? '', checksum ?? ''].join(' ');
}

/**
 * What of a manifest's crates a lock does not have: those that cargo had to add, or to change.
 * @param resolved the lock that cargo made of the given one
 * @param crates the names of the packages that the manifest itself asks for
 */
export function notInLock(
  given: string,
  resolved: string,
  crates: readonly string[],
): LockedPackage | undefined {
  const known = new Set(lockedPackages(given).map(identityOf));
  const all = lockedPackages(resolved);
  const reached = new Set(all.filter(({ name }) => crates.includes(name)));
  for (const { dependencies } of reached)
    for (const dependency of dependencies) {
      const [name, version] = dependency.split(' ');
      for (const one of all)
        if (one.name === name && (version === undefined || one.version === version)) reached.add(one);
    }
  return [...reached].find((one) => one.source !== null && !known.has(identityOf(one)));
}

/** A lock with those packages of another whose names it lacks. Cargo drops what no manifest needs. */
export function withPackagesOf(lock: string, other: string): string {
  const names = new Set(lockedPackages(lock).map(({ name }) => name));
  const added = packageBlocks(other).filter(({ name }) => name !== undefined && !names.has(name));
  return [lock, ...added.map(({ text }) => text)].map((text) => `${text.trimEnd()}\n`).join('\n');
}
