/** Complete dependency sets on this machine: a folder each, with libraries to link and the sources of crates. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../sandbox/remove-tree.js';
import { isErrno } from '../util/errno.js';
import { giveToRoot, makePassable } from '../util/untrusted-users.js';

/** A prepared set on this machine. */
export interface Libraries {
  readonly folder: string;
  /** Arguments for rustc, with `TARGET` as a placeholder for the folder of the libraries. */
  readonly rustcArgs: readonly string[];
  /** The text of its Cargo.lock: which crates it has. */
  readonly lock: string;
}

/**
 * A file in the folder of a set: arguments for rustc; its presence means that the set is complete. Untrusted code
 * cannot write here.
 */
export const PREPARED_FILE = 'rustc-args.json';
/** Placeholder for the folder of the libraries in that file. */
export const TARGET = '{target}';

/** Where the libraries of a set are. */
export function targetOf({ folder }: Pick<Libraries, 'folder'>): string {
  return join(folder, 'target');
}

/** Where the sources of its crates are: the compiler shows lines of them. */
export function crateSourcesOf({ folder }: Pick<Libraries, 'folder'>): string {
  return join(folder, 'cargo', 'registry', 'src');
}

/** Arguments for a rustc which finds the libraries under this path. */
export function linkingTo({ rustcArgs }: Pick<Libraries, 'rustcArgs'>, target: string): string[] {
  return rustcArgs.map((arg) => arg.replaceAll(TARGET, target));
}

/** A set that was prepared before; undefined if it was not, or if its libraries were deleted. */
export async function readPrepared(folder: string): Promise<Libraries | undefined> {
  const [args, lock] = await Promise.all([
    readText(join(folder, PREPARED_FILE)),
    readText(join(folder, 'project', 'Cargo.lock')),
  ]);
  // The file may be truncated after a power failure.
  if (!args?.endsWith(']') || lock === undefined) return undefined;
  const libraries = { folder, rustcArgs: JSON.parse(args) as string[], lock };
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
export async function markUsed({ folder }: Pick<Libraries, 'folder'>): Promise<boolean> {
  const now = new Date();
  return utimes(join(folder, PREPARED_FILE), now, now).then(
    () => true,
    () => false,
  );
}

/** Renames a complete set to its final name, unless another process was faster. */
export async function keepPrepared(built: string, folder: string): Promise<Libraries> {
  try {
    await rename(built, folder);
  } catch (error) {
    if (!isErrno(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    const theirs = await readPrepared(folder);
    if (theirs) return theirs;
    // The existing folder is useless: its libraries were deleted.
    await removeTree(folder);
    await rename(built, folder);
  }
  const libraries = await readPrepared(folder);
  if (!libraries) throw new Error(`the libraries of ${folder} are not where cargo said that they are`);
  return libraries;
}

/** Deletes sets below a folder that were not used for this long: mostly those of older compilers and SDKs. */
export async function forgetUnused(root: string, unusedMs: number): Promise<void> {
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

/** Of sets that differ in local crates only, so many are kept besides the newest. */
const KEPT_OTHERS = 3;
/** Something may still be compiled with a set that was used so recently. */
const IN_USE_MS = 10 * 60_000;

/** Deletes sets that have the same dependencies as this one, with older local crates. */
export async function forgetOthers(root: string, key: string): Promise<void> {
  const [family = key] = key.split('-');
  const others = (await readdir(root)).filter((name) => name.startsWith(`${family}-`) && name !== key);
  const used = others.map(async (name) => {
    const status = await stat(join(root, name, PREPARED_FILE)).catch(() => undefined);
    return status ? [{ name, usedAt: status.mtimeMs }] : [];
  });
  const oldest = (await Promise.all(used))
    .flat()
    .sort((a, b) => b.usedAt - a.usedAt)
    .slice(KEPT_OTHERS);
  for (const { name, usedAt } of oldest)
    if (Date.now() - usedAt > IN_USE_MS) await removeTree(join(root, name));
}

async function readText(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').catch(() => undefined);
}
