/** The table `key_sets`: keys that issuers of tokens publish, by the address where they do. */
import type { PublicKey } from '../model/policies/key-set.js';
import { type Store, transaction } from './database.js';
import { touchEndpoints } from './routed-endpoints.js';

/** Keys are read again after this, or after the second when a gateway has seen another. */
const [REFRESH, REFRESH_WANTED] = ["interval '5 minutes'", "interval '1 second'"];

/** SQL: whether policies name an address. */
const names = (table: string) => `${table}.policies #>> '{auth,jwt,jwks_url}' = ?`;

/**
 * The addresses whose keys are to be read now: by who asks, and nobody else at the same time. Those that no policy
 * names any more are forgotten.
 */
export async function claimDueKeySets(store: Store): Promise<string[]> {
  const { rows } = await store.knex.raw<{ rows: { url: string; is_used: boolean }[] }>(
    `UPDATE key_sets SET tried_at = clock_timestamp()
      WHERE url IN (SELECT url FROM key_sets
                     WHERE tried_at IS NULL OR tried_at < clock_timestamp() - ${REFRESH}
                        OR (wanted_at > coalesce(fetched_at, 'epoch')
                            AND tried_at < clock_timestamp() - ${REFRESH_WANTED})
                       FOR UPDATE SKIP LOCKED)
      RETURNING url, (
        EXISTS (SELECT FROM domains WHERE policies #>> '{auth,jwt,jwks_url}' = url)
        OR EXISTS (SELECT FROM collections WHERE policies #>> '{auth,jwt,jwks_url}' = url)
        OR EXISTS (SELECT FROM endpoints WHERE policies #>> '{auth,jwt,jwks_url}' = url)) AS is_used`,
  );
  const unused = rows.filter(({ is_used }) => !is_used).map(({ url }) => url);
  if (unused.length > 0) await store.knex('key_sets').whereIn('url', unused).delete();
  return rows.filter(({ is_used }) => is_used).map(({ url }) => url);
}

/** Stores keys; gateways read the endpoints that use them again, if they are others than before. */
export async function saveKeySet(store: Store, url: string, keys: readonly PublicKey[]): Promise<void> {
  await transaction(store, async (tx) => {
    const { rows } = await tx.knex.raw<{ rows: { is_new: boolean }[] }>(
      `WITH before AS (SELECT keys FROM key_sets WHERE url = ?)
       INSERT INTO key_sets (url, keys, fetched_at, tried_at)
       VALUES (?, ?::jsonb, clock_timestamp(), clock_timestamp())
       ON CONFLICT (url) DO UPDATE SET keys = excluded.keys, error = NULL,
                         fetched_at = excluded.fetched_at, tried_at = excluded.tried_at
       RETURNING keys IS DISTINCT FROM (SELECT keys FROM before) AS is_new`,
      [url, url, JSON.stringify(keys)],
    );
    if (rows[0]?.is_new) await touchEndpoints(tx, await lockEndpointsOfKeySet(tx, url));
  });
}

export async function saveKeySetError(store: Store, url: string, error: string): Promise<void> {
  await store.knex.raw(
    `INSERT INTO key_sets (url, error, tried_at) VALUES (?, ?, clock_timestamp())
     ON CONFLICT (url) DO UPDATE SET error = excluded.error, tried_at = excluded.tried_at`,
    [url, error],
  );
}

/** A gateway has seen a token whose key is not among these. */
export async function wantKeySet(store: Store, url: string): Promise<void> {
  await store.knex.raw(
    `INSERT INTO key_sets (url, wanted_at) VALUES (?, clock_timestamp())
     ON CONFLICT (url) DO UPDATE SET wanted_at = excluded.wanted_at`,
    [url],
  );
}

/** The keys at some addresses; none where nothing could be read yet. */
export async function readKeySet(
  store: Store,
  url: string,
): Promise<{ readonly keys: readonly PublicKey[] | null; readonly error: string | null } | undefined> {
  return store
    .knex('key_sets')
    .where({ url })
    .first<{ keys: PublicKey[] | null; error: string | null } | undefined>('keys', 'error');
}

/** Locks endpoints in the order of their ids, to avoid deadlocks. */
async function lockEndpointsOfKeySet(tx: Store, url: string): Promise<string[]> {
  const { rows } = await tx.knex.raw<{ rows: { id: string }[] }>(
    `SELECT endpoints.id FROM endpoints
      WHERE ${names('endpoints')}
         OR collection_id IN (SELECT collections.id FROM collections JOIN domains ON domains.id = domain_id
                               WHERE ${names('collections')} OR ${names('domains')})
         OR domain IN (SELECT host FROM domains WHERE ${names('domains')})
      ORDER BY endpoints.id FOR UPDATE`,
    [url, url, url, url],
  );
  return rows.map(({ id }) => id);
}
