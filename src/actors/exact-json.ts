/**
 * Writes JSON for services: 64 bit integers are exact (as `bigint`), and values that are JSON text already are copied
 * unchanged.
 */

/** JSON text that is copied unchanged. The caller guarantees that it is valid. */
export class RawJson {
  constructor(readonly text: string) {}
}

/**
 * Writes a value. In addition to `JSON.stringify`: `bigint` as an integer, `RawJson` as its text, `Uint8Array` as
 * base64. Doubles that JSON cannot represent become strings: `"NaN"`, `"Infinity"`, `"-Infinity"`.
 */
export function encodeJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
      return Number.isFinite(value) ? String(value) : `"${value}"`;
    case 'bigint':
      return String(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      return value === null ? 'null' : encodeObject(value);
    default:
      return 'null';
  }
}

function encodeObject(value: object): string {
  if (value instanceof RawJson) return value.text;
  if (value instanceof Date) return JSON.stringify(value);
  if (value instanceof Uint8Array) {
    return `"${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')}"`;
  }
  if (Array.isArray(value)) {
    let text = '[';
    for (let i = 0; i < value.length; i++)
      text += i === 0 ? encodeJson(value[i]) : `,${encodeJson(value[i])}`;
    return `${text}]`;
  }
  let text = '{';
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    text += `${text.length > 1 ? ',' : ''}${JSON.stringify(name)}:${encodeJson(member)}`;
  }
  return `${text}}`;
}
