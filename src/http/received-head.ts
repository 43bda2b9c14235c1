/**
 * The first check of every request, in one pass over its head: its target and framing must be unambiguous. Node's
 * parser rejects violations of the grammar; this rejects what two servers in a row could interpret differently (request
 * smuggling).
 */
import type { IncomingMessage } from 'node:http';
import { AppError } from '../errors.js';
import { isUsableRequestId } from './request-id.js';
import { requestPathProblem } from './request-path.js';

/** The part of a head that routing and framing need. */
export interface ReceivedHead {
  /** The target host: from an absolute target, else from the header; as received, with its port. */
  readonly authority: string;
  /** True for a target in absolute form, which overrides the header. */
  readonly isAbsolute: boolean;
  /** Path and query. */
  readonly target: string;
  /** 0 when the header is missing. */
  readonly contentLength: number;
  readonly hasBody: boolean;
  /** The client's `X-Request-Id`, if it is safe to pass on and log. */
  readonly requestId: string | undefined;
  /** Why the request is rejected. */
  readonly problem: AppError | undefined;
}

const MAX_HEADERS = 100;
const AUTHORITY = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d{0,5})?$/i;
const ABSOLUTE_TARGET = /^https?:\/\/([^/?#]*)(.*)$/i;

export function readHead({
  rawHeaders,
  url = '/',
  method,
  httpVersionMajor,
  httpVersionMinor,
}: IncomingMessage): ReceivedHead {
  let host = '';
  let hosts = 0;
  let contentLength = 0;
  let hasBody = false;
  let requestId: string | undefined;
  let problem: string | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const value = rawHeaders[at + 1] ?? '';
    if (name.includes('_')) problem = `The name of the header "${name}" has an underscore.`;
    // Comparing the length first avoids converting nearly all names.
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') {
          host = value;
          hosts++;
        }
        break;
      case 12:
        if (name.toLowerCase() === 'x-request-id' && isUsableRequestId(value)) requestId = value;
        break;
      case 14:
        if (name.toLowerCase() === 'content-length') {
          contentLength = Number(value);
          hasBody ||= contentLength > 0;
        }
        break;
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') {
          if (hasBody || value.toLowerCase() !== 'chunked' || httpVersionMinor === 0)
            problem = 'The only Transfer-Encoding is "chunked", once, from HTTP/1.1 on.';
          hasBody = true;
        }
        break;
      default:
    }
  }
  let authority = host;
  let target = url;
  const isAbsolute = !url.startsWith('/') && url !== '*';
  if (httpVersionMajor !== 1) problem = 'The only versions of HTTP served are 1.1 and 1.0.';
  else if (hosts > 1 || (hosts === 0 && httpVersionMinor > 0)) problem = 'A request needs one Host header.';
  else if (!AUTHORITY.test(host)) problem = 'The Host header is not a host.';
  else if (isAbsolute) {
    const [, named = '', rest = ''] = ABSOLUTE_TARGET.exec(url) ?? [];
    if (named === '' || !AUTHORITY.test(named)) problem = 'The target of the request is not a path or a URL.';
    authority = named;
    target = rest.startsWith('/') ? rest : `/${rest}`;
  } else if (url === '*' && method !== 'OPTIONS') problem = 'The target "*" is for OPTIONS only.';
  problem ??= requestPathProblem(target);
  return {
    authority,
    isAbsolute,
    target,
    contentLength,
    hasBody,
    requestId,
    problem: problemOf(problem, rawHeaders.length / 2),
  };
}

/** The host of an authority, without its port, lower-case. */
export function hostName(authority: string): string {
  // An IPv6 address contains colons, and is in brackets.
  const end = authority.startsWith('[') ? authority.indexOf(']') + 1 : authority.indexOf(':');
  const host = (end > 0 ? authority.slice(0, end) : authority).toLowerCase();
  return host.endsWith('.') ? host.slice(0, -1) : host;
}

function problemOf(text: string | undefined, headers: number): AppError | undefined {
  if (headers > MAX_HEADERS)
    return new AppError('headers_too_large', `The request has more than ${MAX_HEADERS} headers.`);
  return text === undefined ? undefined : new AppError('malformed_request', text);
}
