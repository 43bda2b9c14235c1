/**
 * How many keys and tokens of one network may be wrong. What was right there before goes on working, so that whoever
 * guesses keeps none of their neighbours out.
 */
import { digestOf } from '../secrets/credentials.js';
import type { Store } from '../store/database.js';
import { isKnownCredential, rememberCredential } from '../store/known-credentials.js';
import { countAttempt, type LoginLimit, waitOf } from '../store/login-failures.js';
import { networkOf } from '../util/client-network.js';
import { refuseAfter } from './login-limits.js';

/** In a quarter of an hour. */
const FAILURES = 20;
/** So many credentials need no look at the database. */
const REMEMBERED = 10_000;
/** So long one counts as known after its last use; within a day of it nothing is written. */
const DAY_MS = 24 * 60 * 60 * 1_000;

export class CredentialLimits {
  /** By credential and network: when it was last written that it is right. */
  readonly #known = new Map<string, number>();

  constructor(private readonly store: Store) {}

  /** A credential that is wrong. @throws AppError too_many_logins */
  async failed(address: string): Promise<void> {
    refuseAfter(await countAttempt(this.store, limitOf(address)), WHAT);
  }

  /**
   * A credential that is right; not told, while others of its network were wrong, unless it was right there before.
   * @throws AppError too_many_logins
   */
  async succeeded(credential: string, address: string): Promise<void> {
    const key = keyOf('known', networkOf(address), digestOf(credential));
    if (Date.now() - (this.#known.get(key) ?? 0) < DAY_MS) return;
    const wait = await waitOf(this.store, limitOf(address));
    if (wait !== undefined && !(await isKnownCredential(this.store, key))) refuseAfter(wait, WHAT);
    await rememberCredential(this.store, key);
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    this.#known.set(key, Date.now());
  }
}

const WHAT = 'keys and tokens from this network were wrong';

function limitOf(address: string): LoginLimit {
  return { key: keyOf('credential', networkOf(address)), failures: FAILURES };
}

function keyOf(...parts: string[]): string {
  return digestOf(JSON.stringify(parts));
}
