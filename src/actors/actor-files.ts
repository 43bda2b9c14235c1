/** Access to the files of an object storage through its actor: each transfer counts as a call in progress. */
import { finished } from 'node:stream/promises';
import type { Actor } from './actor.js';
import type { ObjectFiles } from './driver.js';

/** How long a transfer may wait for a free connection, milliseconds. */
const QUEUE_TIMEOUT_MS = 10_000;

/** The files of an active object storage. Every method rejects with a ServiceError when the storage is unavailable. */
export function actorFiles(actor: Actor, bucket: string): ObjectFiles {
  return {
    bucket,
    list: (prefix) => actor.useFiles(QUEUE_TIMEOUT_MS, (files) => files.list(prefix)),
    head: (key) => actor.useFiles(QUEUE_TIMEOUT_MS, (files) => files.head(key)),
    delete: (key) => actor.useFiles(QUEUE_TIMEOUT_MS, (files) => files.delete(key)),
    write: (key, content, size, type) =>
      actor.useFiles(QUEUE_TIMEOUT_MS, (files) => files.write(key, content, size, type)),
    read: (key, range, etag) =>
      new Promise((resolve, reject) => {
        actor
          .useFiles(QUEUE_TIMEOUT_MS, async (files) => {
            const stream = await files.read(key, range, etag);
            resolve(stream);
            // An error reaches the reader of the stream.
            await finished(stream).catch(() => undefined);
          })
          .catch(reject);
      }),
  };
}
