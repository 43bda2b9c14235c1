/**
 * The catalogue of errors of the management API and the gateway: stable codes, their HTTP status and meaning.
 * `npm run docs` writes `docs/ERRORS.md`.
 */

interface ErrorKind {
  /** HTTP status of the response. */
  readonly status: number;
  /** For the documentation. */
  readonly meaning: string;
}

const kinds = {
  invalid_input: {
    status: 400,
    meaning: 'A field, parameter or id of the request is missing or wrong; the message names it.',
  },
  invalid_json: { status: 400, meaning: 'The body is not well-formed JSON.' },
  invalid_dependency: {
    status: 400,
    meaning: 'A crate name, version, feature or key in `dependencies` is not accepted.',
  },
  invalid_spec: {
    status: 400,
    meaning: 'The OpenAPI document cannot be imported; the message names the location and the reason.',
  },
  invalid_bundle: {
    status: 400,
    meaning: 'The ZIP bundle cannot be imported; the message names the file and the reason.',
  },
  invalid_config: {
    status: 400,
    meaning: 'The `config` of a service is invalid for its type; the message names the key.',
  },
  malformed_request: {
    status: 400,
    meaning: 'The request is not valid HTTP, or is ambiguous; `docs/HTTP.md` has the rules.',
  },
  unauthorized: { status: 401, meaning: 'API_KEY is set and the request carries no valid key.' },
  foreign_origin: {
    status: 403,
    meaning:
      'The request comes from a web page of another origin, or is for a host name that this API does not serve.',
  },
  not_found: { status: 404, meaning: 'The path or the resource does not exist.' },
  method_not_allowed: {
    status: 405,
    meaning: 'The path exists, but not with this method; `Allow` lists those it has.',
  },
  request_timeout: { status: 408, meaning: 'The request did not arrive in time.' },
  host_taken: { status: 409, meaning: 'Another domain already has this host.' },
  route_taken: {
    status: 409,
    meaning: 'Another endpoint already serves this method and route on this domain; the message names it.',
  },
  domain_mismatch: {
    status: 409,
    meaning: "The domain of an endpoint, or of an import, and the host of its collection's domain differ.",
  },
  pool_id_taken: { status: 409, meaning: 'The endpoint already has a service bound under this pool_id.' },
  service_disabled: { status: 409, meaning: 'The service cannot be activated: it is disabled.' },
  endpoint_has_no_code: { status: 409, meaning: 'The endpoint cannot be compiled: it has no code.' },
  endpoint_not_compiled: {
    status: 409,
    meaning: 'The endpoint cannot be started: it has no successful build.',
  },
  endpoint_not_running: { status: 409, meaning: 'The endpoint cannot be stopped: it is not running.' },
  start_overtaken: {
    status: 409,
    meaning: 'During the start, the endpoint was stopped or another start replaced this one.',
  },
  body_too_large: { status: 413, meaning: 'The body is larger than the configured limit.' },
  unsupported_media_type: {
    status: 415,
    meaning: 'The media type or the encoding of the body is not supported; the message names those that are.',
  },
  expectation_failed: {
    status: 417,
    meaning: 'The request has an `Expect` header other than `100-continue`.',
  },
  compile_failed: {
    status: 422,
    meaning: 'The compiler rejected the handler; `error` is its output, `diagnostics` the same as data.',
  },
  compile_timeout: { status: 422, meaning: 'The build exceeded its time limit and was aborted.' },
  handler_start_failed: {
    status: 422,
    meaning: 'The handler was started but did not become ready; the message has its last output.',
  },
  headers_too_large: { status: 431, meaning: 'The headers are larger than the server accepts.' },
  internal_error: {
    status: 500,
    meaning: 'An internal error of the service; the log has the details under the request id.',
  },
  secret_key_mismatch: {
    status: 500,
    meaning: 'A stored service config cannot be decrypted: SECRET_KEY is not the one it was saved with.',
  },
  backend_failed: {
    status: 502,
    meaning:
      'The backend of a service cannot be reached or rejected the operation; the message has the reason.',
  },
  too_many_connections: {
    status: 503,
    meaning: 'The server has reached its connection limit; this connection was closed.',
  },
  database_unavailable: { status: 503, meaning: 'PostgreSQL cannot be reached at the moment.' },
  queue_unavailable: { status: 503, meaning: 'The job queue cannot be reached at the moment.' },
  artifact_store_unavailable: {
    status: 503,
    meaning: 'The store of compiled handlers cannot be reached at the moment, or rejects requests.',
  },
  no_gateway: { status: 503, meaning: 'No gateway process is alive, so nothing can be started or stopped.' },
  no_worker: { status: 503, meaning: 'No worker process is alive, so nothing can be compiled.' },
  no_actor_host: {
    status: 503,
    meaning: 'No actor-host process is alive, or none can be reached, so services cannot be used or tested.',
  },
  no_object_storage: {
    status: 503,
    meaning: 'No object-storage service is active, or the requested one is not.',
  },
  import_busy: {
    status: 503,
    meaning: 'Other changes of the same domain blocked the import for too long; nothing was imported.',
  },
  wait_timeout: {
    status: 504,
    meaning: 'The request timed out, but its work continues; `details` names the build or the import.',
  },
  no_disk_space: {
    status: 507,
    meaning: 'A disk of the service is full; the message names it. Stored data is intact.',
  },
} as const satisfies Record<string, ErrorKind>;

/** A stable, documented error code. */
export type ErrorCode = keyof typeof kinds;

/** All codes with their status and meaning, in the order of the documentation. */
export const ERROR_CATALOGUE: Readonly<Record<ErrorCode, ErrorKind>> = kinds;

/** Further members of an error response. */
export interface ErrorExtras {
  /** Machine-readable facts. */
  readonly details?: unknown;
  /** Compiler diagnostics as data, for `compile_failed`. */
  readonly diagnostics?: unknown;
}

/** An error whose message is shown to users of the API. */
export class AppError extends Error {
  override readonly name = 'AppError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly extras: ErrorExtras = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  get status(): number {
    return ERROR_CATALOGUE[this.code].status;
  }
}

/** Returns the value found under an id. @throws AppError not_found when there is none */
export function requireFound<T>(value: T | undefined, kind: string, id: string): T {
  if (value === undefined) throw notFound(kind, id);
  return value;
}

export function notFound(kind: string, id: string): AppError {
  return new AppError('not_found', `The ${kind} ${id} does not exist`);
}

/** Converts a thrown value of any type to an `Error`. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
