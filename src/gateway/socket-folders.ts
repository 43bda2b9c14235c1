/** The folders in which handlers have their sockets: one for each, which it can write to. What is in them is theirs. */
import { join } from 'node:path';
import { toError } from '../errors.js';
import { removeAbandoned } from '../sandbox/abandoned.js';
import { removeTree } from '../sandbox/remove-tree.js';
import type { Logger } from '../util/log.js';
import { PROCESS_PATTERN, THIS_PROCESS } from '../util/process-liveness.js';

const NAME = new RegExp(`^handler-(${PROCESS_PATTERN})-\\d+(?:\\.sock)?$`);

/** Where an instance has its socket, alone in its folder. */
export function socketOf(runDir: string, instanceId: number): string {
  return join(runDir, `handler-${THIS_PROCESS}-${instanceId}`, 'handler.sock');
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
