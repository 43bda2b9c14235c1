/** Folders for request bodies that are spooled to disk: one per process, below `DATA_DIR`. */
import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isRunning, PROCESS_PATTERN, THIS_PROCESS } from './process-liveness.js';

/**
 * Folders of other hosts, whose processes are not visible here, are removed when unused for this long. Containers that
 * share a volume get a new host name on each start.
 */
const FOREIGN_UNUSED_MS = 24 * 3600 * 1000;

const NAME = new RegExp(`^(.+)\\.(${PROCESS_PATTERN})$`);

/** Creates the folder of this process and returns its path. */
export async function uploadsFolder(dataDir: string): Promise<string> {
  const folder = join(dataDir, 'uploads', `${hostname()}.${THIS_PROCESS}`);
  await mkdir(folder, { recursive: true });
  // Marks the folder as used even while it is empty.
  const now = new Date();
  await utimes(folder, now, now);
  return folder;
}

/** Removes the folders of processes that have ended. */
export async function removeStaleUploads(dataDir: string): Promise<void> {
  const folder = join(dataDir, 'uploads');
  for (const name of await readdir(folder).catch(() => [])) {
    const [, host, owner] = NAME.exec(name) ?? [];
    if (host === undefined || owner === undefined) continue;
    const isStale = host === hostname() ? !isRunning(owner) : await isOld(join(folder, name));
    if (isStale) await rm(join(folder, name), { recursive: true, force: true });
  }
}

async function isOld(folder: string): Promise<boolean> {
  // Another process may have removed it already.
  const facts = await stat(folder).catch(() => undefined);
  return facts !== undefined && facts.mtimeMs < Date.now() - FOREIGN_UNUSED_MS;
}
