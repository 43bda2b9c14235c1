/** Properties of text. */

/** Whether text is ASCII only, and so identical in UTF-8 and Latin-1. */
export function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/** Makes untrusted text storable in PostgreSQL: replaces NUL and lone surrogates. */
export function storable(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\ufffd');
}
