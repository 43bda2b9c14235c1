/** Properties of text. */

/** Whether text is ASCII only, and so identical in UTF-8 and Latin-1. */
export function isAscii(text: string): boolean {
  // On the hot path of requests: faster than a search for a character beyond ASCII.
  return Buffer.byteLength(text) === text.length;
}

/** Makes untrusted text storable in PostgreSQL: replaces NUL and lone surrogates. */
export function storable(text: string): string {
  return Buffer.from(text).toString().replaceAll('\0', '\ufffd');
}

/**
 * The same text, of which all who ask have one copy: as the key of an object, it is what engines keep once. Texts that
 * thousands share and every request compares then stay in the cache of the processor.
 */
export function interned(text: string): string {
  return Object.keys({ [text]: true })[0] ?? text;
}
