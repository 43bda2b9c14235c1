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
  { key, failures }: LoginLimit,
): Promise<number | undefined> {
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
  return row && row.failures > failures ? Math.max(1, row.left) : undefined;
}

/**
 * Begins the attempts with one credential, which all count as one.
 * @returns whether it is the first of them in this time
 */
export async function beginAttempt({ knex }: Store, { key }: LoginLimit): Promise<boolean> {
  const { rowCount } = await knex.raw<{ rowCount: number }>(
    `INSERT INTO login_failures AS f (key, failures, began_at) VALUES (:key, 1, clock_timestamp())
     ON CONFLICT (key) DO UPDATE SET began_at = excluded.began_at
      WHERE f.began_at < clock_timestamp() - :window * interval '1 second'`,
    { key, window: WINDOW_SECONDS },
  );
  return rowCount > 0;
}

/** After how many seconds the next attempt is allowed, if it is not now. Nothing is counted. */
export async function waitOf({ knex }: Store, { key, failures }: LoginLimit): Promise<number | undefined> {
  const { rows } = await knex.raw<{ rows: { left: number }[] }>(
    `SELECT ceil(extract(epoch FROM began_at + :window * interval '1 second' - clock_timestamp()))::integer AS left
       FROM login_failures WHERE key = :key AND failures > :failures
        AND began_at > clock_timestamp() - :window * interval '1 second'`,
    { key, failures, window: WINDOW_SECONDS },
  );
  const [row] = rows;
  return row && Math.max(1, row.left);
}

/**
 * Takes back an attempt that has succeeded.
 * @param over what has no failures any more, if there is something
 */
export async function forgetAttempts(
  { knex }: Store,
  counted: readonly LoginLimit[],
  over?: LoginLimit,
): Promise<void> {
  if (over) await knex('login_failures').where({ key: over.key }).delete();
  const keys = counted.map(({ key }) => key);
  await knex('login_failures').whereIn('key', keys).where('failures', '>', 0).decrement('failures', 1);
}
