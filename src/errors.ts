/**
 * The catalogue of errors of the management API and the gateway: stable codes, their HTTP status and meaning.
 * `npm run docs` writes `docs/ERRORS.md`.
 */

interface ErrorKind {
  /** HTTP status of the response. */
  readonly status: number;
  /** What it means, for the documentation. */
  readonly meaning: string;
}

const kinds = {
  invalid_input: [400, 'A field, parameter or id of the request is missing or wrong; the message names it.'],
  invalid_json: [400, 'The body is not well-formed JSON.'],
  invalid_dependency: [
    400,
    'A crate in `dependencies` is not accepted: its name, version, features, a key, or where it is from.',
  ],
  invalid_spec: [
    400,
    'The OpenAPI document cannot be imported; the message names the location and the reason.',
  ],
  invalid_bundle: [400, 'The ZIP bundle cannot be imported; the message names the file and the reason.'],
  invalid_config: [400, 'The `config` of a service is invalid for its type; the message names the key.'],
  invalid_folder: [
    400,
    'The files that describe an installation have problems; `details.problems` lists them, with file and line.',
  ],
  malformed_request: [400, 'The request is not valid HTTP, or is ambiguous; `docs/HTTP.md` has the rules.'],
  unauthorized: [401, 'The request carries no valid API_KEY, token or session, and the API is not open.'],
  login_failed: [401, 'The email or the password is wrong.'],
  oidc_failed: [
    401,
    'The sign-in with OpenID Connect was not started in this browser, took too long, or was refused; start it again.',
  ],
  forbidden: [403, 'Whoever sends the request may not do this; the message has what is missing.'],
  oidc_no_role: [
    403,
    'The provider of OpenID Connect knows the person, and OIDC_ROLES has no role for them.',
  ],
  foreign_origin: [
    403,
    'The request comes from a web page of another origin, or is for a host name that this API does not serve.',
  ],
  not_found: [404, 'The path or the resource does not exist.'],
  method_not_allowed: [405, 'The path exists, but not with this method; `Allow` lists those it has.'],
  request_timeout: [408, 'The request did not arrive in time.'],
  ambiguous_name: [
    409,
    'Several objects have the name; the message lists them, and `details` has their ids.',
  ],
  host_taken: [409, 'Another domain already has this host.'],
  route_taken: [
    409,
    'Another endpoint already serves this method and route on this domain; the message names it.',
  ],
  name_taken: [
    409,
    'Another service has this name, or another collection of the domain; the message names it.',
  ],
  apply_conflict: [
    409,
    'What the files would change belongs to nobody, or to another stack; `details.conflicts` lists all of it.',
  ],
  email_taken: [409, 'Another user has this email.'],
  provider_user: [
    409,
    'The user is from a provider of OpenID Connect, which says who they are and what they may do.',
  ],
  last_admin: [409, 'Nobody would be left who may do everything, so the user stays as it is.'],
  domain_mismatch: [
    409,
    "The domain of an endpoint, or of an import, and the host of its collection's domain differ.",
  ],
  service_not_for_domain: [
    409,
    'An endpoint that would get another domain has a service bound that is for other domains; the message names it.',
  ],
  pool_id_taken: [409, 'The endpoint already has a service bound under this pool_id.'],
  service_disabled: [409, 'The service cannot be activated: it is disabled.'],
  endpoint_has_no_code: [409, 'The endpoint cannot be compiled: it has no code.'],
  endpoint_not_compiled: [409, 'The endpoint cannot be started: it has no successful build.'],
  endpoint_not_running: [409, 'The endpoint cannot be stopped: it is not running.'],
  nothing_to_roll_back_to: [409, 'No other version of the endpoint has served before the current one.'],
  too_many_alerts: [409, 'There are as many alerts as there may be.'],
  nothing_deployed: [409, 'A share of the requests needs another version that serves the rest; none does.'],
  name_is_secret: [
    409,
    'A variable cannot have the name of a secret of the same domain, collection or endpoint.',
  ],
  secret_in_use: [
    409,
    'Configs of services refer to the secret; the message and `details` name the services.',
  ],
  plan_changed: [
    409,
    'What an apply would change is not as it was when it was planned; nothing was changed. Plan again.',
  ],
  apply_busy: [409, 'Another apply has not ended yet, or other changes blocked it for too long.'],
  apply_not_committed: [
    409,
    'The apply cannot be rolled back: it has changed nothing, or has not ended yet.',
  ],
  build_cancelled: [409, 'Somebody has cancelled the build before it ended; compile again.'],
  build_ended: [409, 'The build cannot be cancelled: it has ended.'],
  start_overtaken: [
    409,
    'During the start, the endpoint was stopped or another deployment replaced this one.',
  ],
  body_too_large: [413, 'The body is larger than the configured limit.'],
  unsupported_media_type: [
    415,
    'The media type or the encoding of the body is not supported; the message names those that are.',
  ],
  expectation_failed: [417, 'The request has an `Expect` header other than `100-continue`.'],
  compile_failed: [
    422,
    'The compiler rejected the handler; `error` is its output, `diagnostics` the same as data.',
  ],
  compile_timeout: [422, 'The build exceeded its time limit and was aborted.'],
  crates_timeout: [
    422,
    'A crate was not built within its limit; what was built before it is kept for the next try.',
  ],
  handler_start_failed: [
    422,
    'The handler was started but did not become ready; the message has its last output.',
  ],
  too_many_logins: [429, 'Too many logins of the account, or from the address, have failed; `Retry-After`.'],
  too_many_credentials: [429, 'Too many keys and tokens from the network were wrong; `Retry-After`.'],
  too_many_imports: [
    429,
    'Whoever sends the request has as many imports and plans that wait to be read, or as large ones, as one may have; `Retry-After`.',
  ],
  too_many_uploads: [
    429,
    'Whoever sends the request uploads as many files to object storages at a time, or as large ones, as one may; `Retry-After`.',
  ],
  headers_too_large: [431, 'The headers are larger than the server accepts.'],
  internal_error: [500, 'An internal error of the service; the log has the details under the request id.'],
  secret_key_mismatch: [
    500,
    'A stored service config cannot be decrypted: SECRET_KEY is not the one it was saved with.',
  ],
  backend_failed: [
    502,
    'The backend of a service cannot be reached or rejected the operation; the message has the reason.',
  ],
  too_many_connections: [503, 'The server has reached its connection limit; this connection was closed.'],
  oidc_unavailable: [
    503,
    'The provider of OpenID Connect cannot be reached, or does not answer as it should; try again later.',
  ],
  busy: [
    503,
    'The API has too much to compute, or to keep until it is read, already; try again in a moment.',
  ],
  database_unavailable: [503, 'PostgreSQL cannot be reached at the moment.'],
  audit_unavailable: [503, 'The audit cannot be written, so nothing was changed; the log has the reason.'],
  queue_unavailable: [503, 'The job queue cannot be reached at the moment.'],
  queue_full: [
    503,
    'The endpoint has as many queued requests or schedules, or its domain as many bytes of them or unfinished builds, as it may have; or a request alone is larger than that.',
  ],
  artifact_store_unavailable: [
    503,
    'The store of compiled handlers cannot be reached at the moment, or rejects requests.',
  ],
  no_gateway: [503, 'No gateway process is alive, so nothing can be started or stopped.'],
  gateway_busy: [
    503,
    'The gateway runs as many trials of versions as it may and others wait, or its front is being started.',
  ],
  no_worker: [503, 'No worker process is alive, so nothing can be compiled.'],
  no_actor_host: [
    503,
    'No actor-host process is alive, or none can be reached, so services cannot be used or tested.',
  ],
  no_object_storage: [503, 'No object-storage service is active, or the requested one is not.'],
  import_busy: [
    503,
    'Other changes of the same domain blocked the import for too long; nothing was imported.',
  ],
  import_timeout: [
    503,
    'Reading the document or the bundle took longer than the server allows; nothing was imported. The message names the setting.',
  ],
  import_memory: [
    503,
    'Reading the document or the bundle needed more memory than the server allows; nothing was imported. The message names the setting.',
  ],
  wait_timeout: [
    504,
    'The request timed out, but its work continues; `details` names the build or the import.',
  ],
  no_disk_space: [507, 'A disk of the service is full; the message names it. Stored data is intact.'],
} as const satisfies Record<string, readonly [status: number, meaning: string]>;

/** A stable, documented error code. */
export type ErrorCode = keyof typeof kinds;

/** All codes with their status and meaning, in the order of the documentation. */
export const ERROR_CATALOGUE = Object.fromEntries(
  Object.entries(kinds).map(([code, [status, meaning]]) => [code, { status, meaning }]),
) as Readonly<Record<ErrorCode, ErrorKind>>;

/** What an error says, apart from an exception. */
export interface ErrorFacts {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

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
