/**
 * Folders of root for files of programs that run as other users: in DATA_DIR, or outside it when other users cannot
 * traverse a folder above, like `/root`.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, lstat, mkdir, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';

/** Parent of the folders outside DATA_DIR. Not `/var/lib/edge-gateway`, which can belong to a service. */
export const REACHABLE_BASE = '/var/lib/edge-gateway-root';

/**
 * The path of the folder `name`: in DATA_DIR, unless this process is root and other users cannot access it there.
 * Creates the parent folders, but not the folder itself.
 */
export async function reachableFolder(dataDir: string, name: string): Promise<string> {
  const own = join(dataDir, name);
  const real = await realpath(own).catch(() => own);
  if (!HAS_UNTRUSTED_USERS) return own;
  if (await isOpenToAll(dirname(real))) return real;
  return join(await folderOutside(dataDir), name);
}

/** The folder of root for what cannot be in this DATA_DIR. Every user can enter it. */
export async function folderOutside(dataDir: string): Promise<string> {
  const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
  const folder = join(REACHABLE_BASE, digest);
  await makeFolderOfRoot(REACHABLE_BASE);
  await makeFolderOfRoot(folder);
  return folder;
}

/**
 * Makes a folder that every user can enter, or checks an existing one.
 * @throws Error when another user may have made it, or can write to it
 */
export async function makeFolderOfRoot(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o755 });
  const stats = await lstat(path);
  const isWritable = (stats.mode & (constants.S_IWGRP | constants.S_IWOTH)) !== 0;
  if (!stats.isDirectory() || stats.uid !== 0 || isWritable) {
    throw new Error(
      `${path} is not a folder that belongs to root and that only root can write to: check who made it, and remove it.`,
    );
  }
  await chmod(path, 0o755);
}

/** Whether all users can traverse a folder and its parents. */
export async function isOpenToAll(folder: string): Promise<boolean> {
  for (let at = await realpath(folder); ; at = dirname(at)) {
    if (((await stat(at)).mode & constants.S_IXOTH) === 0) return false;
    if (at === dirname(at)) return true;
  }
}
