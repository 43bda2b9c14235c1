/** How many logins may fail, by account and by address. */
import { AppError } from '../../errors.js';
import { digestOf } from '../../secrets/credentials.js';
import type { Store } from '../../store/database.js';
import { countAttempt, forgetAttempt, type LoginLimit } from '../../store/login-failures.js';

/** Failures of one address at one account, of one account, and of one address, in a quarter of an hour. */
const FAILURES = { both: 5, account: 50, address: 20 };

const key = (...parts: string[]) => digestOf(JSON.stringify(parts));

/**
 * Counts a login before its password is checked.
 * @returns what takes it back when it succeeds
 * @throws AppError too_many_logins
 */
export function countLogin(store: Store, email: string, address: string): Promise<() => Promise<void>> {
  const both = key('both', email, address);
  return count(
    store,
    [
      { key: both, failures: FAILURES.both },
      { key: key('account', email), failures: FAILURES.account },
      { key: key('address', address), failures: FAILURES.address },
    ],
    both,
  );
}

/**
 * The same for a sign-in with a provider, where the account is known only afterwards.
 * @throws AppError too_many_logins
 */
export function countReturn(store: Store, address: string): Promise<() => Promise<void>> {
  return count(store, [{ key: key('address', address), failures: FAILURES.address }]);
}

async function count(store: Store, limits: readonly LoginLimit[], forgotten?: string) {
  const wait = await countAttempt(store, limits);
  if (wait !== undefined) {
    throw new AppError('too_many_logins', `Too many logins have failed; try again in ${wait} s`, {
      details: { retry_after_seconds: wait },
    });
  }
  return () => forgetAttempt(store, limits, forgotten);
}
