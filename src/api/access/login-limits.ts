/** How many logins may fail, by account and by address. */
import { AppError } from '../../errors.js';
import { digestOf } from '../../secrets/credentials.js';
import type { Store } from '../../store/database.js';
import { countAttempt, forgetAttempts, type LoginLimit } from '../../store/login-failures.js';
import { sessionAddresses } from '../../store/sessions.js';
import { networkOf } from '../../util/client-network.js';

/** Failures of one address at one account, of one account, and of one address, in a quarter of an hour. */
const FAILURES = { both: 5, account: 50, address: 20 };

/**
 * Counts a login before its password is checked. An address that is over its limit counts no further, so that it
 * cannot fill the table, nor lock the account for others.
 * @returns what takes it back when it succeeds
 * @throws AppError too_many_logins
 */
export async function countLogin(store: Store, email: string, address: string): Promise<() => Promise<void>> {
  const from = addressLimit(address);
  const both = { key: key('both', email, networkOf(address)), failures: FAILURES.both };
  const account = { key: key('account', email), failures: FAILURES.account };
  for (const limit of [from, both]) refuseAfter(await countAttempt(store, limit));
  const wait = await countAttempt(store, account);
  // Whoever guesses from many addresses keeps nobody out who has a session where they are.
  if (wait !== undefined && !(await hasSession(store, email, address))) refuseAfter(wait);
  return () => forgetAttempts(store, [from, account], both);
}

/**
 * The same for a sign-in with a provider, where the account is known only afterwards.
 * @throws AppError too_many_logins
 */
export async function countReturn(store: Store, address: string): Promise<() => Promise<void>> {
  const from = addressLimit(address);
  refuseAfter(await countAttempt(store, from));
  return () => forgetAttempts(store, [from]);
}

function addressLimit(address: string): LoginLimit {
  return { key: key('address', networkOf(address)), failures: FAILURES.address };
}

/** The key of what is counted: a digest of its parts. */
export function key(...parts: string[]): string {
  return digestOf(JSON.stringify(parts));
}

async function hasSession(store: Store, email: string, address: string): Promise<boolean> {
  const network = networkOf(address);
  return (await sessionAddresses(store, email)).some((known) => networkOf(known) === network);
}

function refuseAfter(wait: number | undefined): void {
  if (wait === undefined) return;
  throw new AppError('too_many_logins', `Too many logins have failed; try again in ${wait} s`, {
    details: { retry_after_seconds: wait },
  });
}
