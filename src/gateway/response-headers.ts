/** Which headers of a handler's answer go to the client. */
import { isAscii } from '../ascii.js';
import type { ResponseHead } from '../wire/messages.js';

/** About the connection, which is the gateway's; and the length, which it sets itself. */
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
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not get through
const CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/;

/** Heads repeat (the connection hands out the same object for the same text), so the check is remembered. */
const checked = new WeakMap<ResponseHead, readonly string[] | undefined>();

/** Names and values in turn; undefined when one of them cannot stand in an HTTP message. */
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

/** Node writes header values as Latin-1: text beyond ASCII is handed to it as its UTF-8 bytes, one character each. */
function asBytes(value: string): string {
  return isAscii(value) ? value : Buffer.from(value, 'utf8').toString('latin1');
}
