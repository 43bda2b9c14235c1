/**
 * The folder of sqlite services below DATA_DIR. Where root has started the product, it belongs to the user that their
 * processes run as, and is where that one can enter it.
 */
import { cp, lchown, lstat, mkdir, readdir, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.js';
import { type SqliteFolders, sqliteFolders } from '../model/sqlite-folders.js';
import { isErrno } from '../util/errno.js';
import type { Logger } from '../util/log.js';
import { HAS_UNTRUSTED_USERS, SQLITE_USER } from '../util/untrusted-users.js';
import { reachableFolder } from './reachable-folder.js';

/**
 * The folders in which files of sqlite services may be. The one below DATA_DIR is made, and what is in it given to the
 * user of their processes; others are the operator's, and left as they are.
 * @throws Error when it cannot be moved to where that user can enter it
 */
export async function makeSqliteFolder(
  config: Pick<Config, 'DATA_DIR' | 'SQLITE_DIR'>,
  log: Logger,
): Promise<SqliteFolders> {
  const folders = sqliteFolders(config);
  if (config.SQLITE_DIR !== undefined) return folders;
  const [own] = folders;
  if (HAS_UNTRUSTED_USERS) await moveOutside(own, await reachableFolder(config.DATA_DIR, 'sqlite'), log);
  await mkdir(own, { mode: 0o700 }).catch((error: unknown) => {
    if (!isErrno(error, 'EEXIST')) throw error;
  });
  if (HAS_UNTRUSTED_USERS) await takeOver(await realpath(own), log);
  return folders;
}

/** Moves a folder to a place, and leaves a link to it. It is complete in one of both, whenever this is interrupted. */
async function moveOutside(own: string, place: string, log: Logger): Promise<void> {
  const found = await ifThere(lstat(own));
  if (place === own || found?.isSymbolicLink() || place === (await ifThere(realpath(own)))) return;
  const isMoved = (await ifThere(lstat(place))) !== undefined;
  if (found && isMoved)
    throw new Error(
      `The files of sqlite services are in ${own} or in ${place}: keep the one with the newer files, and remove the other.`,
    );
  if (found) {
    await rm(`${place}.new`, { recursive: true, force: true });
    await cp(own, `${place}.new`, { recursive: true, preserveTimestamps: true });
    await rename(`${place}.new`, place);
    await rm(own, { recursive: true });
  } else if (!isMoved) {
    await mkdir(place, { mode: 0o700 });
  }
  await symlink(place, own);
  log.info(
    { folder: own, place },
    'files of sqlite services are where the user of their processes can enter',
  );
}

/** What root has made, or restored. */
async function takeOver(folder: string, log: Logger): Promise<void> {
  if ((await stat(folder)).uid !== 0) return;
  await give(folder);
  log.info(
    { folder, user: SQLITE_USER },
    'files of sqlite services belong to the user of their processes now',
  );
}

async function give(path: string): Promise<void> {
  const found = await lstat(path);
  if (found.uid !== 0) return;
  if (found.isDirectory()) for (const name of await readdir(path)) await give(join(path, name));
  // Another name of a file may be outside.
  else if (!found.isFile() || found.nlink > 1) return;
  await lchown(path, SQLITE_USER, SQLITE_USER);
}

/** Undefined when there is no such file. */
async function ifThere<T>(look: Promise<T>): Promise<T | undefined> {
  return look.catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  });
}
