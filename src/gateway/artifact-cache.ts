/** The artifacts this machine has: fetched from the store once, verified, and ready to be executed. */
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArtifactStore, type Digest, digestFile } from '../artifacts/artifact-store.js';
import { isNoRoom, NoRoomError } from '../no-room.js';

/** An unused executable is kept at least this long. */
const MIN_AGE_MS = 3_600_000;

/** A folder of executables, named by their digests. */
export class ArtifactCache {
  readonly #fetching = new Map<Digest, Promise<string>>();

  constructor(
    private readonly folder: string,
    private readonly store: ArtifactStore,
  ) {}

  /**
   * The path of an executable on this machine.
   * @throws when it cannot be fetched, or is not what its digest says
   */
  get(digest: Digest): Promise<string> {
    let fetching = this.#fetching.get(digest);
    if (!fetching) {
      fetching = this.#fetch(digest).finally(() => this.#fetching.delete(digest));
      this.#fetching.set(digest, fetching);
    }
    return fetching;
  }

  /** Deletes all executables but these, and what another gateway of this machine may just be about to use. */
  async keepOnly(digests: readonly Digest[]): Promise<void> {
    const keep = new Set(digests);
    await mkdir(this.folder, { recursive: true });
    for (const name of await readdir(this.folder)) {
      const path = join(this.folder, name);
      if (keep.has(name) || (await ageMs(path)) < MIN_AGE_MS) continue;
      await rm(path, { force: true });
    }
  }

  async #fetch(digest: Digest): Promise<string> {
    const path = join(this.folder, digest);
    if (await isUsed(path)) return path;
    await mkdir(this.folder, { recursive: true });
    const aside = join(this.folder, `${digest}.${randomUUID()}`);
    try {
      await this.store.fetch(digest, aside);
      const actual = await digestFile(aside);
      if (actual !== digest) throw new Error(`Artifact ${digest} is damaged: the store returned ${actual}`);
      await chmod(aside, 0o555);
      await rename(aside, path);
    } catch (cause) {
      if (!isNoRoom(cause)) throw cause;
      throw new NoRoomError(
        'There is no room left on the disk of the gateway (DATA_DIR) for the executable; make room, and start again.',
        { cause },
      );
    } finally {
      await rm(aside, { force: true });
    }
    return path;
  }
}

async function ageMs(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found ? Date.now() - found.mtimeMs : 0;
}

/** Whether it is there; if so, it counts as new again, so that it is not deleted while it is being started. */
function isUsed(path: string): Promise<boolean> {
  const now = new Date();
  return utimes(path, now, now).then(
    () => true,
    () => false,
  );
}
