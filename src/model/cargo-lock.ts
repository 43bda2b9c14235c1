/**
 * A Cargo.lock: what is wrong with one, and which crates it has. Cargo writes it line by line in one form, for which
 * this needs no parser of TOML. The command line and the web UI have copies of this file, which therefore imports
 * nothing, and needs nothing that a browser does not have.
 */

/** Some of 1,000 crates have 200 KiB. */
export const MAX_LOCK_BYTES = 2 * 1024 * 1024;

/** A crate of a lock. */
export interface LockedCrate {
  readonly name: string;
  readonly version: string;
  /** The registry or the git repository that it is from; null: it is local. */
  readonly source: string | null;
}

/** A crate that two locks have not in the same version. Null: one of them does not have it. */
export interface ChangedCrate {
  readonly name: string;
  readonly from: string | null;
  readonly to: string | null;
}

const TEXT = '"[^"\\\\\\p{Control}]*"';
const HEADING = /^\[(\[package\]|\[patch\.unused\]|metadata)\]$/;
const MEMBER = new RegExp(`^(name|version|source|checksum|replace) = (${TEXT})$`, 'u');
/** The other lines that cargo writes. */
const OTHERS = [
  /^(#.*)?$/,
  /^version = [1-9]\d{0,3}$/,
  /^dependencies = \[$/,
  new RegExp(`^dependencies = \\[ ?(${TEXT}(, ${TEXT})*)? ?\\]$`, 'u'),
  new RegExp(`^ +${TEXT},?$`, 'u'),
  /^\]$/,
  new RegExp(`^"checksum [^"\\p{Control}]+" = ${TEXT}$`, 'u'),
];
const DEPENDENCIES = /^dependencies = \[([^\]]*)\]/m;
/** Characters of a wrong line in a message. */
const SHOWN = 60;

/** What is wrong with the text of a lock; undefined: nothing. */
export function lockProblem(text: string): string | undefined {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > MAX_LOCK_BYTES) return `has ${bytes} bytes; a Cargo.lock may have at most ${MAX_LOCK_BYTES}`;
  const lines = linesOf(text);
  const wrong = lines.findIndex((line) => !isOfLock(line));
  if (wrong >= 0) {
    const line = lines[wrong] ?? '';
    const shown = line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line;
    return `must be a Cargo.lock as cargo writes it, which line ${wrong + 1} is not of: ${JSON.stringify(shown)}`;
  }
  const packages = packagesOf(text);
  if (packages.length === 0) return 'must be a Cargo.lock as cargo writes it, which has packages';
  const incomplete = packages.find(({ name, version }) => name === undefined || version === undefined);
  if (!incomplete) return undefined;
  return `must be a Cargo.lock as cargo writes it: the package of line ${incomplete.line} has no name, or no version`;
}

/** A package of a lock, a local one included. */
export interface LockedPackage extends LockedCrate {
  /** sha256 of what is downloaded; null: it is not from a registry. */
  readonly checksum: string | null;
  /** `name`, `name version` or `name version (source)`: as much as is needed to tell it from others. */
  readonly dependencies: readonly string[];
}

/** All packages of a lock. */
export function lockedPackages(text: string): LockedPackage[] {
  return packagesOf(text).flatMap(({ name, version, source = null, checksum = null, dependencies }) =>
    name === undefined || version === undefined ? [] : [{ name, version, source, checksum, dependencies }],
  );
}

/** The crates of a lock, without local ones. */
export function cratesInLock(text: string): LockedCrate[] {
  return lockedPackages(text).filter(({ source }) => source !== null);
}

/** The text of each package. */
export function packageBlocks(text: string): { readonly name?: string; readonly text: string }[] {
  return blocksOf(text)
    .filter((block) => block.startsWith('[[package]]'))
    .map((block) => ({ ...membersOf(block), text: block }));
}

/** A lock without some crates: cargo chooses their versions anew, and keeps those of all others. */
export function withoutCrates(text: string, names: ReadonlySet<string>): string {
  return blocksOf(text)
    .filter((block) => {
      const { name } = membersOf(block);
      return !(block.startsWith('[[package]]') && name !== undefined && names.has(name));
    })
    .join('');
}

/** The crates that differ, by their names. There may be several versions of one. */
export function changedCrates(before: string, after: string): ChangedCrate[] {
  const [old, next] = [versionsIn(before), versionsIn(after)];
  const names = [...new Set([...old.keys(), ...next.keys()])].sort();
  return names.flatMap((name) => {
    const [was, is] = [old.get(name) ?? [], next.get(name) ?? []];
    const gone = was.filter((version) => !is.includes(version));
    const come = is.filter((version) => !was.includes(version));
    const count = Math.max(gone.length, come.length);
    return Array.from({ length: count }, (_, at) => ({
      ...{ name, from: gone[at] ?? null, to: come[at] ?? null },
    }));
  });
}

/** Versions by the names of crates; of one that is not of a registry with where it is from. */
function versionsIn(text: string): ReadonlyMap<string, readonly string[]> {
  const versions = new Map<string, string[]>();
  for (const { name, version, source } of cratesInLock(text)) {
    const shown = source?.startsWith('git+') ? `${version} (${source})` : version;
    versions.set(name, [...(versions.get(name) ?? []), shown]);
  }
  return versions;
}

interface Package {
  /** Where it begins. */
  readonly line: number;
  readonly name?: string;
  readonly version?: string;
  readonly source?: string;
  readonly checksum?: string;
  readonly dependencies: readonly string[];
}

function packagesOf(text: string): Package[] {
  let line = 1;
  return blocksOf(text).flatMap((block) => {
    const begin = line;
    line += block.split('\n').length - 1;
    const dependencies = [...(DEPENDENCIES.exec(block)?.[1] ?? '').matchAll(/"([^"]+)"/g)].map(
      ([, dependency = '']) => dependency,
    );
    return block.startsWith('[[package]]') ? [{ line: begin, ...membersOf(block), dependencies }] : [];
  });
}

/** What is before the first heading, and each heading with what follows it. */
function blocksOf(text: string): string[] {
  return text.split(/^(?=\[)/m);
}

function membersOf(block: string): Omit<Package, 'line' | 'dependencies'> {
  const members = linesOf(block).flatMap((line) => {
    const [, name, value] = MEMBER.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value.slice(1, -1)]];
  });
  return Object.fromEntries(members) as Omit<Package, 'line' | 'dependencies'>;
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/);
}

function isOfLock(line: string): boolean {
  return HEADING.test(line) || MEMBER.test(line) || OTHERS.some((pattern) => pattern.test(line));
}
