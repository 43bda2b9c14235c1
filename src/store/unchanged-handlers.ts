/**
 * Handlers of an import that need no job because the artifact of their source already runs: most of them when a bundle
 * is imported repeatedly.
 */
import type { Store } from './database.js';
import { finishImport } from './imports.js';
import { IS_LIVE_NODE } from './nodes.js';

/** A handler whose endpoint runs it everywhere. */
export interface UnchangedHandler {
  readonly endpointId: string;
  /** Digest of the executable. */
  readonly artifact: string;
  readonly buildId: string | null;
}

/**
 * Queued handlers whose endpoint runs, on all live gateways, what was made of its source, which is an artifact that a
 * live worker's toolchain makes.
 */
export async function unchangedHandlers(store: Store, importId: string): Promise<UnchangedHandler[]> {
  const { rows } = await store.knex.raw<{ rows: UnchangedHandler[] }>(
    `SELECT endpoints.id AS "endpointId", endpoints.artifact, build_id AS "buildId"
       FROM endpoints
      WHERE endpoints.id IN (SELECT endpoint_id FROM import_handlers WHERE import_id = ? AND state = 'queued')
        AND status = 'running' AND artifact_source_key = source_key
        AND confirmed_deployment_id = desired_deployment_id
        AND EXISTS (
          SELECT FROM deployments
           WHERE deployments.id = desired_deployment_id AND jsonb_array_length(targets) = 1
             AND targets->0->>'artifact' = endpoints.artifact)
        AND EXISTS (
          SELECT 1 FROM artifacts JOIN nodes ON kind = 'worker' AND ${IS_LIVE_NODE} AND info->>'toolchain' = toolchain
           WHERE artifacts.digest = endpoints.artifact)
        AND EXISTS (SELECT 1 FROM nodes WHERE kind = 'gateway' AND ${IS_LIVE_NODE})
        AND NOT EXISTS (
          SELECT 1 FROM nodes LEFT JOIN observations ON node_id = nodes.id AND endpoint_id = endpoints.id
           WHERE kind = 'gateway' AND ${IS_LIVE_NODE}
             AND (state = 'running' AND observations.version >= endpoints.version) IS NOT TRUE)`,
    [importId],
  );
  return rows;
}

/** Ends queued handlers as started, and the import if these were the last ones. */
export async function settleHandlers(
  store: Store,
  importId: string,
  handlers: readonly UnchangedHandler[],
): Promise<void> {
  if (handlers.length === 0) return;
  await store.knex.raw(
    `WITH changed AS (
       UPDATE imports SET version = version + 1 WHERE id = ? AND finished_at IS NULL RETURNING id, version)
     UPDATE import_handlers SET state = 'started', build_id = settled.build_id, version = changed.version,
                                finished_at = clock_timestamp()
       FROM changed, unnest(?::uuid[], ?::uuid[]) AS settled (endpoint_id, build_id)
      WHERE import_id = changed.id AND import_handlers.endpoint_id = settled.endpoint_id AND state = 'queued'`,
    [
      importId,
      handlers.map(({ endpointId }) => endpointId),
      handlers.map(({ buildId }) => buildId),
    ] as never[],
  );
  store.announce('import', importId);
  await finishImport(store, importId);
}
