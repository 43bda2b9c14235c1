/** The driver for S3-compatible object storages. */
import type { IncomingMessage } from 'node:http';
import { objectKeyProblem } from '../../../model/object-key.js';
import { MAX_BODY_BYTES } from '../../../wire/codec.js';
import { type Connection, defineDriver, type ObjectInfo, openOrClose } from '../../driver.js';
import { signalOf } from '../../driver-call.js';
import { type DriverAnswer, requireSendable } from '../../operations.js';
import { Type } from '../../schema.js';
import { ServiceError } from '../../service-error.js';
import { Bucket, isMissing } from './bucket.js';
import {
  bucketFiles,
  deleteObject,
  describeObject,
  headObject,
  putObject,
  readRange,
  type TypedObject,
} from './files.js';
import { objectPages } from './listing.js';
import { abortUpload, beginUpload, completeUpload, MAX_PARTS, uploadPart } from './uploads.js';

/** Concurrent calls, each with a connection. */
const CONCURRENCY = 16;

const key = Type.String({ refine: objectKeyProblem });
const KeyArgs = Type.Object({ key });
const contentType = Type.String({
  format: 'line',
  maxLength: 255,
  pattern: '^[ -~]*$',
  default: 'application/octet-stream',
});
const uploadId = Type.String({ minLength: 1, maxLength: 2048, pattern: '^[!-~]*$' });
const etag = Type.String({ minLength: 1, maxLength: 255, pattern: '^[!-~]*$' });
const byte = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const objstoreDriver = defineDriver({
  type: 'objstore',
  concurrency: () => CONCURRENCY,
  connect: async (config, context) => {
    // An aborted request releases its connection slightly later than its permit.
    const bucket = new Bucket(config, 2 * CONCURRENCY);
    await openOrClose(context, bucket, () => requireUsable(bucket));
    return new BucketConnection(bucket, Math.min(context.answerBytes, MAX_BODY_BYTES));
  },
  operations: {
    get: { args: KeyArgs, run: (connection, { key }, call) => get(connection, key, signalOf(call)) },
    head: {
      args: KeyArgs,
      run: async ({ bucket }, { key }, call) => {
        const object = await headObject(bucket, key, signalOf(call));
        return { result: object ? present(object) : { found: false } };
      },
    },
    put: {
      args: Type.Object({ key, content_type: contentType }),
      run: async ({ bucket }, { key, content_type }, call) => {
        const { etag } = await putObject(bucket, key, call.payload, content_type, signalOf(call));
        return { result: { etag, size: call.payload.length } };
      },
    },
    get_range: {
      args: Type.Object({ key, start: byte, end: byte, etag }),
      run: async (connection, { key, start, end, etag }, call) => {
        requireRange(connection, start, end);
        return { payload: await readRange(connection.bucket, key, { start, end }, etag, signalOf(call)) };
      },
    },
    begin_upload: {
      args: Type.Object({ key, content_type: contentType }),
      run: async ({ bucket }, { key, content_type }, call) => {
        const { uploadId } = await beginUpload(bucket, key, content_type, signalOf(call));
        return { result: { upload_id: uploadId } };
      },
    },
    upload_part: {
      args: Type.Object({
        key,
        upload_id: uploadId,
        number: Type.Integer({ minimum: 1, maximum: MAX_PARTS }),
      }),
      run: async ({ bucket }, { key, upload_id, number }, call) => ({
        result: await uploadPart(bucket, { key, uploadId: upload_id }, number, call.payload, signalOf(call)),
      }),
    },
    complete_upload: {
      args: Type.Object({
        key,
        upload_id: uploadId,
        etags: Type.Array(etag, { maxItems: MAX_PARTS }),
      }),
      run: async ({ bucket }, { key, upload_id, etags }, call) => ({
        result: await completeUpload(bucket, { key, uploadId: upload_id }, etags, signalOf(call)),
      }),
    },
    abort_upload: {
      args: Type.Object({ key, upload_id: uploadId }),
      run: async ({ bucket }, { key, upload_id }, call) => ({
        result: { aborted: await abortUpload(bucket, { key, uploadId: upload_id }, signalOf(call)) },
      }),
    },
    delete: {
      args: KeyArgs,
      run: async ({ bucket }, { key }, call) => ({
        result: { deleted: await deleteObject(bucket, key, signalOf(call)) },
      }),
    },
    list: {
      args: Type.Object({
        prefix: Type.String({ maxLength: 1024, default: '' }),
        limit: Type.Optional(Type.Integer({ minimum: 1 })),
      }),
      run: ({ bucket }, { prefix, limit }, call) => list(bucket, prefix, limit, signalOf(call)),
    },
  },
});

class BucketConnection implements Connection {
  readonly files;

  constructor(
    readonly bucket: Bucket,
    /** Most bytes that a handler gets of an object. */
    readonly limitBytes: number,
  ) {
    this.files = bucketFiles(bucket);
  }

  async test(): Promise<string> {
    await requireUsable(this.bucket);
    return `bucket "${this.bucket.name}" at ${this.bucket.where}`;
  }

  async close(): Promise<void> {
    this.bucket.close();
  }
}

/** Lists objects, because the response to HeadBucket has no body and so no reason. */
async function requireUsable(bucket: Bucket): Promise<void> {
  try {
    await objectPages(bucket, '', 1).next();
  } catch (thrown) {
    throw bucket.connectFailure(thrown);
  }
}

async function get(
  { bucket, limitBytes }: BucketConnection,
  key: string,
  signal: AbortSignal,
): Promise<DriverAnswer> {
  let response: IncomingMessage;
  try {
    response = await bucket.send({ method: 'GET', key }, signal);
  } catch (thrown) {
    if (isMissing(thrown)) return { result: { found: false } };
    throw thrown;
  }
  const object = describeObject(key, response.headers);
  return { result: present(object), payload: await readContent(bucket, response, object.size, limitBytes) };
}

/** @throws ServiceError `invalid` when it is no range, or a larger one than a handler can get */
function requireRange({ limitBytes }: BucketConnection, start: number, end: number): void {
  const bytes = end - start + 1;
  if (bytes >= 1 && bytes <= limitBytes) return;
  const reason = `from ${start} to ${end} are ${bytes} bytes, and must be 1 to ${limitBytes} (SERVICE_ANSWER_MB)`;
  throw new ServiceError('invalid', reason);
}

async function readContent(
  bucket: Bucket,
  response: IncomingMessage,
  size: number,
  limitBytes: number,
): Promise<Buffer> {
  const requireShort = (bytes: number) => {
    if (bytes <= limitBytes) return;
    const limit = `handlers get at most ${limitBytes} (SERVICE_ANSWER_MB, and at most 64 MiB)`;
    const reason = `the object has at least ${bytes} bytes, and ${limit}: use head or list, or the management API`;
    response.destroy();
    throw new ServiceError('invalid', reason);
  };
  requireShort(size);
  return bucket.use(async () => {
    const chunks: Buffer[] = [];
    let received = 0;
    // Without a length, a body ends where the server says.
    for await (const chunk of response as AsyncIterable<Buffer>) {
      received += chunk.length;
      requireShort(received);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  });
}

async function list(
  bucket: Bucket,
  prefix: string,
  limit = Number.POSITIVE_INFINITY,
  signal?: AbortSignal,
): Promise<DriverAnswer> {
  const pages: string[] = [];
  let bytes = 2;
  for await (const objects of objectPages(bucket, prefix, limit, signal)) {
    if (objects.length === 0) continue;
    const page = objects.map((object) => JSON.stringify(presentListed(object))).join(',');
    bytes += Buffer.byteLength(page) + 1;
    requireSendable(bytes);
    pages.push(page);
  }
  return { payload: `[${pages.join(',')}]` };
}

function present({ size, contentType, etag, last_modified }: TypedObject) {
  return { found: true, size, content_type: contentType, etag, last_modified };
}

function presentListed({ key, size, last_modified, etag }: ObjectInfo) {
  return { key, size, last_modified, etag };
}
