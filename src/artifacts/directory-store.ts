/** Artifacts in a folder: one machine, or a shared file system. */
import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno } from '../util/errno.js';
import { syncFile } from '../util/sync-file.js';
import { type ArtifactStore, checkedDigest, type Digest } from './artifact-store.js';

export class DirectoryStore implements ArtifactStore {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async has(digest: Digest): Promise<boolean> {
    try {
      // An empty file can be what a power failure has left of an earlier version.
      return (await stat(this.#path(digest))).size > 0;
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return false;
      throw error;
    }
  }

  async put(digest: Digest, file: string): Promise<void> {
    const path = this.#path(digest);
    await mkdir(dirname(path), { recursive: true });
    // Written to a temporary file and renamed: readers never see a partial artifact.
    const temporary = `${path}.${randomUUID()}`;
    try {
      await copyFile(file, temporary);
      await syncFile(temporary);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  async fetch(digest: Digest, destination: string): Promise<void> {
    await copyFile(this.#path(digest), destination);
  }

  async remove(digest: Digest): Promise<void> {
    await rm(this.#path(digest), { force: true });
  }

  #path(digest: Digest): string {
    return join(this.#root, checkedDigest(digest).slice(0, 2), digest);
  }
}
