/** Endpoints of one host as an OpenAPI document says them, and what an import of it would change. */
import { isDeepStrictEqual } from 'node:util';
import { Pauses } from '../util/pauses.js';
import type { Collection } from './collections.js';
import type { Store } from './database.js';
import { type ExistingEndpoint, existingEndpoints } from './import-rows.js';
import { type ApiToImport, changeOf, digest, type PlaceOfImport, place } from './imported-endpoints.js';

/** Rows read at once. */
const ROWS = 500;

/** Which endpoints of a host; all of them, unless it says more. */
export interface DocumentedPart {
  readonly collection_id?: string | undefined;
  readonly endpoint_id?: string | undefined;
}

/** The endpoints of a host, or some of them, in the order of their routes. */
export async function documentedEndpoints(
  store: Store,
  host: string,
  { collection_id, endpoint_id: id }: DocumentedPart = {},
): Promise<readonly ExistingEndpoint[]> {
  const rows = await store
    .knex('endpoints')
    .where({ domain: host, ...(collection_id && { collection_id }), ...(id && { id }) })
    .orderBy(['route', 'method'])
    .select<{ id: string }[]>('id');
  const byId = new Map<string, ExistingEndpoint>();
  for (let at = 0; at < rows.length; at += ROWS) {
    const ids = rows.slice(at, at + ROWS).map(({ id }) => id);
    for (const endpoint of await existingEndpoints(store, ids)) byId.set(endpoint.id, endpoint);
  }
  return rows.flatMap(({ id }) => byId.get(id) ?? []);
}

/** What documents say of collections. */
export type DocumentedCollection = Pick<Collection, 'id' | 'name' | 'description' | 'base_path'>;

/** The collections of endpoints, by their names. */
export async function collectionsOf(
  store: Store,
  endpoints: readonly ExistingEndpoint[],
): Promise<readonly DocumentedCollection[]> {
  const ids = new Set(endpoints.flatMap(({ collection_id }) => collection_id ?? []));
  return store
    .knex('collections')
    .whereIn('id', [...ids])
    .orderBy(['name', 'id'])
    .select<DocumentedCollection[]>('id', 'name', 'description', 'base_path');
}

/** A field of an endpoint that is there, in which an import would change it. */
export type DifferingField = 'name' | 'description' | 'code' | 'files' | 'validate';

export interface ImportDifferences {
  /** Endpoints that it would change, with what of them. */
  readonly changed: readonly {
    readonly endpoint: ExistingEndpoint;
    readonly fields: readonly DifferingField[];
  }[];
  /** METHOD and path of what it would add. */
  readonly added: readonly string[];
  /** Endpoints that it would leave alone, because the document has nothing of them. */
  readonly missing: readonly ExistingEndpoint[];
}

/**
 * What an import would do to these endpoints, found out as the import does it, without writing anything.
 * @param target where they are
 */
export async function importDifferences(
  api: ApiToImport,
  endpoints: readonly ExistingEndpoint[],
  target: PlaceOfImport,
): Promise<ImportDifferences> {
  const existing = new Map(
    endpoints.map((endpoint) => [`${endpoint.method} ${endpoint.route_key}`, endpoint]),
  );
  const seen = new Set<ExistingEndpoint>();
  const changed: ImportDifferences['changed'][number][] = [];
  const added: string[] = [];
  const pauses = new Pauses();
  for (const imported of api.endpoints) {
    await pauses.here();
    const item = place(imported, target);
    const endpoint = existing.get(`${imported.method} ${item.route_key}`);
    if (!endpoint) {
      added.push(`${imported.method} ${imported.path}`);
      continue;
    }
    seen.add(endpoint);
    const change = changeOf(endpoint, item, api, endpoint.imported_document_id);
    if (!change?.is_visible) continue;
    const fields = [
      ...(change.name !== endpoint.name ? (['name'] as const) : []),
      ...(change.description !== endpoint.description ? (['description'] as const) : []),
      ...(change.code !== null && digest(change.code) !== endpoint.code_digest ? (['code'] as const) : []),
      ...(change.entry !== endpoint.entry || !isDeepStrictEqual(change.files, endpoint.files)
        ? (['files'] as const)
        : []),
      ...(change.rerouted ? (['validate'] as const) : []),
    ];
    changed.push({ endpoint, fields });
  }
  return { changed, added, missing: endpoints.filter((endpoint) => !seen.has(endpoint)) };
}
