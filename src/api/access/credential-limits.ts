/**
 * How many keys and tokens of one network may be wrong. What was right there before goes on working, so that whoever
 * guesses keeps none of their neighbours out; and one that is wrong counts once, however often it is sent, so that a
 * program with an old key does not either.
 */
import { AppError } from '../../errors.js';
import { digestOf } from '../../secrets/credentials.js';
import type { Store } from '../../store/database.js';
import { isKnownCredential, rememberCredential } from '../../store/known-credentials.js';
import {
  beginAttempt,
  countAttempt,
  forgetAttempts,
  type LoginLimit,
  waitOf,
} from '../../store/login-failures.js';
import { networkOf } from '../../util/client-network.js';
import { key } from './login-limits.js';

/** Most wrong credentials of one network in a quarter of an hour. */
const FAILURES = 20;
/** So many credentials need no look at the database. */
const REMEMBERED = 10_000;
/** So long nothing is written about one that is used. */
const DAY_MS = 24 * 60 * 60 * 1_000;

export class CredentialLimits {
  /** When it was last written that a credential is right, milliseconds since 1970, by credential and network. */
  readonly #known = new Map<string, number>();

  constructor(private readonly store: Store) {}

  /** A credential that is wrong. @throws AppError too_many_credentials */
  async failed(credential: string, address: string): Promise<void> {
    const { store } = this;
    const limit = limitOf(address);
    refuseAfter(await waitOf(store, limit));
    if (await beginAttempt(store, attemptOf(credential, address)))
      refuseAfter(await countAttempt(store, limit));
  }

  /**
   * A credential that is right; it counts until that is known, so that concurrent guesses are not more than those
   * allowed. While others of its network were wrong it is refused, unless it was right there before.
   * @throws AppError too_many_credentials
   */
  async succeeded(credential: string, address: string): Promise<void> {
    const { store } = this;
    const known = key('known', networkOf(address), digestOf(credential));
    if (Date.now() - (this.#known.get(known) ?? 0) < DAY_MS) return;
    if (!(await isKnownCredential(store, known))) {
      const [limit, attempt] = [limitOf(address), attemptOf(credential, address)];
      refuseAfter(await waitOf(store, limit));
      const isNew = await beginAttempt(store, attempt);
      if (isNew) refuseAfter(await countAttempt(store, limit));
      await rememberCredential(store, known);
      if (isNew) await forgetAttempts(store, [limit], attempt);
    } else await rememberCredential(store, known);
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    this.#known.set(known, Date.now());
  }
}

function limitOf(address: string): LoginLimit {
  return { key: key('credential', networkOf(address)), failures: FAILURES };
}

function attemptOf(credential: string, address: string): LoginLimit {
  return { key: key('attempt', networkOf(address), digestOf(credential)), failures: 1 };
}

function refuseAfter(wait: number | undefined): void {
  if (wait === undefined) return;
  throw new AppError(
    'too_many_credentials',
    `Too many keys and tokens from this network were wrong; try again in ${wait} s`,
    { details: { retry_after_seconds: wait } },
  );
}
