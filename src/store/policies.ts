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
