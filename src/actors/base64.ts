/** Bytes that handlers send within JSON. */

/** Decodes base64 with padding; undefined when the text is none: bytes must not get lost on the way. */
export function decodeBase64(text: string): Buffer | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = Buffer.from(text, 'base64');
  // Node leaves out what is not base64, and the result is too short then.
  return bytes.length === (text.length / 4) * 3 - padding ? bytes : undefined;
}
