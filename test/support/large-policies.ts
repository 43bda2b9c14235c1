/** Policies that are large. */

/** Validates bodies with so many members, each with three values. */
export function largeValidation(members: number) {
  const properties = Object.fromEntries(
    Array.from({ length: members }, (_, at) => [`member${at}`, { type: 'string', maxLength: at }]),
  );
  const content = { 'application/json': { schema: { type: 'object', properties } } };
  return { mode: 'enforce', body: { content } };
}
