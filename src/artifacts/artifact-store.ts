/** The artifact store: compiled handlers by the sha256 of their bytes. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

/** sha256 of an executable, 64 hexadecimal digits. */
export type Digest = string;

/**
 * Where executables are kept. All operations may be repeated: the same bytes have the same name. A store of other machines
 * that cannot be reached is an AppError `artifact_store_unavailable`.
 */
export interface ArtifactStore {
  has(digest: Digest): Promise<boolean>;
  /** Stores the file under its digest. */
  put(digest: Digest, file: string): Promise<void>;
  /**
   * Copies an artifact to a new local file.
   * @throws when there is none, or the store cannot be reached.
   */
  fetch(digest: Digest, destination: string): Promise<void>;
  /** Deletes one; none is fine too. */
  remove(digest: Digest): Promise<void>;
}

const READ_BYTES = 256 * 1024;

/** The digest of a file. */
export async function digestFile(file: string): Promise<Digest> {
  const hash = createHash('sha256');
  // One buffer for the whole file: memory for each piece would be work for the collector.
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  const handle = await open(file);
  try {
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, READ_BYTES);
      if (bytesRead === 0) return hash.digest('hex');
      hash.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}
