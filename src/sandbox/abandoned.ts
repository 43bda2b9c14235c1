/** Removes files of killed processes, whose names contain the identity of their process. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { toError } from '../errors.js';
import type { Logger } from '../util/log.js';
import { isRunning } from '../util/process-liveness.js';
import { removeTree } from './remove-tree.js';

/**
 * Removes the files and folders of ended processes. Failures are logged.
 * @param folder may be missing
 * @param name matches their names, with `PROCESS_PATTERN` in its first group
 */
export async function removeAbandoned(folder: string, name: RegExp, log: Logger): Promise<void> {
  for (const entry of existsSync(folder) ? await readdir(folder) : []) {
    const owner = name.exec(entry)?.[1];
    if (owner === undefined || isRunning(owner)) continue;
    const path = join(folder, entry);
    await removeTree(path).catch((error: unknown) =>
      log.warn({ err: toError(error), path }, 'what a killed process has left could not be removed'),
    );
  }
}
