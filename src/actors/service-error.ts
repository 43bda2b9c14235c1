/** What can go wrong with a call of a service; `docs/SERVICE-PROTOCOL.md` says what each kind means. */
export type ServiceErrorKind =
  | 'unauthenticated'
  | 'unbound'
  | 'inactive'
  | 'unavailable'
  | 'deadline'
  | 'busy'
  | 'backend'
  | 'invalid';

/** A failure whose message may be shown to the author of a handler, or to the operator who tests a connection. */
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
