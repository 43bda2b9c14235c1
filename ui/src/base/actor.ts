/** Who did something, as the API has stored it. */
export function whoOf(actor: Readonly<Record<string, unknown>> | null): string {
  const { kind, email, name, address } = actor ?? {};
  if (kind === 'user') return String(email);
  if (kind === 'token') return `the token ${name}`;
  if (kind === 'api_key') return 'the API key';
  if (kind === 'import') return 'an import';
  if (kind === 'internal') return 'the gateway itself';
  if (kind === 'anonymous') return `somebody at ${address}`;
  return 'not known';
}
