/** The folders in which handlers have their sockets: one for each, which it can write to. What is in them is theirs. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { toError } from '../../errors.js';
import { removeAbandoned } from '../../sandbox/abandoned.js';
import { removeTree } from '../../sandbox/remove-tree.js';
import type { Logger } from '../../util/log.js';
import { PROCESS_PATTERN, THIS_PROCESS } from '../../util/process-liveness.js';

/** Also those of earlier versions. */
const NAME = new RegExp(`^h(?:andler)?-(${PROCESS_PATTERN})-\\d+(?:-[0-9a-f]+|\\.sock)?$`);

/**
 * Where an instance has its socket, alone in its folder. Its name cannot be guessed: not as root, other handlers have
 * the same user, and until Linux 7.1 Landlock lets them connect to sockets that they can name.
 */
export function socketOf(runDir: string, instanceId: number): string {
  return join(runDir, `h-${THIS_PROCESS}-${instanceId}-${randomBytes(6).toString('hex')}`, 's');
}

/** Removes a folder when its handler has ended. */
export async function removeSocketFolder(folder: string, log: Logger): Promise<void> {
  try {
    await removeTree(folder);
  } catch (error) {
    log.warn({ err: toError(error), folder }, 'folder of a handler could not be removed');
  }
}

/** Removes folders of killed gateways. */
export function removeStaleSockets(runDir: string, log: Logger): Promise<void> {
  return removeAbandoned(runDir, NAME, log);
}
