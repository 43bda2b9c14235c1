/**
 * Makes a value when it is first asked for. Formats of dates and numbers take the browser milliseconds each, which a
 * page does not have before it has asked the API.
 */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
