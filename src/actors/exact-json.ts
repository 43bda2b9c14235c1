/**
 * JSON as services need it: integers of 64 bits are written exactly (as `bigint`), and JSON that is text already is put
 * in as it is.
 */

/** JSON text, to be written as the value it stands for. Whoever makes one vouches that it is JSON. */
export class RawJson {
  constructor(readonly text: string) {}
}

/**
 * Writes a value. Beside what `JSON.stringify` takes: `bigint` as an integer, `RawJson` as its text, `Uint8Array` as
 * base64. A double that JSON has no number for becomes a text: `"NaN"`, `"Infinity"`, `"-Infinity"`.
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
