/** Files and folders that have the id of the process they belong to in their names, and outlive it when it is killed. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { toError } from '../errors.js';
import type { Logger } from '../log.js';
import { isAlive } from '../process-liveness.js';
import { removeTree } from './remove-tree.js';

/**
 * Removes those of processes that are gone. To be called before this process makes the first of its own: what has its id
 * is of one before it, as in a container, where ids begin anew. What cannot be removed is logged and stays.
 * @param folder nothing is done when it is not there
 * @param name matches their names, with the process id in its first group
 */
export async function removeAbandoned(folder: string, name: RegExp, log: Logger): Promise<void> {
  for (const entry of existsSync(folder) ? await readdir(folder) : []) {
    const owner = name.exec(entry)?.[1];
    if (owner === undefined || !isGone(Number(owner))) continue;
    const path = join(folder, entry);
    await removeTree(path).catch((error: unknown) =>
      log.warn({ err: toError(error), path }, 'what a killed process has left could not be removed'),
    );
  }
}

function isGone(pid: number): boolean {
  return pid === process.pid || !isAlive(pid);
}
