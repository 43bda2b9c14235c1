/** Errors in the details of a line of a log, on their way to another process. */

/** The same details, with errors as objects: an error has no members that a message would carry. */
export function withErrorText(details: object): Record<string, unknown> {
  const entries = Object.entries(details).map(([name, value]) =>
    value instanceof Error
      ? [name, { type: value.name, message: value.message, stack: value.stack }]
      : [name, value],
  );
  return Object.fromEntries(entries);
}
