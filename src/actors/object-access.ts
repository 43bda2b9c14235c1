/** The files of an object storage as its actor lends them: whoever uses them counts as a call under way. */
import { finished } from 'node:stream/promises';
import type { Actor } from './actor.js';
import type { ObjectFiles } from './driver.js';

/** How long a transfer may wait for its turn, milliseconds. */
const TURN_MS = 10_000;

/** The files of an active object storage. Every method rejects with a ServiceError when the storage is away. */
export function lendFiles(actor: Actor, bucket: string): ObjectFiles {
  return {
    bucket,
    list: (prefix) => actor.useFiles(TURN_MS, (files) => files.list(prefix)),
    head: (key) => actor.useFiles(TURN_MS, (files) => files.head(key)),
    delete: (key) => actor.useFiles(TURN_MS, (files) => files.delete(key)),
    write: (key, content, size, type) =>
      actor.useFiles(TURN_MS, (files) => files.write(key, content, size, type)),
    read: (key, range, etag) =>
      new Promise((resolve, reject) => {
        actor
          .useFiles(TURN_MS, async (files) => {
            const stream = await files.read(key, range, etag);
            resolve(stream);
            // However it ends, whoever reads it hears of it.
            await finished(stream).catch(() => undefined);
          })
          .catch(reject);
      }),
  };
}
