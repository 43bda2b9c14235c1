/**
 * The option of statements that run very often: each connection has PostgreSQL parse and plan one with this name only
 * once, which takes longer than most of them run. What they return must be named column by column: with `*`, they would
 * fail in running processes once a migration has added a column.
 */
export function prepared(name: string): { readonly name: string } {
  return { name };
}
