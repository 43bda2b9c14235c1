/**
 * The tables `acme_orders` and `acme_accounts`: certificates that are ordered from an ACME server, one order for each
 * domain at a time, and the accounts that order them.
 */
import type { NewCertificate } from './certificates.js';
import { type Store, transaction } from './database.js';

/** An order that a worker may take. */
export interface DueOrder {
  readonly domain_id: string;
  /** The ticket of this try: one with an earlier ticket does nothing. */
  readonly ticket: string;
}

/** One that a worker has taken. */
export interface ClaimedOrder extends DueOrder {
  readonly host: string;
  /** Tries before this one that have failed, since the last certificate. */
  readonly failures: number;
}

/** SQL: the key of the lock that the worker has that looks for what is due. */
const LOCK = "hashtextextended('acme', 0)";
/** SQL: for so long no other one is placed after a successful one, whatever was issued. */
const PAUSE = "interval '10 seconds'";
const MAX_ERROR_CHARACTERS = 2_000;

/**
 * SQL: whether a domain needs a certificate from a directory. Names in the internet only: no addresses, no wildcards,
 * no names of one label. A certificate that a user has set is left alone.
 */
const NEEDS = `
  domains.host ~ '^([a-z0-9]([a-z0-9-]*[a-z0-9]|)\\.)+[a-z]([a-z0-9-]*[a-z0-9]|)$'
  AND (certificates.domain_id IS NULL
       OR (certificates.ordered_from IS NOT NULL
           AND (certificates.ordered_from <> :directory
                OR NOT domains.host = ANY(certificates.names)
                OR certificates.expires_at - clock_timestamp()
                   < (certificates.expires_at - certificates.valid_from) / 3)))`;

/**
 * The domains whose certificates are to be ordered now: those that have none, and those that have one of another
 * directory, for another host, or with less than a third of its life left. Runs on one worker at a time.
 */
export async function dueOrders(store: Store, directory: string, limit: number): Promise<DueOrder[]> {
  return transaction(store, async ({ knex }) => {
    const { rows: locks } = await knex.raw<{ rows: { locked: boolean }[] }>(
      `SELECT pg_try_advisory_xact_lock(${LOCK}) AS locked`,
    );
    if (!locks[0]?.locked) return [];
    const { rows } = await knex.raw<{ rows: DueOrder[] }>(
      `WITH needy AS MATERIALIZED (
         SELECT domains.id, domains.host
           FROM domains LEFT JOIN certificates ON certificates.domain_id = domains.id
          WHERE ${NEEDS}
            FOR KEY SHARE OF domains SKIP LOCKED),
       added AS (
         INSERT INTO acme_orders (domain_id, host) SELECT id, host FROM needy
         ON CONFLICT (domain_id) DO NOTHING
         RETURNING domain_id, ticket)
       SELECT domain_id, ticket FROM added
       UNION ALL
       (SELECT domain_id, ticket
          FROM acme_orders JOIN needy ON needy.id = domain_id
         WHERE next_try_at <= clock_timestamp() OR (state <> 'ordering' AND acme_orders.host <> needy.host)
         ORDER BY next_try_at)
       LIMIT :limit`,
      { directory, limit },
    );
    return rows;
  });
}

/**
 * Takes an order. Should this worker be lost, it is due again after `leaseMs`.
 * @returns undefined when another worker has taken it, or it is not needed any more
 */
export async function claimOrder(
  store: Store,
  { domain_id, ticket }: DueOrder,
  directory: string,
  leaseMs: number,
): Promise<ClaimedOrder | undefined> {
  const { rows } = await store.knex.raw<{ rows: ClaimedOrder[] }>(
    `UPDATE acme_orders
        SET ticket = gen_random_uuid(), state = 'ordering', host = domains.host, tried_at = clock_timestamp(),
            next_try_at = clock_timestamp() + :leaseMs * interval '1 millisecond',
            failures = CASE WHEN acme_orders.host = domains.host THEN failures ELSE 0 END
       FROM domains LEFT JOIN certificates ON certificates.domain_id = domains.id
      WHERE acme_orders.domain_id = :domain_id AND ticket = :ticket AND domains.id = acme_orders.domain_id
        AND ${NEEDS}
      RETURNING acme_orders.domain_id, ticket, domains.host, failures`,
    { domain_id, ticket, directory, leaseMs },
  );
  return rows[0];
}

/** It has failed, and is due again after a while. */
export async function failOrder(
  store: Store,
  { domain_id, ticket }: DueOrder,
  error: string,
  retryMs: number,
): Promise<void> {
  await store.knex.raw(
    `UPDATE acme_orders
        SET state = 'failed', failures = failures + 1, error = left(:error, ${MAX_ERROR_CHARACTERS}),
            next_try_at = clock_timestamp() + :retryMs * interval '1 millisecond'
      WHERE domain_id = :domain_id AND ticket = :ticket`,
    { domain_id, ticket, error, retryMs },
  );
}

/** One that has failed is due now. @returns whether there is an order of the domain */
export async function retryOrder(store: Store, domainId: string): Promise<boolean> {
  const { rowCount } = await store.knex.raw<{ rowCount: number }>(
    `UPDATE acme_orders
        SET next_try_at = CASE WHEN state = 'failed' THEN clock_timestamp() ELSE next_try_at END
      WHERE domain_id = ?`,
    [domainId],
  );
  return rowCount > 0;
}

/**
 * Makes what was issued the certificate of its domain.
 * @returns false when it is not wanted any more: the domain is gone or has another host, a user has set a certificate,
 * or another worker has taken the order
 */
export async function saveOrdered(
  store: Store,
  { domain_id, ticket, host }: ClaimedOrder,
  certificate: Omit<NewCertificate, 'domain_id'>,
): Promise<boolean> {
  return transaction(store, async (tx) => {
    if (!(await tx.knex('domains').where({ id: domain_id, host }).forShare().first('id'))) return false;
    const isOurs = await tx.knex('acme_orders').where({ domain_id, ticket }).forUpdate().first('domain_id');
    if (!isOurs) return false;
    const saved = await tx
      .knex('certificates')
      .insert({ ...certificate, domain_id, updated_at: tx.knex.raw('clock_timestamp()') })
      .onConflict('domain_id')
      .merge()
      .whereNotNull('certificates.ordered_from')
      .returning('domain_id');
    await tx
      .knex('acme_orders')
      .where({ domain_id })
      .update({
        ...{ state: 'issued', failures: 0, error: null },
        next_try_at: tx.knex.raw(`clock_timestamp() + ${PAUSE}`),
      });
    if (saved.length > 0) tx.announce('certificate', domain_id);
    return saved.length > 0;
  });
}

/** Who orders from a directory. */
export interface AcmeAccount {
  readonly directory_url: string;
  readonly key_encrypted: string;
  /** Null: the server has to be asked for it. */
  readonly url: string | null;
  /** That the server knows. */
  readonly email: string | null;
}

/** @param newKey the key of the account, encrypted, should there be none */
export async function findOrMakeAccount(
  store: Store,
  directory_url: string,
  newKey: () => string,
): Promise<AcmeAccount> {
  const find = () => store.knex<AcmeAccount>('acme_accounts').where({ directory_url }).first();
  const existing = await find();
  if (existing) return existing;
  await store
    .knex('acme_accounts')
    .insert({ directory_url, key_encrypted: newKey() })
    .onConflict('directory_url')
    .ignore();
  const made = await find();
  if (!made) throw new Error('The account of an ACME server was deleted meanwhile');
  return made;
}

/** @param known null for what has to be asked for again */
export async function updateAccount(
  store: Store,
  directory_url: string,
  known: Pick<AcmeAccount, 'url' | 'email'>,
): Promise<void> {
  await store.knex('acme_accounts').where({ directory_url }).update(known);
}
