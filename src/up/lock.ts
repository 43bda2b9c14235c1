/**
 * One `npm run up` per DATA_DIR at a time. The lock is a symbolic link, whose target identifies the process that holds
 * it: unlike a file, a link is made together with its content.
 */
import { lstatSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isErrno } from '../util/errno.js';
import { isRunning, THIS_PROCESS } from '../util/process-liveness.js';

/**
 * Locks the folder for this process.
 * @returns a function that releases it
 * @throws Error when another process holds the lock
 */
export function lockDataDir(dataDir: string): () => void {
  const file = join(dataDir, 'up.pid');
  const owner = acquire(file);
  if (owner !== undefined) {
    throw new Error(
      `It already runs in ${dataDir} (process ${owner.split('-')[0]}). Stop that one, or set DATA_DIR, PORT and ` +
        'GATEWAY_PORT for another instance.',
    );
  }
  return () => rmSync(file, { force: true });
}

/** @returns the process that holds the lock; undefined when it is now this one */
function acquire(file: string): string | undefined {
  for (;;) {
    try {
      symlinkSync(THIS_PROCESS, file);
      return undefined;
    } catch (error) {
      if (!isErrno(error, 'EEXIST')) throw error;
    }
    const owner = ownerOf(file);
    if (owner === undefined) continue;
    if (isRunning(owner)) return owner;
    // Left by a process that was killed. Only the holder of a second lock may replace it; the second one can be left
    // by a killed process too.
    const next = `${file}.next`;
    const other = acquire(next);
    if (other !== undefined) return other;
    if (ownerOf(file) === owner) {
      renameSync(next, file);
      return undefined;
    }
    rmSync(next);
  }
}

/** Undefined when the lock was released meanwhile. */
function ownerOf(file: string): string | undefined {
  try {
    if (lstatSync(file).isSymbolicLink()) return readlinkSync(file);
    // A file of an earlier version: `<process id> <start>`.
    return readFileSync(file, 'utf8').replace(' ', '-');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}
