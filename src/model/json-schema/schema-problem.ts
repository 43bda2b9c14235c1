/** What is wrong with a schema, and where. */
export class SchemaProblem extends Error {
  override readonly name = 'SchemaProblem';

  /** @param place keys from the root */
  constructor(
    readonly place: readonly string[],
    message: string,
  ) {
    super(message);
  }
}

/** A text of a schema, for a message. */
export function quoted(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Surrogate}]/gu, '\ufffd');
  return `"${line.length > 100 ? `${line.slice(0, 100)}…` : line}"`;
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
