/** Temporary folders of tests. The creator removes them; remaining ones at the end of a suite are a failure. */
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TempDir {
  readonly path: string;
  remove(): Promise<void>;
}

const made = new Set<string>();

/**
 * Makes an empty folder that any user of the machine can enter: the database server runs as another one.
 * @param place the folder that it is in
 */
export async function tempDir(purpose: string, place = tmpdir()): Promise<TempDir> {
  const path = await mkdtemp(join(place, `edge-gateway-${purpose}-`));
  await chmod(path, 0o755);
  made.add(path);
  return {
    path,
    remove: async () => {
      await rm(path, { recursive: true, force: true });
      made.delete(path);
    },
  };
}

/** Folders that were made and still exist. */
export function leftTempDirs(): string[] {
  return [...made].filter((path) => existsSync(path));
}
