/** The headers of a request that a handler gets. */
import { isUtf8 } from 'node:buffer';
import type { ReceivedHead } from '../http/received-head.js';
import { isAscii } from '../util/text.js';
import type { RequestHead } from '../wire/messages.js';

/** @param rawHeaders names and values in turn */
export function headersForHandler(
  rawHeaders: readonly string[],
  { isAbsolute, authority }: ReceivedHead,
): readonly string[] {
  if (!isAbsolute) return rawHeaders;
  // RFC 9112, section 3.2.2: the host of the target replaces the one of the header.
  return rawHeaders.map((text, at) =>
    at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host' ? authority : text,
  );
}

/**
 * Node reads each byte of a header as a character. Handlers get text: values that are valid UTF-8 as such, others as
 * Latin-1, the historical default of HTTP.
 * @param json the head as JSON: whether it is ASCII is one check for all headers
 */
export function withUtf8Headers(json: string, head: RequestHead): string {
  if (isAscii(json)) return json;
  return JSON.stringify({ ...head, headers: head.headers.map(decode) });
}

function decode(text: string): string {
  if (isAscii(text)) return text;
  const bytes = Buffer.from(text, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : text;
}
