/** Where bodies of requests wait on disk while they are dealt with: a folder for each process, below `DATA_DIR`. */
import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isAlive } from './process-liveness.js';

/**
 * Folders of other hosts are left when nobody has put anything there for this long: their processes cannot be seen from
 * here. Containers that share a volume have names of their own each time.
 */
const FOREIGN_AFTER_MS = 24 * 3600 * 1000;

/** Makes the folder of this process and returns its path. */
export async function uploadsFolder(dataDir: string): Promise<string> {
  const folder = join(dataDir, 'uploads', `${hostname()}.${process.pid}`);
  await mkdir(folder, { recursive: true });
  // In use, also when nothing is in it for the moment.
  const now = new Date();
  await utimes(folder, now, now);
  return folder;
}

/** Removes what uploads of processes that are gone have left. */
export async function removeLeftUploads(dataDir: string): Promise<void> {
  const folder = join(dataDir, 'uploads');
  for (const name of await readdir(folder).catch(() => [])) {
    const [, host, pid] = /^(.+)\.(\d+)$/.exec(name) ?? [];
    if (host === undefined) continue;
    const isLeft =
      host === hostname()
        ? Number(pid) === process.pid || !isAlive(Number(pid))
        : await isOld(join(folder, name));
    if (isLeft) await rm(join(folder, name), { recursive: true, force: true });
  }
}

async function isOld(folder: string): Promise<boolean> {
  // Another process may just have removed it.
  const facts = await stat(folder).catch(() => undefined);
  return facts !== undefined && facts.mtimeMs < Date.now() - FOREIGN_AFTER_MS;
}
