/**
 * The table `imports`: imported documents and bundles, and their outcomes. The handlers of bundles are in
 * `import-handlers.ts`.
 */
import type { Store } from './database.js';
import type { EndpointStatus } from './endpoints.js';
import { insertHandlers } from './import-handlers.js';
import type { ImportedRow } from './imported-endpoints.js';

export type ImportState = 'queued' | 'running' | 'succeeded' | 'failed';

/** The changes that were committed together with the row of an import. */
export interface ImportOutcome {
  readonly collection: {
    readonly id: string;
    readonly name: string;
    readonly base_path: string | null;
  } | null;
  readonly created: number;
  readonly updated: number;
  readonly endpoints: readonly ImportedRow[];
  /** Handlers and operations that could not be matched. */
  readonly problems: readonly ImportProblem[];
  /** All of them. */
  readonly warnings: readonly string[];
  /** The kind of each warning; older imports have none. */
  readonly warning_kinds?: readonly string[];
}

export interface ImportProblem {
  readonly endpoint_id: string | null;
  readonly name: string | null;
  readonly handler: string | null;
  readonly message: string;
}

/** A row. */
export interface Import {
  readonly id: string;
  /** Succeeded when every requested step succeeded, else failed. */
  readonly state: ImportState;
  readonly title: string;
  readonly compile: boolean;
  readonly start: boolean;
  readonly request_id: string;
  /** Whose turns its handlers take; null: it is not known. */
  readonly principal: string | null;
  readonly outcome: ImportOutcome;
  /** The status of each endpoint when the import ended; endpoints deleted by then are left out. */
  readonly statuses: Readonly<Record<string, EndpointStatus>> | null;
  /** Incremented with every change, including those of its handlers. */
  readonly version: number;
  readonly created_at: Date;
  readonly finished_at: Date | null;
}

export type NewImport = Pick<
  Import,
  'id' | 'title' | 'compile' | 'start' | 'request_id' | 'principal' | 'outcome'
>;

/**
 * Ends every import whose handlers have all ended, and increments `version`. To be completed with a condition on
 * imports.
 */
const FINISH = `
  UPDATE imports SET
    state = CASE WHEN jsonb_array_length(outcome->'problems') > 0 OR EXISTS (
      SELECT 1 FROM import_handlers WHERE import_id = imports.id AND state = 'failed') THEN 'failed' ELSE 'succeeded' END,
    statuses = (SELECT coalesce(jsonb_object_agg(endpoints.id, endpoints.status), '{}') FROM endpoints
      WHERE endpoints.id IN (SELECT (imported->>'id')::uuid FROM jsonb_array_elements(outcome->'endpoints') AS imported)),
    version = version + 1,
    finished_at = clock_timestamp()
  WHERE finished_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM import_handlers WHERE import_id = imports.id AND finished_at IS NULL)`;

/** Records an import. With `compile`, jobs process its handlers; without, it ends here. */
export async function recordImport(tx: Store, added: NewImport): Promise<void> {
  await tx.knex('imports').insert({ ...added, outcome: JSON.stringify(added.outcome), state: 'queued' });
  if (added.compile) await insertHandlers(tx, added.id, added.outcome.endpoints);
  await finishImport(tx, added.id);
}

export async function findImport(store: Store, id: string): Promise<Import | undefined> {
  return store.knex<Import>('imports').where({ id }).first();
}

/** The progress of an import, without its details. */
export async function importProgress(
  store: Store,
  id: string,
): Promise<Pick<Import, 'state' | 'version' | 'finished_at'> | undefined> {
  return store.knex<Import>('imports').where({ id }).first('state', 'version', 'finished_at');
}

/**
 * Ends an import if all its handlers have ended.
 * @returns whether this call ended it
 */
export async function finishImport(store: Store, id: string): Promise<boolean> {
  const { rowCount } = await store.knex.raw<{ rowCount: number }>(`${FINISH} AND id = ?`, [id]);
  if (rowCount > 0) announceEnd(store, id);
  return rowCount > 0;
}

/**
 * Ends imports that are still open although all their handlers have ended.
 * @returns their ids
 */
export async function finishImports(store: Store): Promise<string[]> {
  const { rows } = await store.knex.raw<{ rows: { id: string }[] }>(`${FINISH} RETURNING id`);
  for (const { id } of rows) announceEnd(store, id);
  return rows.map(({ id }) => id);
}

/** Deletes imports that ended longer ago than this. */
export async function pruneImports(store: Store, olderThanMs: number): Promise<number> {
  return store
    .knex('imports')
    .whereRaw("finished_at < clock_timestamp() - ? * interval '1 millisecond'", [olderThanMs])
    .delete();
}

/** A waiter for the end need not be woken for every handler. */
function announceEnd(store: Store, id: string): void {
  store.announce('import', id);
  store.announce('import_end', id);
}
