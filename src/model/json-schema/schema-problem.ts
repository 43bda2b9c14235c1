/** Keys from the root to a schema. */
export type SchemaPath = readonly string[];

/** What is wrong with a schema, and where. */
export class SchemaProblem extends Error {
  override readonly name = 'SchemaProblem';

  constructor(
    readonly place: SchemaPath,
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
