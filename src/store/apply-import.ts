/** Applies an import: collection, endpoints and the import's own row, all in one transaction or not at all. */
import { type Store, transaction } from './database.js';
import { endpointsNotAmong } from './import-rows.js';
import { type ImportScope, type ImportTarget, openScope } from './import-scope.js';
import { type ApiToImport, type ImportedRow, writeEndpoints } from './imported-endpoints.js';
import { type ImportOutcome, type NewImport, recordImport } from './imports.js';
import { namingRouteOwner, type RouteClaim } from './routed-endpoints.js';

/** A handler or operation of a bundle that was not matched. */
interface UnmatchedHandler {
  readonly name: string | null;
  readonly handler: string | null;
  readonly message: string;
}

export interface ImportToApply extends ApiToImport {
  readonly warnings: readonly string[];
  readonly problems: readonly UnmatchedHandler[];
}

/** Endpoints that are named one by one when the document has lost them; the others are counted. */
const NAMED_LOSSES = 20;

/**
 * @param record makes the row of the import; undefined for an import that has none
 * @throws AppError not_found, domain_mismatch, route_taken, invalid_input, invalid_spec
 */
export async function applyImport(
  store: Store,
  target: ImportTarget,
  api: ImportToApply,
  record?: Omit<NewImport, 'title' | 'outcome'>,
): Promise<ImportOutcome> {
  let claims: readonly RouteClaim[] = [];
  return namingRouteOwner(store, { claims: () => claims }, () =>
    transaction(store, async (tx) => {
      const scope = await openScope(tx, target, api);
      const { created, updated, endpoints } = await writeEndpoints(tx, scope, api, (next) => {
        claims = next;
      });
      const ids = new Map(endpoints.map(({ name, id }) => [name, id]));
      const outcome: ImportOutcome = {
        collection: scope.collection && {
          id: scope.collection.id,
          name: scope.collection.name,
          base_path: scope.collection.base_path,
        },
        created,
        updated,
        endpoints,
        problems: api.problems.map(({ name, handler, message }) => ({
          endpoint_id: (name !== null && ids.get(name)) || null,
          name,
          handler,
          message,
        })),
        warnings: [...api.warnings, ...scope.warnings, ...(await lossWarnings(tx, scope, api, endpoints))],
      };
      if (record) await recordImport(tx, { ...record, title: api.title, outcome });
      return outcome;
    }),
  );
}

async function lossWarnings(
  tx: Store,
  { domain, collection }: ImportScope,
  api: ApiToImport,
  endpoints: readonly ImportedRow[],
): Promise<string[]> {
  const place = { domain, collectionId: collection?.id ?? null, importedFrom: api.title };
  const lost = await endpointsNotAmong(
    tx,
    place,
    endpoints.map(({ id }) => id),
  );
  const warnings = lost
    .slice(0, NAMED_LOSSES)
    .map(
      ({ id, name, method, route }) =>
        `The endpoint "${name}" (${method} ${route}, ${id}) is no longer in the document; it stays until you delete it`,
    );
  if (lost.length > NAMED_LOSSES) {
    warnings.push(`${lost.length - NAMED_LOSSES} more endpoints are no longer in the document`);
  }
  return warnings;
}
