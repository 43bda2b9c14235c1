/** Properties of text. */
import { isUtf8 } from 'node:buffer';

/** Whether text is ASCII only, and so identical in UTF-8 and Latin-1. */
export function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/** Whether bytes are text, as JSON and diffs can have it: UTF-8 without NUL. */
export function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

/** Makes untrusted text storable in PostgreSQL: replaces NUL and lone surrogates. */
export function storable(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\ufffd');
}

/**
 * The text of bytes, without a byte order mark. Several times as fast as a `TextDecoder`.
 * @throws SyntaxError when they are not UTF-8
 */
export function utf8Text(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new SyntaxError('it is not UTF-8');
  return bytes.toString('utf8').replace(/^\ufeff/, '');
}
