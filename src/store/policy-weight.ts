/** How much memory the policies take that are set for a host. */

import type { Policies } from '../model/policies/policies.js';
import { BYTES_OF_QUOTE } from '../model/policies/room.js';
import type { Store } from './database.js';

/** The tables whose rows have policies. */
export type PolicyTable = 'domains' | 'collections' | 'endpoints';

/**
 * SQL: `owners`, and the `weight` of the policies of each. Weights that are compared are all from here: PostgreSQL
 * writes JSON with spaces, and numbers without exponents. `OFFSET 0` keeps it from making a text several times, and
 * `||` from decompressing a row several times.
 * @param owners a query with a column `policies`
 */
function weighed(owners: string): string {
  return `SELECT owners.*, coalesce(
            octet_length(others) + ${BYTES_OF_QUOTE} * (octet_length(others) - octet_length(replace(others, '"', '')))
            + coalesce(octet_length(validate), 0), 0) AS weight
       FROM (${owners}) AS owners
      CROSS JOIN LATERAL (SELECT policies || '{}'::jsonb AS plain OFFSET 0) AS read
      CROSS JOIN LATERAL (
            SELECT CASE WHEN jsonb_typeof(plain) = 'object' THEN (plain - 'validate')::text END AS others,
                   (plain -> 'validate')::text AS validate
            OFFSET 0) AS texts`;
}

/** SQL: the host of a row. */
const HOSTS: Readonly<Record<PolicyTable, string>> = {
  domains: 'host',
  collections: '(SELECT host FROM domains WHERE id = domain_id)',
  endpoints: 'domain',
};

/** The host of a row; undefined when there is no such row. */
export async function hostOf({ knex }: Store, table: PolicyTable, id: string): Promise<string | undefined> {
  const row = await knex(table)
    .where({ id })
    .first<{ host: string } | undefined>(knex.raw(`${HOSTS[table]} AS host`));
  return row?.host;
}

/** The weight of policies as they are stored. */
export async function weightOfNew({ knex }: Store, policies: Policies | null): Promise<number> {
  if (policies === null) return 0;
  const { rows } = await knex.raw<{ rows: { weight: number }[] }>(weighed('SELECT ?::jsonb AS policies'), [
    JSON.stringify(policies),
  ]);
  return rows[0]?.weight ?? 0;
}

/** The host of a row, and the weight of its policies; undefined when there is no such row. */
export async function ownPolicies(
  { knex }: Store,
  table: PolicyTable,
  id: string,
): Promise<{ readonly host: string; readonly weight: number } | undefined> {
  const row = `SELECT ${HOSTS[table]} AS host, policies FROM ${table} WHERE id = ?::uuid`;
  const { rows } = await knex.raw<{ rows: { host: string; weight: number }[] }>(
    `SELECT host, weight FROM (${weighed(row)}) AS own`,
    [id],
  );
  return rows[0];
}

/**
 * The weight of the policies of a host, bytes: those of its domain, of the collections of that, and of its endpoints.
 * It reads all of them: ask only where more is written.
 * @param except the id of a row that does not count
 */
export async function policyWeight({ knex }: Store, host: string, except?: string): Promise<number> {
  const owners = `SELECT policies
       FROM (SELECT id, policies FROM domains WHERE host = :host
             UNION ALL
             SELECT id, policies FROM collections WHERE domain_id IN (SELECT id FROM domains WHERE host = :host)
             UNION ALL
             SELECT id, policies FROM endpoints WHERE domain = :host) AS rows
      WHERE policies IS NOT NULL AND id IS DISTINCT FROM :except::uuid`;
  const { rows } = await knex.raw<{ rows: { weight: number }[] }>(
    `SELECT coalesce(sum(weight), 0)::float8 AS weight FROM (${weighed(owners)}) AS weighed`,
    { host, except: except ?? null },
  );
  return rows[0]?.weight ?? 0;
}
