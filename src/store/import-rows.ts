/** The SQL of imported endpoints: many rows in each statement, sent as one JSON text. */
import type { Dependencies } from '../dependencies.js';
import type { EndpointMethod } from '../endpoint-method.js';
import type { Store } from './database.js';
import type { EndpointStatus } from './endpoints.js';

/** What an import needs to know of an endpoint that has a route of its. */
export interface ExistingEndpoint {
  readonly id: string;
  readonly collection_id: string | null;
  readonly name: string;
  readonly path: string;
  readonly method: EndpointMethod;
  readonly description: string | null;
  readonly dependencies: Dependencies | null;
  readonly route: string;
  readonly route_key: string;
  readonly status: EndpointStatus;
  readonly imported_from: string | null;
  readonly generated_digest: string | null;
  readonly handler_digest: string | null;
  /** sha256 of the code, in hex: the code itself need not come here to be compared. */
  readonly code_digest: string | null;
  /** No code, or nothing but white space. */
  readonly is_blank: boolean;
}

export interface EndpointAddition {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly method: EndpointMethod;
  readonly domain: string;
  readonly collection_id: string | null;
  readonly description: string | null;
  readonly code: string;
  readonly dependencies: Dependencies | null;
  readonly route: string;
  readonly route_key: string;
  readonly source_key: string;
  readonly imported_from: string;
  readonly generated_digest: string | null;
  readonly handler_digest: string | null;
}

export interface EndpointChange {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly description: string | null;
  readonly route: string;
  readonly imported_from: string;
  /** Without it, `code`, the digests and `source_key` mean nothing. */
  readonly sets_code: boolean;
  readonly code: string | null;
  readonly generated_digest: string | null;
  readonly handler_digest: string | null;
  readonly source_key: string | null;
  readonly sets_dependencies: boolean;
  readonly dependencies: Dependencies | null;
  /** Gateways have to know. */
  readonly rerouted: boolean;
  /** Something changes that the API shows. */
  readonly is_visible: boolean;
}

/** Locks the endpoints of a domain that have one of these routes, in the order of their ids, which it returns. */
export async function lockRoutes(
  tx: Store,
  domain: string,
  wanted: readonly { readonly endpoint: { readonly method: string }; readonly route_key: string }[],
): Promise<readonly string[]> {
  const { rows } = await tx.knex.raw<{ rows: { id: string }[] }>(
    `SELECT id FROM endpoints JOIN unnest(?::text[], ?::text[]) AS wanted (method, route_key) USING (method, route_key)
      WHERE domain = ? ORDER BY id FOR UPDATE OF endpoints`,
    [wanted.map(({ endpoint }) => endpoint.method), wanted.map(({ route_key }) => route_key), domain],
  );
  return rows.map(({ id }) => id);
}

export async function existingEndpoints(tx: Store, ids: readonly string[]): Promise<ExistingEndpoint[]> {
  const { rows } = await tx.knex.raw<{ rows: ExistingEndpoint[] }>(
    `SELECT id, collection_id, name, path, method, description, dependencies, route, route_key, status,
            imported_from, generated_digest, handler_digest, encode(sha256(convert_to(code, 'UTF8')), 'hex') AS code_digest,
            coalesce(code, '') !~ '\\S' AS is_blank
       FROM endpoints WHERE id = ANY(?::uuid[])`,
    [[...ids]],
  );
  return rows;
}

export async function insertEndpoints(tx: Store, additions: readonly EndpointAddition[]): Promise<void> {
  if (additions.length === 0) return;
  const columns =
    'id, name, path, method, domain, collection_id, description, code, dependencies, route, route_key, source_key, imported_from, generated_digest, handler_digest';
  await tx.knex.raw(
    `INSERT INTO endpoints (${columns}) SELECT ${columns} FROM json_to_recordset(?::json) AS added (
       id uuid, name text, path text, method text, domain text, collection_id uuid, description text, code text,
       dependencies jsonb, route text, route_key text, source_key text, imported_from text, generated_digest text,
       handler_digest text)`,
    [JSON.stringify(additions)],
  );
}

export async function updateEndpoints(tx: Store, changes: readonly EndpointChange[]): Promise<void> {
  if (changes.length === 0) return;
  await tx.knex.raw(
    `UPDATE endpoints SET
       name = changed.name, path = changed.path, description = changed.description, route = changed.route,
       imported_from = changed.imported_from,
       code = CASE WHEN sets_code THEN changed.code ELSE endpoints.code END,
       generated_digest = CASE WHEN sets_code THEN changed.generated_digest ELSE endpoints.generated_digest END,
       handler_digest = CASE WHEN sets_code THEN changed.handler_digest ELSE endpoints.handler_digest END,
       source_key = CASE WHEN sets_code THEN changed.source_key ELSE endpoints.source_key END,
       dependencies = CASE WHEN sets_dependencies THEN changed.dependencies ELSE endpoints.dependencies END,
       version = version + CASE WHEN rerouted THEN 1 ELSE 0 END,
       updated_at = CASE WHEN is_visible
         THEN greatest(clock_timestamp(), updated_at + interval '1 millisecond') ELSE updated_at END
     FROM json_to_recordset(?::json) AS changed (
       id uuid, name text, path text, description text, route text, imported_from text, sets_code boolean, code text,
       generated_digest text, handler_digest text, source_key text, sets_dependencies boolean, dependencies jsonb, rerouted boolean,
       is_visible boolean)
     WHERE endpoints.id = changed.id`,
    [JSON.stringify(changes)],
  );
}

/** Endpoints that earlier imports of APIs with these titles have made here, and this one does not have. */
export async function endpointsNotAmong(
  tx: Store,
  place: {
    readonly domain: string;
    readonly collectionId: string | null;
    readonly importedFrom: readonly string[];
  },
  ids: readonly string[],
): Promise<
  { readonly id: string; readonly name: string; readonly method: string; readonly route: string }[]
> {
  const { rows } = await tx.knex.raw(
    `SELECT id, name, method, route FROM endpoints
      WHERE domain = ? AND collection_id IS NOT DISTINCT FROM ? AND imported_from = ANY(?::text[]) AND id <> ALL(?::uuid[])
      ORDER BY created_at, id`,
    [place.domain, place.collectionId, [...place.importedFrom], [...ids]],
  );
  return rows;
}
