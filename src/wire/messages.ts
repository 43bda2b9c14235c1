/** The heads of frames: what travels as JSON before the raw body. */

/** A request as the gateway hands it to a handler. */
export interface RequestHead {
  readonly method: string;
  /** Path and query exactly as the client sent them. */
  readonly target: string;
  /** Names and values in turn, as received: duplicates are possible. */
  readonly headers: readonly string[];
  /** Path parameters, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly client_ip: string;
  readonly request_id: string;
  /** Milliseconds after which the gateway stops waiting. */
  readonly deadline_ms: number;
}

/** A handler's answer. */
export interface ResponseHead {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/**
 * Reads a response head a handler sent; handlers may be written without the SDK, so nothing is taken on trust.
 * @throws Error saying what is wrong with it.
 */
export function parseResponseHead(json: string): ResponseHead {
  const head: unknown = JSON.parse(json);
  if (typeof head !== 'object' || head === null || !('status' in head) || !('headers' in head)) {
    throw new Error('a response head needs status and headers');
  }
  const { status, headers } = head;
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 999) {
    throw new Error(`${String(status)} is not a status a response can have (200 to 999)`);
  }
  if (
    !Array.isArray(headers) ||
    headers.length % 2 !== 0 ||
    !headers.every((item) => typeof item === 'string')
  ) {
    throw new Error('headers must be a list of names and values in turn');
  }
  return { status, headers };
}
