/**
 * The table `import_handlers`: the progress of the handlers of imported bundles. Each change increments the version of
 * the import in the same statement, so that versions are seen in order.
 */
import type { Store } from './database.js';
import type { ImportedRow } from './imported-endpoints.js';
import { ownerOfHost, type TurnsOf, turnBy } from './owners.js';

export type ImportHandlerState = 'queued' | 'compiling' | 'compiled' | 'starting' | 'started' | 'failed';
export type HandlerStage = 'compile' | 'start';

/** A row. */
export interface ImportHandler {
  readonly import_id: string;
  readonly endpoint_id: string;
  readonly position: number;
  readonly name: string;
  /** Its path in the bundle. */
  readonly file: string;
  readonly state: ImportHandlerState;
  /** Where and why it failed. */
  readonly stage: HandlerStage | null;
  readonly message: string | null;
  readonly build_id: string | null;
  readonly worker_id: string | null;
  readonly attempt: number;
  /** The version of the import that its last change made. */
  readonly version: number;
  readonly queued_at: Date;
  readonly finished_at: Date | null;
}

/** One attempt of a handler; jobs refer to it. */
export interface HandlerAttempt {
  readonly importId: string;
  readonly endpointId: string;
  readonly attempt: number;
  /** The name of the endpoint, for the dashboard. */
  readonly endpoint?: string;
}

/** The input of a worker that has claimed a handler. */
export interface ClaimedHandler {
  readonly start: boolean;
  readonly request_id: string;
  /** Who asked for the import; null: it is not known. */
  readonly principal: string | null;
}

/** How a handler ended. */
export type HandlerResult =
  | { readonly state: 'compiled' | 'started' }
  | { readonly state: 'failed'; readonly stage: HandlerStage; readonly message: string };

/** How many handlers of an import are in which state. */
export type ImportHandlerCounts = Readonly<Record<ImportHandlerState, number>>;

/** Inserts rows for the endpoints that have a handler. */
export async function insertHandlers(
  tx: Store,
  importId: string,
  endpoints: readonly ImportedRow[],
): Promise<void> {
  const rows = endpoints.flatMap(({ id, name, handler }, position) =>
    handler === null ? [] : [{ endpoint_id: id, position, name, file: handler }],
  );
  await tx.knex.raw(
    `INSERT INTO import_handlers (import_id, endpoint_id, position, name, file)
     SELECT ?, endpoint_id, position, name, file
       FROM json_to_recordset(?::json) AS added (endpoint_id uuid, position integer, name text, file text)`,
    [importId, JSON.stringify(rows)],
  );
}

/** All handlers of an import, or those that changed after a version of it. */
export async function handlersOf(store: Store, importId: string, after = 0): Promise<ImportHandler[]> {
  return store
    .knex<ImportHandler>('import_handlers')
    .where({ import_id: importId })
    .where('version', '>', after)
    .orderBy('position');
}

export async function countHandlers(store: Store, importId: string): Promise<ImportHandlerCounts> {
  const rows = await store
    .knex('import_handlers')
    .where({ import_id: importId })
    .groupBy('state')
    .select<{ state: ImportHandlerState; count: number }[]>('state', store.knex.raw('count(*) AS count'));
  const none = { queued: 0, compiling: 0, compiled: 0, starting: 0, started: 0, failed: 0 };
  return { ...none, ...Object.fromEntries(rows.map(({ state, count }) => [state, count])) };
}

/**
 * Claims a queued handler for a worker; undefined when another worker claimed it, or this attempt is no longer current.
 */
export async function claimHandler(
  store: Store,
  attempt: HandlerAttempt,
  workerId: string,
): Promise<ClaimedHandler | undefined> {
  const { rows } = await store.knex.raw<{ rows: ClaimedHandler[] }>(
    `WITH changed AS (
       UPDATE imports SET version = version + 1, state = 'running' WHERE id = ? AND finished_at IS NULL
       RETURNING id, version, start, request_id, principal)
     UPDATE import_handlers SET state = 'compiling', worker_id = ?, version = changed.version FROM changed
      WHERE import_id = changed.id AND endpoint_id = ? AND attempt = ? AND import_handlers.state = 'queued'
     RETURNING changed.start, changed.request_id, changed.principal`,
    [attempt.importId, workerId, attempt.endpointId, attempt.attempt],
  );
  if (rows[0]) store.announce('import', attempt.importId);
  return rows[0];
}

/** Records the progress of a handler. */
export async function advanceHandler(
  store: Store,
  attempt: HandlerAttempt,
  progress: { readonly state: 'compiling' | 'compiled' | 'starting'; readonly buildId: string },
): Promise<void> {
  await change(store, attempt, 'state = ?, build_id = ?', [progress.state, progress.buildId]);
}

/**
 * Ends a handler.
 * @returns false when it had ended, or this attempt is no longer current
 */
export async function finishHandler(
  store: Store,
  attempt: HandlerAttempt,
  result: HandlerResult,
): Promise<boolean> {
  const { stage, message } = result.state === 'failed' ? result : { stage: null, message: null };
  return change(store, attempt, 'state = ?, stage = ?, message = ?, finished_at = clock_timestamp()', [
    result.state,
    stage,
    message,
  ]);
}

/** Starts a new attempt of an abandoned handler; undefined when it has changed meanwhile. */
export async function requeueHandler(
  store: Store,
  attempt: HandlerAttempt,
): Promise<HandlerAttempt | undefined> {
  const isRequeued = await change(
    store,
    attempt,
    "state = 'queued', attempt = attempt + 1, worker_id = NULL, queued_at = clock_timestamp()",
    [],
  );
  return isRequeued ? { ...attempt, attempt: attempt.attempt + 1 } : undefined;
}

/** A handler whose job may be lost. */
export interface UnfinishedHandler extends HandlerAttempt {
  readonly requestId: string;
  readonly state: ImportHandlerState;
  /** Its worker has ended. */
  readonly isAbandoned: boolean;
}

/** The handlers that a worker has claimed and not ended. */
export async function unfinishedHandlersOf(store: Store, workerId: string): Promise<UnfinishedHandler[]> {
  const { rows } = await store.knex.raw<{ rows: UnfinishedHandler[] }>(
    `SELECT import_id AS "importId", endpoint_id AS "endpointId", attempt, imports.request_id AS "requestId",
            name AS endpoint, import_handlers.state, false AS "isAbandoned"
       FROM import_handlers JOIN imports ON imports.id = import_id
      WHERE import_handlers.finished_at IS NULL AND worker_id = ?`,
    [workerId],
  );
  return rows;
}

/**
 * Unfinished handlers whose worker has ended, or that were queued longer ago than this; the longest waiting first, at
 * most `limit`.
 */
export async function unfinishedHandlers(
  store: Store,
  liveWorkers: readonly string[],
  olderThanMs: number,
  limit: number,
): Promise<UnfinishedHandler[]> {
  const { rows } = await store.knex.raw<{ rows: UnfinishedHandler[] }>(
    `SELECT * FROM (
       SELECT import_id AS "importId", endpoint_id AS "endpointId", attempt, imports.request_id AS "requestId",
              name AS endpoint, import_handlers.state, coalesce(worker_id <> ALL(?::uuid[]), false) AS "isAbandoned", queued_at
         FROM import_handlers JOIN imports ON imports.id = import_id
        WHERE import_handlers.finished_at IS NULL) AS unfinished
      WHERE "isAbandoned" OR queued_at < clock_timestamp() - ? * interval '1 millisecond'
      ORDER BY "isAbandoned" DESC, queued_at LIMIT ?`,
    [[...liveWorkers], olderThanMs, limit],
  );
  return rows;
}

/** The handler that was queued first, of each owner or part for whom none is worked on, if that was so long ago. */
export async function handlersOfWaitingOwners(
  store: Store,
  sinceMs: number,
  limit: number,
  turnsOf: TurnsOf = 'owners',
): Promise<(HandlerAttempt & { readonly requestId: string })[]> {
  const { rows } = await store.knex.raw(
    `WITH unfinished AS (
       SELECT import_handlers.*, imports.request_id,
              ${turnBy(turnsOf, 'imports.principal', ownerOfHost('endpoints.domain'))} AS turn
         FROM import_handlers JOIN imports ON imports.id = import_id JOIN endpoints ON endpoints.id = endpoint_id
        WHERE import_handlers.finished_at IS NULL)
     SELECT "importId", "endpointId", attempt, "requestId" FROM (
       SELECT DISTINCT ON (turn) import_id AS "importId", endpoint_id AS "endpointId", attempt,
              request_id AS "requestId", queued_at
         FROM unfinished
        WHERE unfinished.state = 'queued' AND queued_at < clock_timestamp() - :sinceMs * interval '1 ms'
          AND turn NOT IN (SELECT turn FROM unfinished WHERE worker_id IS NOT NULL)
        ORDER BY turn, queued_at, position) AS firsts
      ORDER BY queued_at LIMIT :limit`,
    { sinceMs, limit },
  );
  return rows;
}

async function change(
  store: Store,
  { importId, endpointId, attempt }: HandlerAttempt,
  assignments: string,
  values: readonly (string | null)[],
): Promise<boolean> {
  const { rowCount } = await store.knex.raw<{ rowCount: number }>(
    `WITH changed AS (
       UPDATE imports SET version = version + 1 WHERE id = ? AND finished_at IS NULL RETURNING id, version)
     UPDATE import_handlers SET ${assignments}, version = changed.version FROM changed
      WHERE import_id = changed.id AND endpoint_id = ? AND attempt = ? AND import_handlers.finished_at IS NULL`,
    [importId, ...values, endpointId, attempt] as never[],
  );
  if (rowCount > 0) store.announce('import', importId);
  return rowCount > 0;
}
