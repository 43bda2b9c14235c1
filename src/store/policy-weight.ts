/** How much memory the policies take that are set for a host. */
import { BYTES_OF_QUOTE } from '../model/policies/room.js';
import type { Store } from './database.js';

/** The tables whose rows have policies. */
export type PolicyTable = 'domains' | 'collections' | 'endpoints';

/** SQL: about what the policies of a row take in memory, as `weightOfPolicies` has it. */
const WEIGHT = `CASE WHEN jsonb_typeof(policies) = 'object' THEN
    octet_length(policies::text) + ${BYTES_OF_QUOTE} *
    (length((policies - 'validate')::text) - length(replace((policies - 'validate')::text, '"', ''))) ELSE 0 END`;

/** SQL: the host of a row. */
const HOSTS: Readonly<Record<PolicyTable, string>> = {
  domains: 'host',
  collections: '(SELECT host FROM domains WHERE id = domain_id)',
  endpoints: 'domain',
};

/** The host of a row, and the weight of its policies; undefined when there is no such row. */
export async function ownPolicies(
  { knex }: Store,
  table: PolicyTable,
  id: string,
): Promise<{ readonly host: string; readonly weight: number } | undefined> {
  return knex(table)
    .where({ id })
    .first<{ host: string; weight: number } | undefined>(
      knex.raw(`${HOSTS[table]} AS host`),
      knex.raw(`${WEIGHT} AS weight`),
    );
}

/**
 * The weight of the policies of a host, bytes: those of its domain, of the collections of that, and of its endpoints.
 * @param except the id of a row that does not count
 */
export async function policyWeight({ knex }: Store, host: string, except?: string): Promise<number> {
  const { rows } = await knex.raw<{ rows: { weight: number }[] }>(
    `SELECT coalesce(sum(${WEIGHT}), 0)::float8 AS weight
       FROM (SELECT id, policies FROM domains WHERE host = :host
             UNION ALL
             SELECT id, policies FROM collections WHERE domain_id IN (SELECT id FROM domains WHERE host = :host)
             UNION ALL
             SELECT id, policies FROM endpoints WHERE domain = :host) AS owners
      WHERE policies IS NOT NULL AND id IS DISTINCT FROM :except::uuid`,
    { host, except: except ?? null },
  );
  return rows[0]?.weight ?? 0;
}
