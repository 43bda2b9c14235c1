/** The artifact store: compiled handlers by the sha256 of their bytes. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

/** sha256 of an executable, 64 hexadecimal digits. */
export type Digest = string;

/** Where executables are kept. Both operations may be repeated: the same bytes have the same name. */
export interface ArtifactStore {
  has(digest: Digest): Promise<boolean>;
  /** Stores the file under its digest. */
  put(digest: Digest, file: string): Promise<void>;
  /**
   * Copies an artifact to a new local file.
   * @throws when there is none, or the store cannot be reached.
   */
  fetch(digest: Digest, destination: string): Promise<void>;
}

/** The digest of a file. */
export async function digestFile(file: string): Promise<Digest> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { highWaterMark: 1024 * 1024 }), hash);
  return hash.digest('hex');
}
