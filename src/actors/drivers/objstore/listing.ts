/**
 * Lists the objects of a bucket, page by page. All memory is bounded, because buckets may be large and servers faulty.
 * The client library is not used, because it parses a key such as `007` as a number.
 */
import type { IncomingMessage } from 'node:http';
import { MAX_BODY_BYTES } from '../../../wire/codec.js';
import type { ObjectInfo } from '../../driver.js';
import { ServiceError } from '../../service-error.js';
import type { Bucket } from './bucket.js';

/** More than twice the size of a page of 1000 objects with the longest keys. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
/** Timeout of a list without another deadline. */
const LIST_LIMIT_MS = 60_000;
/** Size of an object in the answer without its key. */
const OBJECT_BYTES = 100;

/**
 * The first `limit` objects in key order.
 * @param signal aborts it
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
 * All objects with a prefix, which must fit into one answer.
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

/** One page of a list of objects. */
export interface ListPage {
  readonly objects: readonly ObjectInfo[];
  /** Continuation token; undefined on the last page. */
  readonly next: string | undefined;
}

/** The query of a page of at most `limit` objects (servers allow 1000), after `token` if given. */
export function listQuery(prefix: string, limit: number, token: string | undefined): string {
  const parameters: [string, string][] = [
    ...(token === undefined ? [] : [['continuation-token', token] as [string, string]]),
    // XML cannot represent all characters of keys.
    ['encoding-type', 'url'],
    ['list-type', '2'],
    ['max-keys', String(Math.min(limit, 1000))],
    ['prefix', prefix],
  ];
  return parameters.map(([name, value]) => `${name}=${escapeQuery(value)}`).join('&');
}

/** Parses the response to `listQuery`. The elements it uses contain only text and are not nested in themselves. */
export function readListPage(xml: string): ListPage {
  const isEncoded = textOf(xml, 'EncodingType') === 'url';
  const objects = contentsOf(xml).map((content) => {
    const key = textOf(content, 'Key') ?? '';
    return {
      key: isEncoded ? decodeURIComponent(key.replaceAll('+', ' ')) : key,
      size: Number(textOf(content, 'Size') ?? 0),
      last_modified: new Date(textOf(content, 'LastModified') ?? 0),
      etag: unquote(textOf(content, 'ETag') ?? ''),
    };
  });
  const isTruncated = textOf(xml, 'IsTruncated') === 'true';
  return { objects, next: isTruncated ? textOf(xml, 'NextContinuationToken') : undefined };
}

function contentsOf(xml: string): string[] {
  const contents: string[] = [];
  for (let end = 0; ; ) {
    const start = xml.indexOf('<Contents>', end);
    end = xml.indexOf('</Contents>', start);
    if (start === -1 || end === -1) return contents;
    contents.push(xml.slice(start, end));
  }
}

/** An entity tag without its quotes. */
export function unquote(etag: string): string {
  return etag.replace(/^"|"$/g, '');
}

/** Escapes everything but letters, digits and `-_.~`, as request signatures require. */
export function escapeQuery(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function textOf(xml: string, element: string): string | undefined {
  const match = new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml);
  return match ? decodeEntities(match[1] ?? '') : undefined;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Decodes the entities in XML text. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#([0-9]+)|([a-z]+));/gi, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return ENTITIES[name] ?? whole;
  });
}
