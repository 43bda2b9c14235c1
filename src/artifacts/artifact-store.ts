/** The artifact store: compiled handlers by the sha256 of their bytes. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

/** sha256 of an executable, 64 hexadecimal digits. */
export type Digest = string;

const DIGEST = /^[0-9a-f]{64}$/;

/**
 * The digest, for the name of a file: who reads one from a database does not choose files of the machine by it.
 * @throws Error when it is none
 */
export function checkedDigest(digest: string): Digest {
  if (!DIGEST.test(digest)) throw new Error(`${JSON.stringify(digest)} is not the digest of an artifact`);
  return digest;
}

/**
 * Stores executables. All operations are idempotent: the same bytes have the same name. Operations reject with an
 * AppError `artifact_store_unavailable` when a remote store cannot be reached.
 */
export interface ArtifactStore {
  has(digest: Digest): Promise<boolean>;
  /** Stores the file under its digest. */
  put(digest: Digest, file: string): Promise<void>;
  /**
   * Copies an artifact to a new local file.
   * @throws when it does not exist, or the store cannot be reached.
   */
  fetch(digest: Digest, destination: string): Promise<void>;
  /** Deletes an artifact if it exists. */
  remove(digest: Digest): Promise<void>;
}

const READ_BYTES = 256 * 1024;

/** The digest of a file. */
export async function digestFile(file: string): Promise<Digest> {
  const hash = createHash('sha256');
  // One buffer for the whole file: one for each chunk would be garbage to collect.
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
