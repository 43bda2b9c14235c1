/** Sockets of handlers whose gateway was killed before it could remove them. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive } from '../process-liveness.js';

/** Removes the socket files of gateways that are gone. */
export async function removeStaleSockets(runDir: string): Promise<void> {
  for (const name of await readdir(runDir)) {
    const pid = /^handler-(\d+)-\d+\.sock$/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(runDir, name), { force: true });
  }
}
