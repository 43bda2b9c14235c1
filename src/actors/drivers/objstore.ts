/** The driver for S3-compatible object storages. */
import type { IncomingMessage } from 'node:http';
import { type Static, type TObject, Type } from '@sinclair/typebox';
import { objectKeyProblem } from '../../object-key.js';
import { checkOf, describeProblem } from '../../validation/check.js';
import { MAX_BODY_BYTES } from '../../wire/codec.js';
import { requireSendable } from '../answer-size.js';
import type { Connection, Driver, DriverAnswer, DriverCall, ObjectInfo } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { Bucket, isMissing } from './objstore-bucket.js';
import {
  bucketFiles,
  deleteObject,
  describeObject,
  headObject,
  putObject,
  type StoredObject,
} from './objstore-files.js';
import { objectPages } from './objstore-pages.js';

/** Calls under way at once, each with a connection. */
const CONCURRENCY = 16;

const Key = Type.String();
const KeyArgs = Type.Object({ key: Key });
const PutArgs = Type.Object({
  key: Key,
  content_type: Type.Optional(Type.String({ format: 'line', maxLength: 255, pattern: '^[ -~]*$' })),
});
const ListArgs = Type.Object({
  prefix: Type.Optional(Type.String({ maxLength: 1024 })),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
});

const readKeyArgs = argsReader(KeyArgs);
const readPutArgs = argsReader(PutArgs);
const readListArgs = argsReader(ListArgs);

type Operation = (bucket: Bucket, call: DriverCall) => Promise<DriverAnswer>;

const OPERATIONS: Readonly<Record<string, Operation>> = { get, head, put, delete: remove, list };

export const objstoreDriver: Driver<'objstore'> = {
  type: 'objstore',
  operations: Object.keys(OPERATIONS),
  concurrency: () => CONCURRENCY,
  async connect(config, { signal }) {
    // A request that was broken off leaves its connection a moment later than its place in the queue.
    const bucket = new Bucket(config, 2 * CONCURRENCY);
    try {
      await requireUsable(bucket, signal);
      return new BucketConnection(bucket);
    } catch (thrown) {
      bucket.close();
      throw thrown;
    }
  },
};

class BucketConnection implements Connection {
  readonly files;
  readonly #bucket: Bucket;

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
    this.files = bucketFiles(bucket);
  }

  async test(): Promise<string> {
    await requireUsable(this.#bucket);
    return `bucket "${this.#bucket.name}" at ${this.#bucket.where}`;
  }

  async call(call: DriverCall): Promise<DriverAnswer> {
    const operation = OPERATIONS[call.operation];
    if (!operation) throw new ServiceError('invalid', `there is no operation "${call.operation}"`);
    return operation(this.#bucket, call);
  }

  async close(): Promise<void> {
    this.#bucket.close();
  }
}

/** Listing tells more than asking whether the bucket exists, whose answer has no body and so no reason. */
async function requireUsable(bucket: Bucket, signal?: AbortSignal): Promise<void> {
  try {
    await objectPages(bucket, '', 1, signal).next();
  } catch (thrown) {
    throw bucket.connectFailure(thrown);
  }
}

async function get(bucket: Bucket, { args, signal }: DriverCall): Promise<DriverAnswer> {
  const { key } = readKeyArgs(args);
  requireKey(key);
  let response: IncomingMessage;
  try {
    response = await bucket.send({ method: 'GET', key }, signal);
  } catch (thrown) {
    if (isMissing(thrown)) return { result: { found: false } };
    throw thrown;
  }
  const object = describeObject(key, response.headers);
  return { result: present(object), payload: await readContent(bucket, response, object.size) };
}

async function readContent(bucket: Bucket, response: IncomingMessage, size: number): Promise<Buffer> {
  if (size > MAX_BODY_BYTES) {
    response.destroy();
    throw new ServiceError(
      'invalid',
      `the object has ${size} bytes, and handlers get at most ${MAX_BODY_BYTES}: use head or list, or the management API`,
    );
  }
  return bucket.use(async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks);
  });
}

async function head(bucket: Bucket, { args, signal }: DriverCall): Promise<DriverAnswer> {
  const { key } = readKeyArgs(args);
  requireKey(key);
  const object = await headObject(bucket, key, signal);
  return { result: object ? present(object) : { found: false } };
}

async function put(bucket: Bucket, { args, payload, signal }: DriverCall): Promise<DriverAnswer> {
  const { key, content_type = 'application/octet-stream' } = readPutArgs(args);
  requireKey(key);
  const { etag } = await putObject(bucket, key, payload, content_type, signal);
  return { result: { etag, size: payload.length } };
}

async function remove(bucket: Bucket, { args, signal }: DriverCall): Promise<DriverAnswer> {
  const { key } = readKeyArgs(args);
  requireKey(key);
  return { result: { deleted: await deleteObject(bucket, key, signal) } };
}

async function list(bucket: Bucket, { args, signal }: DriverCall): Promise<DriverAnswer> {
  const { prefix = '', limit = Number.POSITIVE_INFINITY } = readListArgs(args);
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

function present({ size, contentType, etag, last_modified }: StoredObject) {
  return { found: true, size, content_type: contentType, etag, last_modified };
}

function presentListed({ key, size, last_modified, etag }: ObjectInfo) {
  return { key, size, last_modified, etag };
}

/** @throws ServiceError `invalid` */
function requireKey(key: string): void {
  const problem = objectKeyProblem(key);
  if (problem !== undefined) throw new ServiceError('invalid', `args.key: ${problem}`);
}

function argsReader<T extends TObject>(schema: T): (args: unknown) => Static<T> {
  const check = checkOf(schema);
  return (args) => {
    const value = args ?? {};
    const problem = check(value);
    if (problem) throw new ServiceError('invalid', describeProblem('args', problem));
    return value as Static<T>;
  };
}
