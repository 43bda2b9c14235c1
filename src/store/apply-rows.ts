/**
 * The table `apply_undo`: rows as they were before an apply changed or deleted them. What is encrypted stays so. Rows
 * that were deleted are put back as they were, with their ids and all that belongs to them.
 */
import type { InstallationObject, ObjectChange } from '../apply/objects.js';
import type { Store } from './database.js';
import type { DesiredDeployment } from './endpoint-runs.js';
import type { OwnedVariable } from './variables.js';

type Kind = InstallationObject['kind'];

/** The table of each kind of object. */
export const TABLE_OF: Readonly<Record<Kind, string>> = {
  domain: 'domains',
  collection: 'collections',
  endpoint: 'endpoints',
  service: 'services',
};

interface OwnedTable {
  readonly table: string;
  /** The column with the id of the object. */
  readonly owner: string;
  readonly sealed?: string;
  readonly where?: string;
}

/** What is deleted with an object. In the order in which rows are put back, with those of other kinds. */
const OWNED: readonly (OwnedTable & { readonly kind: Kind })[] = [
  { kind: 'service', table: 'services', owner: 'id', sealed: 'config_encrypted' },
  { kind: 'service', table: 'service_secrets', owner: 'service_id' },
  { kind: 'domain', table: 'domains', owner: 'id' },
  { kind: 'domain', table: 'domain_keys', owner: 'domain_id' },
  { kind: 'domain', table: 'certificates', owner: 'domain_id', sealed: 'key_encrypted' },
  { kind: 'collection', table: 'collections', owner: 'id' },
  { kind: 'endpoint', table: 'endpoints', owner: 'id' },
  { kind: 'endpoint', table: 'endpoint_versions', owner: 'endpoint_id' },
  { kind: 'endpoint', table: 'deployments', owner: 'endpoint_id' },
  { kind: 'domain', table: 'variables', owner: 'domain_id', sealed: 'value_encrypted' },
  { kind: 'collection', table: 'variables', owner: 'collection_id', sealed: 'value_encrypted' },
  { kind: 'endpoint', table: 'variables', owner: 'endpoint_id', sealed: 'value_encrypted' },
  { kind: 'endpoint', table: 'endpoint_services', owner: 'endpoint_id' },
  { kind: 'service', table: 'endpoint_services', owner: 'service_id' },
  { kind: 'endpoint', table: 'schedules', owner: 'endpoint_id' },
  {
    ...{ kind: 'endpoint', table: 'jobs', owner: 'endpoint_id' },
    where: "state IN ('queued', 'running')",
  },
];

/** Saves the rows of all objects that are changed or deleted. */
export async function saveRows(tx: Store, applyId: string, changes: readonly ObjectChange[]): Promise<void> {
  let position = 0;
  for (const { kind, table, owner, sealed, where } of OWNED) {
    const ids = changes.flatMap(({ action, id, before }) => {
      if (id === null || before?.kind !== kind || action === 'create') return [];
      // When an object only changes, its own row tells all that the object does not.
      return action === 'delete' || owner === 'id' ? [id] : [];
    });
    if (ids.length === 0) continue;
    const { rowCount } = await tx.knex.raw<{ rowCount: number }>(
      `INSERT INTO apply_undo (apply_id, position, table_name, object_id, row, sealed)
       SELECT ?, ? + row_number() OVER (), ?, ??, to_jsonb(saved) - ?::text, ${sealed ?? 'NULL'}
         FROM ?? AS saved WHERE ?? = ANY(?)${where ? ` AND ${where}` : ''}`,
      [applyId, position, table, owner, sealed ?? '', table, owner, ids] as never[],
    );
    position += rowCount;
  }
}

/** A row as it was. */
export interface SavedRow {
  readonly object_id: string;
  readonly row: Readonly<Record<string, unknown>>;
  readonly sealed: string | null;
}

/** The rows of objects themselves. */
export async function savedObjects(
  store: Store,
  applyId: string,
  kind: 'endpoint' | 'service',
): Promise<ReadonlyMap<string, SavedRow>> {
  const rows = await store
    .knex('apply_undo')
    .where({ apply_id: applyId, table_name: TABLE_OF[kind] })
    .select<SavedRow[]>('object_id', 'row', 'sealed');
  return new Map(rows.map((row) => [row.object_id, row]));
}

/** The `table_name` of what is no row, only the config that an apply has written, to tell it from later ones. */
const WRITTEN_CONFIG = 'services as written';

/** Saves what configs services have after an apply. */
export async function saveWrittenConfigs(
  tx: Store,
  applyId: string,
  changes: readonly ObjectChange[],
): Promise<void> {
  const ids = changes.flatMap(({ action, id, after }) =>
    action === 'update' && after?.kind === 'service' && id !== null ? [id] : [],
  );
  if (ids.length === 0) return;
  await tx.knex.raw(
    `INSERT INTO apply_undo (apply_id, position, table_name, object_id, row, sealed)
     SELECT ?, (SELECT coalesce(max(position), 0) FROM apply_undo WHERE apply_id = ?) + row_number() OVER (), ?,
            id, '{}', config_encrypted
       FROM services WHERE id = ANY(?)`,
    [applyId, applyId, WRITTEN_CONFIG, ids] as never[],
  );
}

/** Configs that an apply has written, encrypted, by the ids of services. */
export async function writtenConfigs(store: Store, applyId: string): Promise<ReadonlyMap<string, string>> {
  const rows = await store
    .knex('apply_undo')
    .where({ apply_id: applyId, table_name: WRITTEN_CONFIG })
    .select<{ object_id: string; sealed: string }[]>('object_id', 'sealed');
  return new Map(rows.map(({ object_id, sealed }) => [object_id, sealed]));
}

/** SQL: what endpoints served before applies. Of those that applies have deleted, deployments are saved rows, too. */
export const SERVED_BEFORE = `
  SELECT endpoint.apply_id, endpoint.object_id AS endpoint_id, served.targets, served.sticky
    FROM apply_undo AS endpoint CROSS JOIN LATERAL (
      SELECT targets, sticky FROM deployments WHERE id = (endpoint.row->>'desired_deployment_id')::uuid
      UNION ALL
      SELECT row->'targets', nullif(row->'sticky', 'null') FROM apply_undo AS deployment
       WHERE deployment.apply_id = endpoint.apply_id AND deployment.table_name = 'deployments'
         AND deployment.object_id = endpoint.object_id
         AND deployment.row->>'id' = endpoint.row->>'desired_deployment_id'
      LIMIT 1) AS served
   WHERE endpoint.table_name = 'endpoints'`;

/** What endpoints served before an apply, by their ids: of those whose versions are there, or come back with them. */
export async function servedBefore(
  store: Store,
  applyId: string,
): Promise<ReadonlyMap<string, Pick<DesiredDeployment, 'targets' | 'sticky'>>> {
  const { rows } = await store.knex.raw<{
    rows: (Pick<DesiredDeployment, 'targets' | 'sticky'> & { readonly endpoint_id: string })[];
  }>(
    `SELECT endpoint_id, targets, sticky FROM (${SERVED_BEFORE}) AS served
      WHERE apply_id = ? AND jsonb_array_length(targets) > 0
        AND NOT EXISTS (
          SELECT FROM jsonb_array_elements(targets) AS target
           WHERE NOT EXISTS (
             SELECT FROM endpoint_versions
              WHERE endpoint_versions.endpoint_id = served.endpoint_id
                AND endpoint_versions.version = (target->>'version')::integer)
             AND NOT EXISTS (
             SELECT FROM apply_undo
              WHERE apply_undo.apply_id = served.apply_id AND table_name = 'endpoint_versions'
                AND object_id = served.endpoint_id AND row->'version' = target->'version'))`,
    [applyId],
  );
  return new Map(rows.map(({ endpoint_id, ...served }) => [endpoint_id, served]));
}

/** Variables of objects that an apply has deleted, as they come back. */
export async function savedVariables(
  store: Store,
  applyId: string,
  ids: readonly string[],
): Promise<OwnedVariable[]> {
  const { rows } = await store.knex.raw<{ rows: OwnedVariable[] }>(
    `SELECT object_id AS owner_id, row->>'name' AS name, row->>'value' AS value, sealed AS value_encrypted
       FROM apply_undo WHERE apply_id = ? AND table_name = 'variables' AND object_id = ANY(?)`,
    [applyId, [...ids]] as never[],
  );
  return rows;
}

/** Columns of objects that are set when all is back: they refer to rows of other tables. */
const LATER = ['desired_deployment_id', 'confirmed_deployment_id', 'desired_artifact'] as const;

/**
 * Puts deleted objects back, with all that belonged to them.
 * @param runs whether endpoints serve again what they served; otherwise they are stopped
 * @returns the objects that were put back
 */
export async function restoreRows(
  tx: Store,
  applyId: string,
  objectIds: readonly string[],
  runs: boolean,
): Promise<void> {
  const ids = [...objectIds];
  for (const { kind, table, owner, sealed } of OWNED) {
    const isObject = owner === 'id';
    const counts = table === 'endpoints' || table === 'services';
    const changed = [
      isObject ? `- ${LATER.map((column) => `'${column}'`).join(' - ')}` : '',
      // Later than what processes have seen of it.
      counts ? `|| jsonb_build_object('version', (row->>'version')::integer + 1)` : '',
      sealed ? `|| jsonb_build_object('${sealed}', sealed)` : '',
      ...(FORGOTTEN[table] ?? []).map(
        ([column, other]) => `|| CASE WHEN EXISTS (SELECT FROM ${other} WHERE id = (row->>'${column}')::uuid)
          THEN '{}' ELSE '{"${column}": null}' END::jsonb`,
      ),
      table === 'endpoints' && !runs ? `|| '{"status": "stopped", "last_error": null}'` : '',
    ].join(' ');
    const references = [
      REFERENCES[table] ?? 'true',
      // The object itself may not have come back.
      isObject ? 'true' : `EXISTS (SELECT FROM ${TABLE_OF[kind]} WHERE id = object_id)`,
    ].join(' AND ');
    const { rowCount } = await tx.knex.raw<{ rowCount: number }>(
      `INSERT INTO ?? SELECT (jsonb_populate_record(NULL::${table}, row ${changed})).*
         FROM apply_undo WHERE apply_id = ? AND table_name = ? AND object_id = ANY(?)
          AND row ->> ? = object_id::text AND ${references}
        ORDER BY position ON CONFLICT DO NOTHING`,
      [table, applyId, table, ids, owner] as never[],
    );
    // Gateways read all there are.
    if (table === 'certificates' && rowCount > 0) tx.announce('certificate', applyId);
  }
  if (runs) await restoreRunning(tx, applyId, ids);
  for (const topic of ['service', 'endpoint'] as const)
    for (const [id] of await savedObjects(tx, applyId, topic)) if (ids.includes(id)) tx.announce(topic, id);
}

/** What a row refers to may have been deleted since by others. */
const REFERENCES: Readonly<Record<string, string>> = {
  collections: `EXISTS (SELECT FROM domains WHERE id = (row->>'domain_id')::uuid)`,
  endpoints: `(row->>'collection_id' IS NULL
    OR EXISTS (SELECT FROM collections WHERE id = (row->>'collection_id')::uuid))`,
  endpoint_services: `EXISTS (SELECT FROM services WHERE id = (row->>'service_id')::uuid)
    AND EXISTS (SELECT FROM endpoints WHERE id = (row->>'endpoint_id')::uuid)`,
  service_secrets: `EXISTS (SELECT FROM installation_secrets WHERE name = row->>'secret_name')`,
};

/** Columns that refer to what is forgotten after a while: then they are empty. */
const FORGOTTEN: Readonly<Record<string, readonly (readonly [column: string, table: string])[]>> = {
  endpoints: [
    ['build_id', 'builds'],
    ['imported_document_id', 'imported_documents'],
  ],
  deployments: [['apply_id', 'applies']],
  jobs: [['schedule_id', 'schedules']],
};

/** Has endpoints serve again what they served before the apply. */
export async function restoreRunning(
  tx: Store,
  applyId: string,
  endpointIds: readonly string[],
): Promise<void> {
  const { rows } = await tx.knex.raw<{ rows: { id: string }[] }>(
    `UPDATE endpoints SET desired_deployment_id = (row->>'desired_deployment_id')::uuid,
            confirmed_deployment_id = (row->>'confirmed_deployment_id')::uuid,
            desired_artifact = row->>'desired_artifact', status = row->>'status', last_error = row->>'last_error',
            version = endpoints.version + 1
       FROM apply_undo
      WHERE apply_id = ? AND table_name = 'endpoints' AND object_id = endpoints.id AND endpoints.id = ANY(?)
        AND endpoints.desired_deployment_id IS NULL
        AND EXISTS (SELECT FROM deployments WHERE id = (row->>'desired_deployment_id')::uuid)
     RETURNING endpoints.id`,
    [applyId, [...endpointIds]] as never[],
  );
  for (const { id } of rows) tx.announce('endpoint', id);
}

/** Forgets queued requests of what was deleted: they are needed only while all may still be undone. */
export async function forgetJobs(tx: Store, applyId: string): Promise<void> {
  await tx.knex('apply_undo').where({ apply_id: applyId, table_name: 'jobs' }).delete();
}
