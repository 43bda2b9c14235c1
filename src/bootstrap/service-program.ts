/**
 * The program of services in Node. Where root has started the product, other users run it: where these cannot read it,
 * as below `/root` or after an installation with a umask of 077, there is a copy that they can.
 */
import { createHash } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isErrno } from '../util/errno.js';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';
import { isOpenToAll, makeFolderOfRoot, REACHABLE_BASE } from './reachable-folder.js';

export interface NodeProgram {
  /** Node itself. */
  readonly node: string;
  readonly script: string;
}

/** A bundle alone in its folder (`scripts/processes.mjs`). */
const SCRIPT = fileURLToPath(new URL('../../processes/service/service.js', import.meta.url));
/** One copy for all installations of a machine that have the same program. */
const COPIES = join(REACHABLE_BASE, 'programs');

/**
 * The program where users of services can read it.
 * @throws Error when it cannot be copied
 */
export async function reachableNodeProgram(
  { node, script }: NodeProgram = { node: process.execPath, script: SCRIPT },
): Promise<NodeProgram> {
  if (!HAS_UNTRUSTED_USERS) return { node, script };
  return {
    node: (await isRunnable(node)) ? node : await copyOf([await realpath(node)]),
    script: (await isRunnable(script)) ? script : await copyOf(await besides(script)),
  };
}

async function isRunnable(path: string): Promise<boolean> {
  const isReadable = ((await stat(path)).mode & constants.S_IROTH) !== 0;
  return isReadable && (await isOpenToAll(dirname(path)));
}

/** A script and the files beside it. */
async function besides(script: string): Promise<string[]> {
  const folder = dirname(script);
  const others = (await readdir(folder)).filter(
    (name) => !name.endsWith('.map') && name !== basename(script),
  );
  return [script, ...others.sort().map((name) => join(folder, name))];
}

/** Copies files into one folder, unless they are there. @returns the path of the first */
async function copyOf(files: readonly string[]): Promise<string> {
  const digest = createHash('sha256');
  for (const file of files) digest.update(await stampOf(file));
  const folder = join(COPIES, digest.digest('hex').slice(0, 16));
  await makeFolderOfRoot(dirname(COPIES));
  await makeFolderOfRoot(COPIES);
  if (!existsSync(folder)) await copyInto(folder, files);
  return join(folder, basename(files[0] ?? ''));
}

/** What changes with a file. */
async function stampOf(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  return `${path} ${size} ${mtimeMs}\n`;
}

async function copyInto(folder: string, files: readonly string[]): Promise<void> {
  const unfinished = await mkdtemp(`${folder}.`);
  try {
    for (const file of files) {
      const copy = join(unfinished, basename(file));
      await copyFile(file, copy);
      await chmod(copy, 0o755);
    }
    await chmod(unfinished, 0o755);
    await rename(unfinished, folder);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // Another process has made the same meanwhile.
    if (!isErrno(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
}
