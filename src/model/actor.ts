/** Who asks for something, stored beside what they asked for. */

/** Nobody is anonymous but where the API is open. An import asks in the name of who started it. */
export type AuditActor =
  | { readonly kind: 'user'; readonly id: string; readonly email: string }
  | { readonly kind: 'token'; readonly id: string; readonly name: string; readonly user_id: string | null }
  // A process of this product, or a command on the machine.
  | { readonly kind: 'internal' }
  | { readonly kind: 'api_key' }
  | { readonly kind: 'anonymous'; readonly address: string }
  | { readonly kind: 'import'; readonly import_id: string };

/** An actor as it is read: later versions may know other kinds. */
export type StoredActor = Readonly<Record<string, unknown>>;

/** The call of the API that something comes from. */
export interface Origin {
  readonly requestId: string;
  readonly actor: AuditActor;
}
