/** What has variables, secrets and policies of its own. */
export interface Owner {
  readonly kind: 'domains' | 'collections' | 'endpoints';
  readonly id: string;
}

/** Who has set something, in a word. */
export function nameOfActor(actor: Readonly<Record<string, unknown>> | null): string {
  const name = actor?.['name'] ?? actor?.['email'] ?? actor?.['kind'];
  return typeof name === 'string' ? name : 'somebody';
}
