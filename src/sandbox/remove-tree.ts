/** Removes files of untrusted programs that have ended. */
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isErrno } from '../util/errno.js';

const run = promisify(execFile);

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** Repeated, because a program that has just been killed may still write a file. */
const ATTEMPTS = 10;
const AGAIN_MS = 50;

/**
 * Removes what others may change meanwhile, by a program that follows no path twice: a folder that becomes a link is
 * not followed.
 */
export async function removeShared(...paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  await run('rm', ['-rf', '--one-file-system', '--', ...paths], { maxBuffer: MAX_OUTPUT_BYTES });
}

/** Removes a file or folder if it exists. Links are removed, never followed. */
export async function removeTree(path: string): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      await rm(path, { recursive: true, force: true });
      return;
    } catch (error) {
      if (!isErrno(error, 'ENOTEMPTY')) break;
      await delay(AGAIN_MS);
    }
  }
  // These handle paths beyond PATH_MAX and missing permissions, and report errors.
  await run('chmod', ['-R', 'u+rwx', '--', path], { maxBuffer: MAX_OUTPUT_BYTES }).catch(() => undefined);
  await removeShared(path);
}
