/** Where bodies of requests wait on disk while they are dealt with: a folder for each process, below `DATA_DIR`. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isAlive } from './process-liveness.js';

/** Makes the folder of this process and returns its path. */
export async function uploadsFolder(dataDir: string): Promise<string> {
  const folder = join(dataDir, 'uploads', `${hostname()}.${process.pid}`);
  await mkdir(folder, { recursive: true });
  return folder;
}

/** Removes what uploads of processes that are gone have left. */
export async function removeLeftUploads(dataDir: string): Promise<void> {
  const folder = join(dataDir, 'uploads');
  for (const name of await readdir(folder).catch(() => [])) {
    const [, host, pid] = /^(.+)\.(\d+)$/.exec(name) ?? [];
    const isOurs = host === hostname() && (Number(pid) === process.pid || !isAlive(Number(pid)));
    if (isOurs) await rm(join(folder, name), { recursive: true, force: true });
  }
}
