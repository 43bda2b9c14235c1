/** Removes what programs of strangers have left, once they have ended. */
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Removes a file or folder, if it is there. Links in it are removed, never followed. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    // Deeper than a path can be long, or without permissions: these two see to that, and say what they cannot do.
    await run('chmod', ['-R', 'u+rwx', '--', path], { maxBuffer: MAX_OUTPUT_BYTES }).catch(() => undefined);
    await run('rm', ['-rf', '--one-file-system', '--', path], { maxBuffer: MAX_OUTPUT_BYTES });
  }
}

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
