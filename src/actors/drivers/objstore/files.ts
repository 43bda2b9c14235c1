/** The files of a bucket as streams, which are not buffered as a whole. */
import type { Readable } from 'node:stream';
import { toError } from '../../../errors.js';
import type { ObjectFiles, ObjectInfo } from '../../driver.js';
import { ServiceError } from '../../service-error.js';
import { type Bucket, type BucketRequest, isMissing, isReplaced } from './bucket.js';
import { collectParts } from './buffers.js';
import { allObjects, unquote } from './listing.js';
import { abortUpload, beginUpload, completeUpload, MAX_PARTS, uploadPart } from './uploads.js';

/** Larger files are sent in parts, one of which is in memory at a time. S3 requires at least 5 MiB. */
const PART_BYTES = 8 * 1024 * 1024;

/** An object with its content type. */
export interface TypedObject extends ObjectInfo {
  readonly contentType: string;
}

export function bucketFiles(bucket: Bucket): ObjectFiles {
  return {
    bucket: bucket.name,
    list: (prefix) => allObjects(bucket, prefix),
    head: (key) => headObject(bucket, key),
    read: (key, range, etag) => readObject(bucket, key, range, etag),
    write: (key, content, size, contentType) => writeObject(bucket, key, content, size, contentType),
    delete: (key) => deleteObject(bucket, key),
  };
}

/** @returns undefined when there is none */
export async function headObject(
  bucket: Bucket,
  key: string,
  signal?: AbortSignal,
): Promise<TypedObject | undefined> {
  try {
    return describeObject(key, await bucket.sendForHeaders({ method: 'HEAD', key }, signal));
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}

/** The description of an object from the headers of a response. */
export function describeObject(
  key: string,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): TypedObject {
  return {
    key,
    size: Number(headers['content-length'] ?? 0),
    contentType: String(headers['content-type'] ?? 'application/octet-stream'),
    etag: unquote(String(headers['etag'] ?? '')),
    last_modified: new Date(String(headers['last-modified'] ?? 0)),
  };
}

/** @returns whether the object existed, which S3 does not report */
export async function deleteObject(bucket: Bucket, key: string, signal?: AbortSignal): Promise<boolean> {
  if (!(await headObject(bucket, key, signal))) return false;
  await bucket.sendForHeaders({ method: 'DELETE', key }, signal);
  return true;
}

/** Stores bytes under a key. */
export async function putObject(
  bucket: Bucket,
  key: string,
  content: Buffer,
  contentType: string,
  signal?: AbortSignal,
): Promise<{ etag: string }> {
  const headers = { 'content-type': contentType };
  const { etag = '' } = await bucket.sendForHeaders(
    { method: 'PUT', key, headers, payload: content },
    signal,
  );
  return { etag: unquote(etag) };
}

async function readObject(bucket: Bucket, key: string, range?: ByteRange, etag?: string): Promise<Readable> {
  const { headers, content } = await unlessReplaced(key, () =>
    bucket.download(rangeRequest(key, range, etag)),
  );
  if (!range || Number(headers['content-length']) === range.end - range.start + 1) return content;
  content.destroy();
  throw shortened(key);
}

/**
 * A part of an object, which has to have this etag.
 * @throws ServiceError `backend` when the object has been replaced or deleted
 */
export async function readRange(
  bucket: Bucket,
  key: string,
  range: ByteRange,
  etag: string,
  signal: AbortSignal,
): Promise<Buffer> {
  const bytes = range.end - range.start + 1;
  const response = await unlessReplaced(key, () => bucket.send(rangeRequest(key, range, etag), signal));
  if (Number(response.headers['content-length']) !== bytes) {
    response.destroy();
    throw shortened(key);
  }
  // All of it is there, or the request fails.
  return bucket.use(() => filled(response, bytes));
}

/** Reads so many bytes into one buffer: pieces that wait until they are put together would take as much again. */
async function filled(content: AsyncIterable<Buffer>, bytes: number): Promise<Buffer> {
  const part = Buffer.allocUnsafeSlow(bytes);
  let length = 0;
  for await (const piece of content) {
    length += piece.copy(part, length);
    collectParts(piece.length);
  }
  collectParts(bytes);
  return part;
}

/** A range of bytes, from `start` to `end`, inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

function rangeRequest(key: string, range?: ByteRange, etag?: string): BucketRequest {
  return {
    method: 'GET',
    key,
    headers: {
      ...(range && { range: `bytes=${range.start}-${range.end}` }),
      ...(etag && { 'if-match': `"${etag}"` }),
    },
    expected: [range ? 206 : 200],
  };
}

async function unlessReplaced<T>(key: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (isMissing(thrown)) throw new ServiceError('backend', `there is no object "${key}" any more`);
    if (isReplaced(thrown)) {
      throw new ServiceError(
        'backend',
        `the object "${key}" was replaced meanwhile; ask again for the new one`,
      );
    }
    throw thrown;
  }
}

function shortened(key: string): ServiceError {
  return new ServiceError('backend', `the object "${key}" was replaced by a shorter one meanwhile`);
}

async function writeObject(
  bucket: Bucket,
  key: string,
  content: Readable,
  size: number,
  contentType: string,
): Promise<{ etag: string }> {
  const partBytes = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS));
  const parts = exactParts(content, size, partBytes);
  if (size <= partBytes) {
    const { value } = await parts.next();
    // Fails if the content is longer than announced.
    await parts.next();
    return putObject(bucket, key, value ?? Buffer.alloc(0), contentType);
  }
  const upload = await beginUpload(bucket, key, contentType);
  try {
    const etags: string[] = [];
    for await (const payload of parts) {
      const { etag } = await uploadPart(bucket, upload, etags.length + 1, payload);
      etags.push(etag);
    }
    return await completeUpload(bucket, upload, etags);
  } catch (thrown) {
    // Incomplete uploads expire on the server; the error of the upload is reported.
    await abortUpload(bucket, upload).catch(() => undefined);
    throw thrown;
  }
}

/**
 * Splits the content into parts of equal size, except for the last. All parts share one buffer: each is valid until the
 * next one is requested.
 * @throws ServiceError `invalid` when the content is not as long as announced
 */
async function* exactParts(
  content: Readable,
  size: number,
  partBytes: number,
): AsyncGenerator<Buffer, undefined> {
  const part = Buffer.allocUnsafeSlow(Math.min(size, partBytes));
  let filled = 0;
  let received = 0;
  // Not destroyed when this ends early, so that the sender receives the error response.
  const chunks: AsyncIterable<Buffer> = content.iterator({ destroyOnReturn: false });
  try {
    for await (const chunk of chunks) {
      received += chunk.length;
      if (received > size) throw new ServiceError('invalid', `the content is longer than ${size} bytes`);
      for (let copied = 0; copied < chunk.length; ) {
        const count = chunk.copy(part, filled, copied);
        copied += count;
        filled += count;
        if (filled === part.length) {
          filled = 0;
          yield part;
        }
      }
    }
  } catch (thrown) {
    if (thrown instanceof ServiceError) throw thrown;
    const reason = `the content ended after ${received} of ${size} bytes: ${toError(thrown).message}`;
    throw new ServiceError('invalid', reason, { cause: thrown });
  }
  if (received < size) {
    throw new ServiceError('invalid', `the content ended after ${received} of ${size} bytes`);
  }
  if (filled > 0) yield part.subarray(0, filled);
}
