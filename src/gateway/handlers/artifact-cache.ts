/** The executables of this machine: fetched from the artifact store once, and verified. */
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ArtifactStore,
  checkedDigest,
  type Digest,
  digestFile,
} from '../../artifacts/artifact-store.js';
import { DiskFullError, isDiskFull } from '../../util/disk-full.js';
import { syncFile } from '../../util/sync-file.js';

/** Unused executables are kept at least this long. */
const MIN_AGE_MS = 3_600_000;

/** A folder of executables, named by their digests. */
export class ArtifactCache {
  readonly #folder: string;
  readonly #store: ArtifactStore;
  readonly #fetching = new Map<Digest, Promise<string>>();

  constructor(folder: string, store: ArtifactStore) {
    this.#folder = folder;
    this.#store = store;
  }

  /** The path of an executable, fetched if necessary. @throws when that fails, or its digest is another */
  get(digest: Digest): Promise<string> {
    let fetching = this.#fetching.get(digest);
    if (!fetching) {
      fetching = this.#fetch(digest).finally(() => this.#fetching.delete(digest));
      this.#fetching.set(digest, fetching);
    }
    return fetching;
  }

  /** Deletes all executables but these, and recent ones, which another gateway of this machine may be about to use. */
  async keepOnly(digests: readonly Digest[]): Promise<void> {
    const keep = new Set(digests);
    await mkdir(this.#folder, { recursive: true });
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (keep.has(name) || (await ageMs(path)) < MIN_AGE_MS) continue;
      await rm(path, { force: true });
    }
  }

  async #fetch(digest: Digest): Promise<string> {
    const path = join(this.#folder, checkedDigest(digest));
    if (await touch(path)) return path;
    await mkdir(this.#folder, { recursive: true });
    const partial = join(this.#folder, `${digest}.${randomUUID()}`);
    try {
      await this.#store.fetch(digest, partial);
      const actual = await digestFile(partial);
      if (actual !== digest) throw new Error(`Artifact ${digest} is damaged: the store returned ${actual}`);
      await chmod(partial, 0o555);
      await syncFile(partial);
      await rename(partial, path);
    } catch (cause) {
      if (!isDiskFull(cause)) throw cause;
      throw new DiskFullError(
        'The disk of the gateway (DATA_DIR) is full, and the executable does not fit; free some space, and start again.',
        { cause },
      );
    } finally {
      await rm(partial, { force: true });
    }
    return path;
  }
}

async function ageMs(path: string): Promise<number> {
  const stats = await stat(path).catch(() => undefined);
  return stats ? Date.now() - stats.mtimeMs : 0;
}

/** Whether a file exists; if so, its age starts at 0 again, so that it is not deleted while it is being started. */
function touch(path: string): Promise<boolean> {
  const now = new Date();
  return utimes(path, now, now).then(
    () => true,
    () => false,
  );
}
