/**
 * Lists the objects of a bucket, page by page. Buckets are of any size and servers may be wrong, so everything that is
 * collected here is bounded.
 */
import type { IncomingMessage } from 'node:http';
import { MAX_BODY_BYTES } from '../../wire/codec.js';
import type { ObjectInfo } from '../driver.js';
import { ServiceError } from '../service-error.js';
import type { Bucket } from './objstore-bucket.js';
import { listQuery, readListPage } from './objstore-list.js';

/** A page of 1000 objects with the longest keys has less than half of it. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
/** For a list that has no other deadline. */
const LIST_LIMIT_MS = 60_000;
/** What an object takes in an answer beside its key. */
const OBJECT_BYTES = 100;

/**
 * The first `limit` objects, in the order of their keys.
 * @param signal breaks off
 * @throws ServiceError
 */
export async function* objectPages(
  bucket: Bucket,
  prefix: string,
  limit: number,
  signal?: AbortSignal,
): AsyncGenerator<readonly ObjectInfo[], undefined> {
  const tokens = new Set<string>();
  for (let left = limit, token: string | undefined; left > 0; ) {
    const query = listQuery(prefix, left, token);
    const xml = await readPage(bucket, await bucket.send({ method: 'GET', query }, signal));
    if (!xml.includes('<ListBucketResult')) {
      throw new ServiceError('unavailable', `${bucket.where} answers, but not as an S3 server does`);
    }
    const { objects, next } = readListPage(xml);
    yield objects.slice(0, left);
    left -= objects.length;
    if (next === undefined) return;
    if (tokens.has(next)) {
      throw new ServiceError(
        'backend',
        `the list of ${bucket.where} has no end: it comes to the same page again`,
      );
    }
    tokens.add(next);
    token = next;
  }
}

/**
 * All objects with a prefix, if they fit into one answer.
 * @throws ServiceError
 */
export async function allObjects(bucket: Bucket, prefix: string): Promise<ObjectInfo[]> {
  const signal = AbortSignal.timeout(LIST_LIMIT_MS);
  const all: ObjectInfo[] = [];
  let bytes = 0;
  try {
    for await (const objects of objectPages(bucket, prefix, Number.POSITIVE_INFINITY, signal)) {
      for (const object of objects) {
        bytes += Buffer.byteLength(object.key) + OBJECT_BYTES;
        all.push(object);
      }
      if (bytes > MAX_BODY_BYTES) {
        const reason = `more than ${all.length} objects have this prefix, too many for one answer: ask for a longer prefix`;
        throw new ServiceError('invalid', reason);
      }
    }
  } catch (cause) {
    if (!signal.aborted) throw cause;
    const reason = `${bucket.where} did not list its objects within ${LIST_LIMIT_MS / 1000} s`;
    throw new ServiceError('deadline', reason, { cause });
  }
  return all;
}

async function readPage(bucket: Bucket, response: IncomingMessage): Promise<string> {
  return bucket.use(async () => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    // Leaving the loop closes the connection.
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_PAGE_BYTES) {
        const reason = `${bucket.where} sends more than ${MAX_PAGE_BYTES / 1024 ** 2} MiB as one page of a list`;
        throw new ServiceError('backend', reason);
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  });
}
