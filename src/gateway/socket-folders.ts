/** The folders in which handlers have their sockets: one for each, which it can write to. What is in them is theirs. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { toError } from '../errors.js';
import type { Logger } from '../log.js';
import { isAlive } from '../process-liveness.js';
import { removeTree } from '../sandbox/remove-tree.js';

/** Where an instance has its socket, alone in its folder. */
export function socketOf(runDir: string, instanceId: number): string {
  return join(runDir, `handler-${process.pid}-${instanceId}`, 'handler.sock');
}

/** Removes a folder when its handler has ended. */
export async function removeSocketFolder(folder: string, log: Logger): Promise<void> {
  try {
    await removeTree(folder);
  } catch (error) {
    log.warn({ err: toError(error), folder }, 'folder of a handler could not be removed');
  }
}

/**
 * Removes what is left of gateways that were killed before they could do so. To be called before the first handler is
 * started: what has our own process id is of one before us, as in a container, where ids begin anew.
 */
export async function removeStaleSockets(runDir: string, log: Logger): Promise<void> {
  for (const name of await readdir(runDir)) {
    const pid = /^handler-(\d+)-\d+(\.sock)?$/.exec(name)?.[1];
    if (pid !== undefined && isGone(Number(pid))) await removeSocketFolder(join(runDir, name), log);
  }
}

function isGone(pid: number): boolean {
  return pid === process.pid || !isAlive(pid);
}
