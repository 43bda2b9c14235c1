/**
 * The folder of sqlite services below DATA_DIR. Where root has started the product, it belongs to the user that their
 * processes run as, and is where that one can enter it.
 */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, realpath, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Config } from '../config.js';
import { type SqliteFolders, sqliteFolders } from '../model/sqlite-folders.js';
import { isErrno } from '../util/errno.js';
import type { Log } from '../util/log.js';
import { HAS_UNTRUSTED_USERS, SQLITE_USER } from '../util/untrusted-users.js';
import { reachableFolder } from './reachable-folder.js';

const run = promisify(execFile);
const PRIVATE = { mode: 0o700 };

/**
 * The folders in which files of sqlite services may be. The one below DATA_DIR is made, and what belongs to root in it
 * given to the user of their processes; others are the operator's, and left as they are.
 * @throws Error when it cannot be moved to where that user can enter it
 */
export async function makeSqliteFolder(
  config: Pick<Config, 'DATA_DIR' | 'SQLITE_DIR'>,
  log: Log,
): Promise<SqliteFolders> {
  const folders = sqliteFolders(config);
  if (config.SQLITE_DIR !== undefined) return folders;
  const [own] = folders;
  if (HAS_UNTRUSTED_USERS) await moveOutside(own, await reachableFolder(config.DATA_DIR, 'sqlite'), log);
  await mkdir(own, PRIVATE).catch((error: unknown) => {
    if (!isErrno(error, 'EEXIST')) throw error;
  });
  if (HAS_UNTRUSTED_USERS) {
    const folder = await realpath(own);
    const given = await give(folder);
    if (given > 0)
      log.info(
        { folder, user: SQLITE_USER, files: given },
        'files of sqlite services belong to the user of their processes now',
      );
  }
  return folders;
}

/** Moves a folder to a place, and leaves a link to it. Goes on where an earlier start was interrupted. */
async function moveOutside(own: string, place: string, log: Log): Promise<void> {
  const stats = await ifThere(lstat(own));
  const [unfinished, old] = [`${place}.new`, `${own}.moved`];
  // What an interrupted start has left behind the link is a copy.
  if (stats?.isSymbolicLink()) await rm(old, { recursive: true, force: true });
  if (place === own || stats?.isSymbolicLink() || place === (await ifThere(realpath(own)))) return;
  if (stats) {
    if (await ifThere(lstat(place)))
      throw new Error(
        `Files of sqlite services are in ${own} and in ${place}: keep what is newer, remove the other`,
      );
    await rm(unfinished, { recursive: true, force: true });
    // Closed before anything is in it.
    await mkdir(unfinished, PRIVATE);
    await run('cp', ['-a', '--reflink=auto', '--', `${own}/.`, unfinished]);
    // On the disk, also if the machine fails.
    await run('sync', ['-f', unfinished]);
    // All of it is there from here on.
    await rename(own, old);
  }
  // An interrupted start has left it: complete, because what was copied has another name already.
  if (await ifThere(lstat(old))) await ifThere(rename(unfinished, place));
  await mkdir(place, PRIVATE).catch((error: unknown) => {
    if (!isErrno(error, 'EEXIST')) throw error;
  });
  await symlink(place, own);
  await rm(old, { recursive: true, force: true });
  log.info(
    { folder: own, place },
    'files of sqlite services are where the user of their processes can enter',
  );
}

/**
 * Gives what belongs to root to the user: also what root has restored or added later. That user may write there, so no
 * path is followed twice, no link, and no other name of a file, which may be outside.
 * @returns how many files and folders were given
 */
async function give(path: string): Promise<number> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((error: unknown) => {
    if (isErrno(error, 'ELOOP', 'ENOENT', 'ENXIO')) return undefined;
    throw error;
  });
  if (!file) return 0;
  try {
    const stats = await file.stat();
    const folder = `/proc/self/fd/${file.fd}`;
    let given = 0;
    if (stats.isDirectory())
      for (const name of await readdir(folder)) given += await give(join(folder, name));
    const isOwn = stats.isDirectory() || (stats.isFile() && stats.nlink === 1);
    if (stats.uid !== 0 || !isOwn) return given;
    await file.chown(SQLITE_USER, SQLITE_USER);
    return given + 1;
  } finally {
    await file.close();
  }
}

/** Undefined when there is no such file. */
async function ifThere<T>(look: Promise<T>): Promise<T | undefined> {
  return look.catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  });
}
