/** The table `endpoint_versions`: the sources of an endpoint that were compiled. */
import type { StoredActor } from '../model/actor.js';
import { hasCrates } from '../model/crates.js';
import type { FileRef, HandlerSource } from '../model/source-files.js';
import { SERVED_BEFORE } from './apply-rows.js';
import type { CompilableSource } from './builds.js';
import type { Store } from './database.js';
import { type ListOptions, type ListOrder, type Page, readPage } from './pages.js';

/** Executables of so many versions of each endpoint are kept, and of those that are deployed. */
const PINNED_VERSIONS = 20;

/** A row. */
export interface EndpointVersion extends HandlerSource {
  readonly endpoint_id: string;
  /** 1 for the first of the endpoint. */
  readonly version: number;
  readonly source_key: string;
  /** Digest of the executable that was made last. It may have been deleted. */
  readonly artifact: string;
  /** The lock that crates were resolved to for that; null: not known. */
  readonly resolved_lock: FileRef | null;
  readonly message: string | null;
  /** Who made it; null: not known. */
  readonly actor: StoredActor | null;
  readonly created_at: Date;
}

/** A source that was compiled. */
export interface CompiledSource extends CompilableSource {
  readonly artifact: string;
  /** The lock that crates were resolved to for that; left out or null: not known. */
  readonly resolvedLock?: FileRef | null;
  readonly message?: string | null;
  /** Null: not known. */
  readonly actor: StoredActor | null;
}

export interface AddedVersion {
  readonly endpointId: string;
  readonly version: number;
  /** False when the newest version had the same source. */
  readonly isNew: boolean;
}

/**
 * Makes a compiled source the newest version of endpoints, unless their newest version is of the same source, and of
 * the same crates: then its executable is replaced, and its message where there is another one. The number of a
 * version that was removed is not given again.
 */
export function addVersions(
  tx: Store,
  endpointIds: readonly string[],
  source: CompiledSource,
): Promise<AddedVersion[]> {
  return addTo(tx, 'id = ANY(?)', [...endpointIds], source);
}

/**
 * The same for a source that was compiled by itself, of an endpoint or of those whose latest build this is, each by who
 * asked for it there: its version stays, also when a deployment made it and fails.
 */
export async function addCompiledVersions(
  tx: Store,
  of: { readonly endpointId: string } | { readonly build: string },
  source: CompiledSource,
): Promise<void> {
  const alsoSet = ", status = 'compiled', last_error = NULL";
  const by = 'coalesce(build_actor, ?::jsonb)';
  const added =
    'build' in of
      ? await addTo(tx, 'build_id = ?', of.build, source, alsoSet, by)
      : await addTo(tx, 'id = ANY(?)', [of.endpointId], source, alsoSet, by);
  const known = added.filter(({ isNew }) => !isNew);
  if (known.length === 0) return;
  await tx.knex.raw(
    `UPDATE deployments SET is_new_version = false
       FROM unnest(?::uuid[], ?::integer[]) AS compiled (endpoint_id, version)
      WHERE deployments.endpoint_id = compiled.endpoint_id AND deployed_version = compiled.version
        AND outcome = 'pending'`,
    [known.map(({ endpointId }) => endpointId), known.map(({ version }) => version)],
  );
}

/**
 * @param condition SQL with `value`: which endpoints, locked in the order of their ids
 * @param alsoSet SQL: further assignments for them, with a comma before each
 * @param by SQL with the actor: who made the version of each
 */
async function addTo(
  tx: Store,
  condition: 'id = ANY(?)' | 'build_id = ?',
  value: string | string[],
  source: CompiledSource,
  alsoSet = '',
  by = '?::jsonb',
): Promise<AddedVersion[]> {
  const { sourceKey, code, edition, entry, files, dependencies, lock } = source;
  const { artifact, resolvedLock = null, message = null, actor } = source;
  const crates = hasCrates(source) ? (resolvedLock?.digest ?? null) : null;
  const { rows } = await tx.knex.raw<{ rows: AddedVersion[] }>(
    `WITH before AS (
       SELECT id, CASE WHEN artifact_source_key IS NOT DISTINCT FROM ? AND latest_version IS NOT NULL
                        AND NOT EXISTS (
                          SELECT FROM endpoint_versions AS newest
                           WHERE newest.endpoint_id = endpoints.id AND newest.version = latest_version
                             AND newest.resolved_lock->>'digest' <> ?::text)
                       THEN latest_version ELSE coalesce(greatest(last_number, latest_version), 0) + 1 END AS number
         FROM endpoints WHERE ${condition} ORDER BY id FOR UPDATE),
     numbered AS (
       UPDATE endpoints SET artifact = ?, artifact_source_key = ?, latest_version = number,
              last_number = greatest(last_number, number)${alsoSet}
         FROM before WHERE endpoints.id = before.id
       RETURNING endpoints.id, endpoints.latest_version, endpoints.build_actor)
     INSERT INTO endpoint_versions (endpoint_id, version, source_key, code, edition, entry, files, dependencies, lock,
                                    artifact, resolved_lock, message, actor)
     SELECT id, latest_version, ?, ?, ?, ?, ?, ?, ?::jsonb, ?, ?::jsonb, ?, ${by} FROM numbered
     ON CONFLICT (endpoint_id, version) DO UPDATE
           SET artifact = excluded.artifact,
               resolved_lock = coalesce(excluded.resolved_lock, endpoint_versions.resolved_lock),
               message = coalesce(excluded.message, endpoint_versions.message)
     RETURNING endpoint_id AS "endpointId", version, xmax = 0 AS "isNew"`,
    [
      ...[sourceKey, crates, value, artifact, sourceKey],
      ...[sourceKey, code, edition, entry, files && JSON.stringify(files)],
      ...[JSON.stringify(dependencies), lock && JSON.stringify(lock)],
      ...[artifact, resolvedLock && JSON.stringify(resolvedLock), message],
      actor && JSON.stringify(actor),
    ] as never[],
  );
  return rows;
}

/** The newest first, without their sources: those of all may be large. */
const ORDER: ListOrder = {
  key: { column: 'version', type: 'integer' },
  tie: { column: 'version', type: 'integer' },
  direction: 'desc',
  searched: ['message'],
};

export async function listVersions(
  store: Store,
  endpointId: string,
  options: ListOptions = {},
): Promise<Page<Omit<EndpointVersion, keyof HandlerSource>>> {
  const query = store
    .knex('endpoint_versions')
    .where({ endpoint_id: endpointId })
    .select('endpoint_id', 'version', 'source_key', 'artifact', 'message', 'actor', 'created_at');
  return readPage(store, query, ORDER, options);
}

/** The numbers of all versions that are there. */
export async function versionNumbers(store: Store, endpointId: string): Promise<number[]> {
  return store.knex('endpoint_versions').where({ endpoint_id: endpointId }).pluck<number[]>('version');
}

export async function findVersion(
  store: Store,
  endpointId: string,
  version: number,
): Promise<EndpointVersion | undefined> {
  return store.knex<EndpointVersion>('endpoint_versions').where({ endpoint_id: endpointId, version }).first();
}

/** The lock that the newest version of an endpoint has or was built with, and its number; undefined: none is known. */
export async function lockOfNewestVersion(
  store: Store,
  endpointId: string,
): Promise<{ readonly version: number; readonly lock: FileRef } | undefined> {
  return store
    .knex('endpoint_versions')
    .join('endpoints', { 'endpoints.id': 'endpoint_id', latest_version: 'endpoint_versions.version' })
    .where({ endpoint_id: endpointId })
    .whereRaw('coalesce(endpoint_versions.lock, resolved_lock) IS NOT NULL')
    .first(
      'endpoint_versions.version',
      store.knex.raw('coalesce(endpoint_versions.lock, resolved_lock) AS lock'),
    );
}

/** Deletes a version that never served. When it was the newest, the one before it is the newest again. */
export async function removeVersion(tx: Store, endpointId: string, version: number): Promise<void> {
  const removed = await tx.knex('endpoint_versions').where({ endpoint_id: endpointId, version }).delete();
  if (removed === 0) return;
  await tx.knex.raw(
    `UPDATE endpoints SET (latest_version, artifact, artifact_source_key) =
            (SELECT version, artifact, source_key FROM endpoint_versions
              WHERE endpoint_id = endpoints.id ORDER BY version DESC LIMIT 1)
      WHERE id = ? AND latest_version = ?`,
    [endpointId, version],
  );
}

/** Records the executable that was made of a version again, and the lock that it was made with. */
export async function replaceArtifact(
  store: Store,
  { endpoint_id, version }: EndpointVersion,
  artifact: string,
  resolvedLock: FileRef | null,
): Promise<void> {
  await store
    .knex('endpoint_versions')
    .where({ endpoint_id, version })
    .update({ artifact, ...(resolvedLock && { resolved_lock: JSON.stringify(resolvedLock) }) });
}

/** SQL: digests of the executables that versions, deployments and rollbacks of applies need, for `IN`. */
export const PINNED_ARTIFACTS = `
  SELECT endpoint_versions.artifact FROM endpoint_versions JOIN endpoints ON endpoints.id = endpoint_id
   WHERE endpoint_versions.version > latest_version - ${PINNED_VERSIONS}
   UNION ALL
  SELECT target->>'artifact' FROM endpoints
    JOIN deployments ON deployments.id IN (desired_deployment_id, confirmed_deployment_id),
         jsonb_array_elements(targets) AS target
   UNION ALL
  SELECT target->>'artifact' FROM (${SERVED_BEFORE}) AS served, jsonb_array_elements(targets) AS target`;

/** Deletes all but the newest versions of each endpoint, and those that are deployed. @returns how many */
export async function pruneVersions(store: Store, kept: number): Promise<number> {
  const { rowCount } = await store.knex.raw<{ rowCount: number }>(
    `DELETE FROM endpoint_versions USING endpoints
      WHERE endpoints.id = endpoint_id AND endpoint_versions.version <= latest_version - ?
        AND NOT EXISTS (
          SELECT FROM deployments, jsonb_array_elements(targets) AS target
           WHERE deployments.id IN (desired_deployment_id, confirmed_deployment_id)
             AND (target->>'version')::integer = endpoint_versions.version)`,
    [kept],
  );
  return rowCount;
}
