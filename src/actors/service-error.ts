/** Kinds of errors of service calls; `docs/SERVICE-PROTOCOL.md` defines them. */
export type ServiceErrorKind =
  | 'unauthenticated'
  | 'unbound'
  | 'inactive'
  | 'unavailable'
  | 'deadline'
  | 'busy'
  | 'backend'
  | 'invalid';

/** An error whose message may be shown to authors of handlers and to operators. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';

  constructor(
    readonly kind: ServiceErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
