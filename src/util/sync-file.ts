/** Files whose content has to survive a power failure. */
import { open } from 'node:fs/promises';

/**
 * Resolves when the content of a file is on the disk. To be called before it gets its final name: after a power failure
 * it could be there, and be empty.
 */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
