/** Range and conditional requests for objects (RFC 9110, sections 13 and 14). */
import type { IncomingHttpHeaders } from 'node:http';
import type { ObjectInfo } from './driver.js';

/** A response without its content. */
export interface AnswerPlan {
  readonly status: 200 | 206 | 304 | 416;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes to send, inclusive; undefined when there are none. */
  readonly bytes: { readonly start: number; readonly end: number } | undefined;
}

export function planAnswer(object: ObjectInfo, request: IncomingHttpHeaders): AnswerPlan {
  const etag = `"${object.etag}"`;
  const headers = {
    etag,
    'last-modified': object.last_modified.toUTCString(),
    'accept-ranges': 'bytes',
  };
  if (matches(request['if-none-match'], etag)) return { status: 304, headers, bytes: undefined };

  const { size } = object;
  const range = isCurrent(request['if-range'], etag, headers['last-modified'])
    ? rangeOf(request.range, size)
    : undefined;
  if (range === 'unsatisfiable') {
    const refused = { ...headers, 'content-range': `bytes */${size}`, 'content-length': '0' };
    return { status: 416, headers: refused, bytes: undefined };
  }
  if (!range) {
    const all = { ...headers, 'content-length': String(size) };
    return { status: 200, headers: all, bytes: size === 0 ? undefined : { start: 0, end: size - 1 } };
  }
  const { start, end } = range;
  return {
    status: 206,
    headers: {
      ...headers,
      'content-range': `bytes ${start}-${end}/${size}`,
      'content-length': String(end - start + 1),
    },
    bytes: range,
  };
}

/** Weak comparison, because caches and compressing proxies turn strong tags into weak ones. */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/** Whether `If-Range` allows a partial response. */
function isCurrent(ifRange: string | string[] | undefined, etag: string, lastModified: string): boolean {
  return ifRange === undefined || ifRange === etag || ifRange === lastModified;
}

/** Parses a single range; an invalid header or several ranges are ignored, as the RFC permits. */
function rangeOf(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=\s*(\d*)\s*-\s*(\d*)\s*$/.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const count = Math.min(Number(last), size);
    return count === 0 ? 'unsatisfiable' : { start: size - count, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return undefined;
  return start >= size ? 'unsatisfiable' : { start, end };
}
