/** What an operator should change about an installation that works all the same. */
import type { Config } from '../../config.js';
import type { Store } from '../../store/database.js';
import { servesHost } from '../../store/domains.js';
import { isLoopback } from '../../util/loopback.js';

/** A shorter key can be guessed, or is a word. */
const SAFE_KEY_CHARACTERS = 20;

/** @returns undefined when there is nothing to say */
export function keyWarning({ API_KEY }: Pick<Config, 'API_KEY'>): string | undefined {
  if (API_KEY === undefined || API_KEY.length >= SAFE_KEY_CHARACTERS) return undefined;
  return (
    `API_KEY has fewer than ${SAFE_KEY_CHARACTERS} characters, and whoever guesses it may do everything: ` +
    'make a longer one, such as by: openssl rand -base64 24'
  );
}

/**
 * Whether endpoints answer under the host name by which somebody reaches the API.
 * @param host as they have sent it, with a port or without
 */
export async function hostWarning(store: Store, host: string): Promise<string | undefined> {
  const name = host.replace(/:\d+$/, '').toLowerCase();
  // On the machine itself there is no other name.
  if (name === '' || isLoopback(name.replace(/^\[|\]$/g, '')) || !(await servesHost(store, name)))
    return undefined;
  return (
    `The API and endpoints have the same host name, ${name}: browsers send cookies of one to the other, and what ` +
    'handlers answer counts for pages of both. Give the API a host name of its own.'
  );
}
