/** One `npm run up` per DATA_DIR at a time. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive } from '../process-liveness.js';

/**
 * Takes the folder for this process.
 * @returns a function that gives it back
 * @throws Error when another process has it
 */
export async function lockDataDir(dataDir: string): Promise<() => Promise<void>> {
  const file = join(dataDir, 'up.pid');
  for (;;) {
    try {
      await writeFile(file, String(process.pid), { flag: 'wx' });
      return () => rm(file, { force: true });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    const owner = Number(await readFile(file, 'utf8').catch(() => ''));
    if (owner > 0 && isAlive(owner)) {
      throw new Error(
        `It already runs in ${dataDir} (process ${owner}). Stop that one, or set DATA_DIR, PORT and GATEWAY_PORT for another instance.`,
      );
    }
    // Left behind by a process that was killed.
    await rm(file, { force: true });
  }
}
