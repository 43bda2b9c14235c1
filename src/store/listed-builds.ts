/** Builds as lists show them, with the endpoints that they are of. */
import type { Scope } from '../model/permission.js';
import type { Build, BuildState } from './builds.js';
import type { Store } from './database.js';
import type { Endpoint } from './endpoints.js';
import { byCreation, type ListOptions, type Page, readPage } from './pages.js';
import { visible } from './visibility.js';

const SUMMARY = [
  ...(['id', 'state', 'cached', 'attempt', 'error_code', 'artifact', 'request_id'] as const),
  ...(['created_at', 'started_at', 'finished_at'] as const),
] as const;
export type BuildSummary = Pick<Build, (typeof SUMMARY)[number]>;

const ORDER = byCreation('builds', 'desc', ['error', 'request_id'], 'build');

/** Without their sources and what the compiler said, the newest first. */
export async function listBuilds(
  store: Store,
  filter: { readonly state?: BuildState },
  options: ListOptions,
): Promise<Page<BuildSummary>> {
  const query = store
    .knex('builds')
    .where(filter)
    .select(...SUMMARY);
  return readPage(store, query, ORDER, options);
}

/** What is said of the endpoint that a build is of. */
type NamedEndpoint = Pick<Endpoint, 'id' | 'name'>;

/** The visible endpoints whose latest build is one of these, by build. */
export async function endpointsOfBuilds(
  store: Store,
  ids: readonly string[],
  scope: Scope,
): Promise<ReadonlyMap<string, readonly NamedEndpoint[]>> {
  const query = store
    .knex<NamedEndpoint & { readonly build_id: string }>('endpoints')
    .whereIn('build_id', [...ids])
    .orderBy('created_at')
    .select('id', 'name', 'build_id');
  return byBuild(await visible(query, 'endpoint', scope));
}

/** Many endpoints can have the same source: of each build, so many are told. */
const MOST_OF_SOURCE = 20;

/** The visible endpoints whose code is, or was in a version, the source of one of these builds; by build. */
export async function endpointsOfSources(
  store: Store,
  ids: readonly string[],
  scope: Scope,
): Promise<ReadonlyMap<string, readonly NamedEndpoint[]>> {
  if (ids.length === 0) return new Map();
  const { knex } = store;
  const owners = knex.raw(
    `SELECT builds.id AS build_id, endpoints.id AS endpoint_id
       FROM builds JOIN endpoints ON endpoints.source_key = coalesce(draft_key, builds.source_key)
      WHERE builds.id = ANY(:ids)
      UNION
     SELECT builds.id, endpoint_id
       FROM builds JOIN endpoint_versions AS versions ON versions.source_key = coalesce(draft_key, builds.source_key)
      WHERE builds.id = ANY(:ids)`,
    { ids: [...ids] },
  );
  const ranked = knex('endpoints')
    .join('owners', 'owners.endpoint_id', 'endpoints.id')
    .select('endpoints.id', 'endpoints.name', 'owners.build_id')
    .select(
      knex.raw('row_number() OVER (PARTITION BY owners.build_id ORDER BY endpoints.created_at) AS rank'),
    );
  const rows = await knex
    .with('owners', owners)
    .with('ranked', visible(ranked, 'endpoint', scope))
    .from('ranked')
    .where('rank', '<=', MOST_OF_SOURCE)
    .orderBy('rank')
    .select<(NamedEndpoint & { readonly build_id: string })[]>('id', 'name', 'build_id');
  return byBuild(rows);
}

function byBuild(rows: readonly (NamedEndpoint & { readonly build_id: string })[]) {
  const endpoints = new Map<string, NamedEndpoint[]>();
  for (const { build_id, ...endpoint } of rows)
    endpoints.set(build_id, [...(endpoints.get(build_id) ?? []), endpoint]);
  return endpoints;
}
