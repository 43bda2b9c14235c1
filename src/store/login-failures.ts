/** The table `login_failures`: how often a login has failed, so that passwords cannot be guessed. */
import type { Store } from './database.js';

/** What is counted, and how many failures of it are allowed. */
export interface LoginLimit {
  readonly key: string;
  readonly failures: number;
}

const WINDOW_SECONDS = 900;

/**
 * Counts an attempt before its password is checked, so that concurrent attempts are not more than those allowed.
 * @returns after how many seconds the next attempt is allowed, if this one is not
 */
export async function countAttempt(
  { knex }: Store,
  limits: readonly LoginLimit[],
): Promise<number | undefined> {
  let wait: number | undefined;
  // In one order everywhere, so that attempts do not deadlock.
  for (const { key, failures } of [...limits].sort((a, b) => (a.key < b.key ? -1 : 1))) {
    const { rows } = await knex.raw<{ rows: { failures: number; left: number }[] }>(
      `INSERT INTO login_failures AS f (key, failures, began_at) VALUES (:key, 1, clock_timestamp())
       ON CONFLICT (key) DO UPDATE SET
         failures = CASE WHEN f.began_at < clock_timestamp() - :window * interval '1 second' THEN 1
                         ELSE least(f.failures + 1, 1000000) END,
         began_at = CASE WHEN f.began_at < clock_timestamp() - :window * interval '1 second'
                         THEN clock_timestamp() ELSE f.began_at END
       RETURNING failures,
         ceil(extract(epoch FROM began_at + :window * interval '1 second' - clock_timestamp()))::integer AS left`,
      { key, window: WINDOW_SECONDS },
    );
    const [row] = rows;
    if (row && row.failures > failures) wait = Math.max(wait ?? 1, row.left);
  }
  return wait;
}

/**
 * Takes back the attempt that has succeeded.
 * @param forgotten the key whose failures are over with it, if there is one
 */
export async function forgetAttempt(
  { knex }: Store,
  limits: readonly LoginLimit[],
  forgotten?: string,
): Promise<void> {
  if (forgotten !== undefined) await knex('login_failures').where({ key: forgotten }).delete();
  const others = limits.map(({ key }) => key).filter((key) => key !== forgotten);
  await knex('login_failures').whereIn('key', others).where('failures', '>', 0).decrement('failures', 1);
}
