/** The headers of a handler's response that are forwarded to the client. */
import { isAscii } from '../util/text.js';
import type { ResponseHead } from '../wire/messages.js';

/** Hop-by-hop headers, and those that the gateway sets itself. */
const NOT_FORWARDED = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
]);

// RFC 9110, section 5.1 (token) and 5.5 (field values, without control characters).
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it matches control characters
const CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/;

/** The connection returns the same object for the same head, so the result is cached. */
const checked = new WeakMap<ResponseHead, readonly string[] | undefined>();

/** Names and values in turn; undefined when one of them is not allowed in HTTP. */
export function sendableHeaders(head: ResponseHead): readonly string[] | undefined {
  if (checked.has(head)) return checked.get(head);
  const headers = filter(head.headers);
  checked.set(head, headers);
  return headers;
}

function filter(headers: readonly string[]): readonly string[] | undefined {
  const sendable: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    const value = headers[at + 1] ?? '';
    if (!NAME.test(name) || CONTROL_CHARACTER.test(value)) return undefined;
    if (!NOT_FORWARDED.has(name.toLowerCase())) sendable.push(name, asBytes(value));
  }
  return sendable;
}

/** Node writes header values as Latin-1: text beyond ASCII is passed as its UTF-8 bytes, one character each. */
function asBytes(value: string): string {
  return isAscii(value) ? value : Buffer.from(value, 'utf8').toString('latin1');
}
