/**
 * What a dependency set can begin with: libraries that other sets have built of the same crates. Cargo takes from them
 * what has the same version, features and flags. Build scripts and macros are untrusted, and could have changed any
 * library of their set: a set begins with those of another only if all code that has run there is its own, too.
 */
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { markUsed, targetOf } from './prepared-sets.js';
import type { CrateGraph } from './set-graph.js';
import type { Toolchain } from './toolchain.js';

/** A file in the folder of a set: what others need to know to begin with it. Untrusted code cannot write here. */
const CRATES_FILE = 'crates.json';
/** More than so many are looked at, and copied, in vain. */
const MOST_BASES = 3;

/** The file's content. */
interface RecordedSet extends Pick<CrateGraph, 'crates' | 'running'> {
  readonly fingerprint: string;
  /** The path at which it was compiled. */
  readonly sdk: string;
  /** Of its libraries. */
  readonly bytes: number;
}

/** What two sets must have in common. */
export interface SetPlatform {
  readonly toolchain: Toolchain;
  /** The path of the SDK as cargo sees it. */
  readonly sdk: string;
}

/** Records what a complete set has. */
export async function recordCrates(
  set: string,
  { crates, running }: CrateGraph,
  { toolchain, sdk }: SetPlatform,
): Promise<void> {
  const { fingerprint } = toolchain;
  const bytes = await bytesIn(join(targetOf({ folder: set }), 'release', 'deps'));
  const recorded: RecordedSet = { fingerprint, sdk, bytes, crates, running };
  await writeFile(join(set, CRATES_FILE), JSON.stringify(recorded));
}

/**
 * The sets below a folder to begin with: those which share most crates, each with some that those before lack.
 * @param mostBytes of all together
 * @returns their folders; what a later one has replaces the same of an earlier one
 */
export async function basesOf(
  root: string,
  { crates }: Pick<CrateGraph, 'crates'>,
  { toolchain, sdk }: SetPlatform,
  mostBytes: number,
): Promise<string[]> {
  const wanted = new Set(crates);
  const missing = new Set(crates);
  const usable = (await recordedSets(root)).filter(
    ({ folder, set }) =>
      set.fingerprint === toolchain.fingerprint &&
      set.sdk === sdk &&
      existsSync(targetOf({ folder })) &&
      set.running.every((crate) => wanted.has(crate)),
  );
  const bases: string[] = [];
  for (let left = mostBytes; bases.length < MOST_BASES; ) {
    const gain = ({ set }: { readonly set: RecordedSet }) =>
      set.crates.filter((crate) => missing.has(crate)).length;
    const [best] = usable.filter(({ set }) => set.bytes <= left).sort((a, b) => gain(b) - gain(a));
    if (!best || gain(best) === 0) break;
    for (const crate of best.set.crates) missing.delete(crate);
    left -= best.set.bytes;
    if (await markUsed(best)) bases.push(best.folder);
  }
  return bases;
}

async function recordedSets(root: string): Promise<{ readonly folder: string; readonly set: RecordedSet }[]> {
  await mkdir(root, { recursive: true });
  const complete = (await readdir(root)).filter((name) => !name.startsWith('.'));
  const read = complete.map(async (name) => {
    const folder = join(root, name);
    const text = await readFile(join(folder, CRATES_FILE), 'utf8').catch(() => undefined);
    // The file may be truncated after a power failure.
    return text?.endsWith('}') ? [{ folder, set: JSON.parse(text) as RecordedSet }] : [];
  });
  return (await Promise.all(read)).flat();
}

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(names.map(async (name) => (await lstat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
