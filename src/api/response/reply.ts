/** What a route answers with, when it is more than the data of its default response. */

/** A response that differs from the default of the route: another status, more headers, warnings, a stream. */
export class Reply {
  constructor(
    readonly status: number,
    readonly data: unknown,
    readonly headers: Readonly<Record<string, string | string[]>> = {},
    readonly warnings: readonly string[] = [],
  ) {}
}

/** A response as text: a page, or the same for a client that prefers this to JSON. */
export class TextReply {
  constructor(
    readonly mediaType: string,
    readonly text: string,
    readonly headers: Readonly<Record<string, string | string[]>> = {},
  ) {}
}

/**
 * Whether the client prefers an asynchronous response (RFC 7240).
 * @param header reads a header of the request
 */
export function prefersAsync(header: (name: string) => string | undefined): boolean {
  return /\brespond-async\b/i.test(header('prefer') ?? '');
}

/** Headers of an asynchronous response. */
export function acceptedHeaders(location: string): Record<string, string> {
  return { Location: location, 'Preference-Applied': 'respond-async' };
}
