/** How large the policies are that are set for a host. */
import type { Store } from './database.js';

/** The tables whose rows have policies. */
export type PolicyTable = 'domains' | 'collections' | 'endpoints';

const BYTES = 'coalesce(octet_length(policies::text), 0)';

/** SQL: the host of a row. */
const HOSTS: Readonly<Record<PolicyTable, string>> = {
  domains: 'host',
  collections: '(SELECT host FROM domains WHERE id = domain_id)',
  endpoints: 'domain',
};

/** The host of a row, and bytes of its policies; undefined when there is no such row. */
export async function ownPolicies(
  { knex }: Store,
  table: PolicyTable,
  id: string,
): Promise<{ readonly host: string; readonly bytes: number } | undefined> {
  return knex(table)
    .where({ id })
    .first<{ host: string; bytes: number } | undefined>(
      knex.raw(`${HOSTS[table]} AS host`),
      knex.raw(`${BYTES} AS bytes`),
    );
}

/**
 * Bytes of the policies of a host: those of its domain, of the collections of that, and of its endpoints.
 * @param except the id of a row that does not count
 */
export async function policyBytes({ knex }: Store, host: string, except?: string): Promise<number> {
  const { rows } = await knex.raw<{ rows: { bytes: number }[] }>(
    `SELECT coalesce(sum(${BYTES}), 0)::float8 AS bytes
       FROM (SELECT id, policies FROM domains WHERE host = :host
             UNION ALL
             SELECT id, policies FROM collections WHERE domain_id IN (SELECT id FROM domains WHERE host = :host)
             UNION ALL
             SELECT id, policies FROM endpoints WHERE domain = :host) AS owners
      WHERE policies IS NOT NULL AND id IS DISTINCT FROM :except::uuid`,
    { host, except: except ?? null },
  );
  return rows[0]?.bytes ?? 0;
}
