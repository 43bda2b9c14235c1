/** Objects that are stored in parts. What is not completed is no object, and takes space until it is aborted. */
import { type Bucket, isGone } from './bucket.js';
import { collectParts } from './buffers.js';
import { escapeQuery, unquote } from './listing.js';

/** S3 takes no more parts of one object; all but the last have at least 5 MiB. */
export const MAX_PARTS = 10_000;

/** An upload that has begun. */
export interface Upload {
  readonly key: string;
  /** What the server calls the upload. */
  readonly uploadId: string;
}

export async function beginUpload(
  bucket: Bucket,
  key: string,
  contentType: string,
  signal?: AbortSignal,
): Promise<Upload> {
  const uploadId = await bucket.use(
    (client) => client.initiateNewMultipartUpload(bucket.name, key, { 'content-type': contentType }),
    { signal },
  );
  return { key, uploadId };
}

/** @param number the parts are put together in the order of their numbers, from 1 on */
export async function uploadPart(
  bucket: Bucket,
  { key, uploadId }: Upload,
  number: number,
  payload: Buffer,
  signal?: AbortSignal,
): Promise<{ etag: string }> {
  collectParts(payload.length);
  const query = `partNumber=${number}&uploadId=${escapeQuery(uploadId)}`;
  const { etag = '' } = await bucket.sendForHeaders({ method: 'PUT', key, query, payload }, signal);
  return { etag: unquote(etag) };
}

/** @param etags of all parts, in their order */
export async function completeUpload(
  bucket: Bucket,
  { key, uploadId }: Upload,
  etags: readonly string[],
  signal?: AbortSignal,
): Promise<{ etag: string }> {
  const parts = etags.map((etag, index) => ({ part: index + 1, etag }));
  const { etag } = await bucket.use(
    (client) => client.completeMultipartUpload(bucket.name, key, uploadId, parts),
    { signal },
  );
  return { etag: unquote(etag) };
}

/** @returns whether there was one */
export async function abortUpload(
  bucket: Bucket,
  { key, uploadId }: Upload,
  signal?: AbortSignal,
): Promise<boolean> {
  try {
    await bucket.use((client) => client.abortMultipartUpload(bucket.name, key, uploadId), { signal });
    return true;
  } catch (thrown) {
    if (isGone(thrown)) return false;
    throw thrown;
  }
}
