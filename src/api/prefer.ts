/** The header `Prefer` (RFC 7240): whether a client waits for long work or wants an answer at once. */

/** @param header reads a header of the request */
export function prefersAsync(header: (name: string) => string | undefined): boolean {
  return /\brespond-async\b/i.test(header('prefer') ?? '');
}

/** Headers of the answer to a client that does not wait. */
export function acceptedHeaders(location: string): Record<string, string> {
  return { Location: location, 'Preference-Applied': 'respond-async' };
}
