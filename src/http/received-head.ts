/**
 * The first check of every request, in one pass over its head: its target and framing must be unambiguous. Node's
 * parser rejects violations of the grammar; this rejects what two servers in a row could interpret differently (request
 * smuggling).
 */
import type { IncomingMessage } from 'node:http';
import { AppError } from '../errors.js';

/** The target and framing of a request. */
export interface ReceivedHead {
  /** The target host: from an absolute target, else from the header; as received, with its port. */
  readonly authority: string;
  /** True for a target in absolute form, which overrides the header. */
  readonly isAbsolute: boolean;
  /** Path and query. */
  readonly target: string;
  readonly hasBody: boolean;
  /** Why the request is rejected. */
  readonly problem: AppError | undefined;
}

const MAX_HEADERS = 100;
const AUTHORITY = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d{0,5})?$/i;
const ABSOLUTE_TARGET = /^https?:\/\/([^/?#]*)(.*)$/i;
/** Paths without any of these are valid. */
const SUSPICIOUS = /[%\\#]|\/\./;
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:$|[/\\])/;

export function readHead({
  rawHeaders,
  url = '/',
  method,
  httpVersionMajor,
  httpVersionMinor,
}: IncomingMessage): ReceivedHead {
  let host = '';
  let hosts = 0;
  let hasBody = false;
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
      case 14:
        if (name.toLowerCase() === 'content-length') hasBody ||= Number(value) > 0;
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
    hasBody,
    problem: problemOf(problem, rawHeaders.length / 2),
  };
}

function problemOf(text: string | undefined, headers: number): AppError | undefined {
  if (headers > MAX_HEADERS)
    return new AppError('headers_too_large', `The request has more than ${MAX_HEADERS} headers.`);
  return text === undefined ? undefined : new AppError('malformed_request', text);
}

/**
 * Rejects paths that two programs could resolve, truncate or decode differently. Encoded slashes are part of a segment,
 * and two slashes in a row are an empty segment; both are kept. In a query, what is no text is rejected: otherwise it
 * would become other text.
 * @param target path and query, as received
 * @returns what is wrong with it, if anything
 */
export function requestPathProblem(target: string): string | undefined {
  if (!SUSPICIOUS.test(target)) return undefined;
  if (target.includes('#')) return 'The target of the request has a fragment ("#").';
  const query = target.indexOf('?');
  const path = query === -1 ? target : target.slice(0, query);
  if (path.includes('\\')) return 'The path of the request has a backslash.';
  const decoded = decode(path);
  if (decoded === undefined) return 'The path of the request is not percent-encoded UTF-8.';
  if (decoded.includes('\0')) return 'The path of the request has a NUL character.';
  if (DOT_SEGMENT.test(decoded)) return 'The path of the request has "." or ".." between its slashes.';
  if (query !== -1 && decode(target.slice(query)) === undefined)
    return 'The query of the request is not percent-encoded UTF-8; a "%" is written %25.';
  return undefined;
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
