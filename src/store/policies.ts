/** The policies that are set for an endpoint, its collection and its domain. */
import type { PolicyLayer } from '../model/policies/in-force.js';
import type { Policies } from '../model/policies/policies.js';
import type { Store } from './database.js';

/**
 * SQL: columns of what is set for a row of `endpoints`, with `collections`, and `parents` and `hosts` as the domains of
 * its collection and of its host. Endpoints for all hosts inherit nothing: they are nobody's.
 */
export const POLICY_COLUMNS = {
  domain_id: inherited('coalesce(parents.id, hosts.id)'),
  domain_policies: inherited('coalesce(parents.policies, hosts.policies)'),
  collection_policies: inherited('collections.policies'),
  own_policies: 'endpoints.policies',
} as const;

function inherited(column: string): string {
  return `CASE WHEN endpoints.domain <> '*' THEN ${column} END`;
}

/**
 * SQL: texts of these columns. What a domain or a collection has is only in the first of its rows: with all of them, a
 * few large policies of domains with many endpoints would fill the memory of who reads them.
 */
export const POLICY_TEXTS = {
  domain_policies: once(POLICY_COLUMNS.domain_policies, POLICY_COLUMNS.domain_id),
  collection_policies: once(
    POLICY_COLUMNS.collection_policies,
    "endpoints.domain = '*', endpoints.collection_id",
  ),
  own_policies: `(${POLICY_COLUMNS.own_policies})::text`,
} as const;

function once(column: string, owner: string): string {
  return `CASE WHEN row_number() OVER (PARTITION BY ${owner} ORDER BY endpoints.id) = 1 THEN (${column})::text END`;
}

type PolicyTextsRow = Readonly<Record<'domain' | keyof typeof POLICY_TEXTS, string | null>> & {
  readonly domain_id: string | null;
  readonly collection_id: string | null;
};

/** Rows that were read with `POLICY_TEXTS`, each with all that it has. */
export function withAllTexts<Row extends PolicyTextsRow>(rows: readonly Row[]): Row[] {
  const texts = new Map<string, string>();
  for (const { domain_id, collection_id, domain_policies, collection_policies } of rows) {
    if (domain_id !== null && domain_policies !== null) texts.set(domain_id, domain_policies);
    if (collection_id !== null && collection_policies !== null) texts.set(collection_id, collection_policies);
  }
  return rows.map((row) => {
    // They are nobody's, and inherit nothing.
    if (row.domain === '*') return row;
    const of = (id: string | null) => (id === null ? null : (texts.get(id) ?? null));
    return { ...row, domain_policies: of(row.domain_id), collection_policies: of(row.collection_id) };
  });
}

interface LayersRow {
  readonly id: string;
  readonly domain_id: string | null;
  readonly collection_id: string | null;
  readonly domain_policies: Policies | null;
  readonly collection_policies: Policies | null;
  readonly own_policies: Policies | null;
}

/** @returns the farthest first, and the domain; undefined when there is no such endpoint */
export async function policyLayers(
  store: Store,
  endpointId: string,
): Promise<{ readonly layers: PolicyLayer[]; readonly domainId: string | null } | undefined> {
  const { rows } = await store.knex.raw<{ rows: LayersRow[] }>(
    `SELECT endpoints.id, endpoints.collection_id, ${Object.entries(POLICY_COLUMNS)
      .map(([name, column]) => `${column} AS ${name}`)
      .join(', ')}
       FROM endpoints LEFT JOIN collections ON collections.id = endpoints.collection_id
       LEFT JOIN domains AS parents ON parents.id = collections.domain_id
       LEFT JOIN domains AS hosts ON hosts.host = endpoints.domain
      WHERE endpoints.id = ?`,
    [endpointId],
  );
  const [row] = rows;
  return row && { layers: layersOf(row), domainId: row.domain_id };
}

/** The layers of a row that has policies by where they are set. */
export function layersOf(row: LayersRow): PolicyLayer[] {
  const { id, domain_id, collection_id, domain_policies, collection_policies, own_policies } = row;
  return [
    ...(domain_id === null
      ? []
      : [{ scope: 'domain' as const, ownerId: domain_id, policies: domain_policies }]),
    ...(collection_id === null
      ? []
      : [{ scope: 'collection' as const, ownerId: collection_id, policies: collection_policies }]),
    { scope: 'endpoint' as const, ownerId: id, policies: own_policies },
  ];
}
