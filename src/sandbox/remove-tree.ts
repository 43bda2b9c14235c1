/** Removes what programs of strangers have left, once they have ended. */
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** A program that has just been killed may write one more file, until it is really gone. */
const ATTEMPTS = 10;
const AGAIN_MS = 50;

/** Removes a file or folder, if it is there. Links in it are removed, never followed. */
export async function removeTree(path: string): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      await rm(path, { recursive: true, force: true });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') break;
      await delay(AGAIN_MS);
    }
  }
  // Deeper than a path can be long, or without permissions: these two see to that, and say what they cannot do.
  await run('chmod', ['-R', 'u+rwx', '--', path], { maxBuffer: MAX_OUTPUT_BYTES }).catch(() => undefined);
  await run('rm', ['-rf', '--one-file-system', '--', path], { maxBuffer: MAX_OUTPUT_BYTES });
}
