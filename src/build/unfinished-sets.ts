/**
 * Folders of dependency sets that are being built. Their names say which process builds them, so that a set whose
 * process was killed can be continued by another.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../util/errno.js';
import { isRunning, THIS_PROCESS } from '../util/process-liveness.js';

/** `.making-<process id>-<start of the process>-<key of the set>` */
const NAME = /^\.making-(\d+-\d+)-(.+)$/;

/**
 * Claims the folder of an unfinished set for this process: one of an ended process if there is one, else a new one. Two
 * processes that start at the same moment may get one each; both can build the set.
 * @param root the folder of all sets
 * @returns undefined while another process builds the set
 */
export async function claimUnfinished(root: string, key: string): Promise<string | undefined> {
  const own = join(root, `.making-${THIS_PROCESS}-${key}`);
  if (existsSync(own)) return own;
  for (const name of await readdir(root)) {
    const [, owner = '', ofKey] = NAME.exec(name) ?? [];
    if (ofKey !== key) continue;
    if (isRunning(owner)) return undefined;
    try {
      await rename(join(root, name), own);
      return own;
    } catch (error) {
      // Another process was faster.
      if (isErrno(error, 'ENOENT')) return claimUnfinished(root, key);
      throw error;
    }
  }
  await mkdir(own);
  return own;
}
