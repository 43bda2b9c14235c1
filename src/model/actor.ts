/** Who asks for something, stored beside what they asked for. */

/** With API_KEY nobody is anonymous, without it everybody is. An import asks in the name of who started it. */
export type Actor =
  | { readonly kind: 'api_key' }
  | { readonly kind: 'anonymous'; readonly address: string }
  | { readonly kind: 'import'; readonly import_id: string };

/** As it is read: later versions may know other kinds. */
export type StoredActor = Readonly<Record<string, unknown>>;

/** The call of the API that something comes from. */
export interface Origin {
  readonly requestId: string;
  readonly actor: Actor;
}
