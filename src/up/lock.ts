/** One `npm run up` per DATA_DIR at a time. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../util/errno.js';
import { startOf } from '../util/process-liveness.js';

/**
 * Locks the folder for this process.
 * @returns a function that releases it
 * @throws Error when another process holds the lock
 */
export async function lockDataDir(dataDir: string): Promise<() => Promise<void>> {
  const file = join(dataDir, 'up.pid');
  for (;;) {
    try {
      await writeFile(file, `${process.pid} ${startOf(process.pid)}`, { flag: 'wx' });
      return () => rm(file, { force: true });
    } catch (error) {
      if (!isErrno(error, 'EEXIST')) throw error;
    }
    const [pid = '', start] = (await readFile(file, 'utf8').catch(() => '')).split(' ');
    if (start !== undefined && startOf(pid) === start) {
      throw new Error(
        `It already runs in ${dataDir} (process ${pid}). Stop that one, or set DATA_DIR, PORT and GATEWAY_PORT for another instance.`,
      );
    }
    // Left by a process that was killed.
    await rm(file, { force: true });
  }
}
