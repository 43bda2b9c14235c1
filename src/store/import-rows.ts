/** The SQL of imported endpoints: many rows in each statement, sent as one JSON text. */
import type { Store } from './database.js';
import type { Endpoint } from './endpoints.js';

/** An endpoint with the columns that only imports use. */
interface ImportColumns extends Endpoint {
  /** Title of the API in the last import. */
  readonly imported_from: string | null;
  /** The document of the last import, and METHOD and path in it; null where it is not kept. */
  readonly imported_document_id: string | null;
  readonly imported_operation: string | null;
  /** sha256 of the code that an import generated, in hex; null for other code. */
  readonly generated_digest: string | null;
  /** sha256 of the handler that an import brought. */
  readonly handler_digest: string | null;
}

const EXISTING_COLUMNS = [
  ...(['id', 'collection_id', 'name', 'path', 'method', 'description'] as const),
  ...(['edition', 'entry', 'files', 'dependencies', 'lock'] as const),
  ...([
    'policies',
    'route',
    'route_key',
    'status',
    'enabled',
    'imported_from',
    'imported_document_id',
    'imported_operation',
    'generated_digest',
    'handler_digest',
  ] as const),
] as const;

/** The columns of an existing endpoint that an import compares, and an OpenAPI document says. */
export interface ExistingEndpoint extends Pick<ImportColumns, (typeof EXISTING_COLUMNS)[number]> {
  /** sha256 of the code, in hex, so that the code itself is not read. */
  readonly code_digest: string | null;
  /** No code, or nothing but white space. */
  readonly is_blank: boolean;
}

const ADDED_COLUMNS = [
  ...(['id', 'name', 'path', 'method', 'domain', 'collection_id', 'description', 'code'] as const),
  ...(['dependencies', 'policies', 'route', 'route_key', 'source_key'] as const),
  ...(['edition', 'entry', 'files', 'lock'] as const),
  ...(['imported_from', 'imported_document_id', 'imported_operation'] as const),
  ...(['generated_digest', 'handler_digest'] as const),
] as const;

type Addition = Pick<ImportColumns, (typeof ADDED_COLUMNS)[number]>;

/** Columns that an import writes, with new or old values. */
const CHANGED_COLUMNS = [
  ...(['name', 'path', 'description', 'edition', 'entry', 'files', 'dependencies'] as const),
  ...(['lock', 'policies', 'route'] as const),
  ...(['imported_from', 'imported_document_id', 'imported_operation'] as const),
  ...(['generated_digest', 'handler_digest'] as const),
] as const;

interface ImportChange extends Pick<ImportColumns, 'id' | (typeof CHANGED_COLUMNS)[number]> {
  /** null keeps the code. */
  readonly code: string | null;
  /** Source key of the new code; null keeps it. */
  readonly source_key: string | null;
  /** The change affects gateways. */
  readonly rerouted: boolean;
  /** The change is visible in the API. */
  readonly is_visible: boolean;
}

/** Locks the endpoints of a domain that have one of these routes, in the order of their ids, and returns the ids. */
export async function lockRoutes(
  tx: Store,
  domain: string,
  routes: readonly { readonly endpoint: { readonly method: string }; readonly route_key: string }[],
): Promise<readonly string[]> {
  const { rows } = await tx.knex.raw<{ rows: { id: string }[] }>(
    `SELECT id FROM endpoints JOIN unnest(?::text[], ?::text[]) AS routes (method, route_key) USING (method, route_key)
      WHERE domain = ? ORDER BY id FOR UPDATE OF endpoints`,
    [routes.map(({ endpoint }) => endpoint.method), routes.map(({ route_key }) => route_key), domain],
  );
  return rows.map(({ id }) => id);
}

export async function existingEndpoints(tx: Store, ids: readonly string[]): Promise<ExistingEndpoint[]> {
  const { rows } = await tx.knex.raw<{ rows: ExistingEndpoint[] }>(
    `SELECT ${EXISTING_COLUMNS.join(', ')}, encode(sha256(convert_to(code, 'UTF8')), 'hex') AS code_digest,
            coalesce(code, '') !~ '\\S' AS is_blank
       FROM endpoints WHERE id = ANY(?::uuid[])`,
    [[...ids]],
  );
  return rows;
}

export async function insertEndpoints(tx: Store, additions: readonly Addition[]): Promise<void> {
  if (additions.length === 0) return;
  const columns = ADDED_COLUMNS.join(', ');
  await tx.knex.raw(
    `INSERT INTO endpoints (${columns}) SELECT ${columns} FROM json_populate_recordset(null::endpoints, ?::json)`,
    [JSON.stringify(additions)],
  );
}

export async function updateEndpoints(tx: Store, changes: readonly ImportChange[]): Promise<void> {
  if (changes.length === 0) return;
  await tx.knex.raw(
    `UPDATE endpoints SET
       ${CHANGED_COLUMNS.map((column) => `${column} = changed.${column}`).join(', ')},
       code = coalesce(changed.code, endpoints.code),
       source_key = coalesce(changed.source_key, endpoints.source_key),
       version = endpoints.version + CASE WHEN (item->>'rerouted')::boolean THEN 1 ELSE 0 END,
       updated_at = CASE WHEN (item->>'is_visible')::boolean
         THEN greatest(clock_timestamp(), endpoints.updated_at + interval '1 millisecond') ELSE endpoints.updated_at END
     FROM json_array_elements(?::json) AS item, json_populate_record(null::endpoints, item) AS changed
     WHERE endpoints.id = changed.id`,
    [JSON.stringify(changes)],
  );
}

/** Endpoints that earlier imports of APIs with these titles created here, and that this one does not have. */
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
