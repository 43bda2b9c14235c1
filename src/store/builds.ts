/** The table `builds`: requested builds and their outcomes. */

import { AppError, type ErrorCode } from '../errors.js';
import type { Origin, StoredActor } from '../model/actor.js';
import type { Dependencies } from '../model/crates.js';
import type { Diagnostic } from '../model/diagnostic.js';
import { titleOfOwner } from '../model/owner.js';
import type { Scope } from '../model/permission.js';
import type { Artifact } from './artifacts.js';
import { type Store, transaction } from './database.js';
import { findOwnerOfHost } from './owners.js';
import { byCreation, type ListOptions, type Page, readPage } from './pages.js';
import { addCompiledVersions } from './versions.js';
import { visible } from './visibility.js';

export type BuildState = 'queued' | 'running' | 'succeeded' | 'failed';

/** Milliseconds of the parts of a build. */
export interface BuildTimings {
  /** Preparing the dependency set. */
  readonly dependencies_ms?: number;
  /** The run of rustc. */
  readonly compile_ms?: number;
  /** Digesting and storing the executable. */
  readonly store_ms?: number;
}

/** A row. */
export interface Build {
  readonly id: string;
  readonly source_key: string;
  readonly code: string;
  readonly dependencies: Dependencies;
  readonly state: BuildState;
  readonly attempt: number;
  /** Whose turn it takes; null: an earlier version asked for it. */
  readonly owner: string | null;
  readonly request_id: string;
  /** Who asked for it; null: not known. */
  readonly actor: StoredActor | null;
  readonly cached: boolean;
  readonly error_code: ErrorCode | null;
  readonly error: string | null;
  readonly diagnostics: Diagnostic[];
  readonly artifact: string | null;
  readonly timings: BuildTimings;
  readonly worker_id: string | null;
  readonly created_at: Date;
  /** When its latest attempt was put on the queue. */
  readonly queued_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
}

const SUMMARY = [
  ...(['id', 'state', 'cached', 'attempt', 'error_code', 'artifact', 'request_id'] as const),
  ...(['created_at', 'started_at', 'finished_at'] as const),
] as const;
export type BuildSummary = Pick<Build, (typeof SUMMARY)[number]>;

/** A source to compile. */
export interface CompilableSource {
  readonly sourceKey: string;
  readonly code: string;
  readonly dependencies: Dependencies;
}

export interface BuildRequest extends CompilableSource {
  /** The endpoint whose draft it is; null when the outcome is written to none. */
  readonly endpointId: string | null;
  /** The host that its endpoint is served at, or `*`: whose turn it takes follows from it. */
  readonly host: string;
  readonly origin: Origin;
}

/** How a build ended. */
export type BuildResult =
  | {
      readonly state: 'succeeded';
      readonly artifact: string;
      readonly diagnostics: readonly Diagnostic[];
      readonly cached: boolean;
      readonly timings: BuildTimings;
    }
  | {
      readonly state: 'failed';
      readonly errorCode: ErrorCode;
      readonly error: string;
      readonly diagnostics: readonly Diagnostic[];
      readonly timings: BuildTimings;
    };

/** Of a build that somebody has ended early. */
export const CANCELLED = {
  state: 'failed',
  errorCode: 'build_cancelled',
  error: 'The build was cancelled before it had ended. Compile again if the result is wanted after all.',
  diagnostics: [],
  timings: {},
} as const satisfies BuildResult;

/** One attempt of a build; jobs refer to it. */
export interface BuildAttempt {
  readonly id: string;
  readonly attempt: number;
}

/**
 * Joins the build in progress for the same source, or creates a new one, and makes it the latest of the endpoint whose
 * draft it is.
 * @param limit of builds of the owner that have not ended
 * @returns the build, and whether it is new and has to be put on the queue
 * @throws AppError queue_full
 */
export async function requestBuild(
  store: Store,
  request: BuildRequest,
  limit?: number,
): Promise<BuildAttempt & { readonly isNew: boolean }> {
  const owner = await findOwnerOfHost(store, request.host);
  const { rows } = await store.knex.raw<{ rows: (BuildAttempt & { isNew: boolean })[] }>(
    `WITH build AS (
       INSERT INTO builds (source_key, code, dependencies, state, owner, request_id, actor)
       SELECT :sourceKey, :code, :dependencies::jsonb, 'queued', :owner, :requestId, :actor::jsonb
        WHERE :limit::integer IS NULL
           OR EXISTS (SELECT FROM builds WHERE source_key = :sourceKey AND state IN ('queued', 'running'))
           OR (SELECT count(*) FROM builds WHERE owner = :owner AND state IN ('queued', 'running')) < :limit
       ON CONFLICT (source_key) WHERE state IN ('queued', 'running') DO UPDATE SET source_key = excluded.source_key
       RETURNING id, attempt, xmax = 0 AS "isNew"),
     latest AS (
       UPDATE endpoints SET build_id = build.id, build_actor = :actor::jsonb FROM build
        WHERE endpoints.id = :endpointId::uuid)
     SELECT * FROM build`,
    {
      ...{
        sourceKey: request.sourceKey,
        code: request.code,
        dependencies: JSON.stringify(request.dependencies),
      },
      ...{ owner, endpointId: request.endpointId, limit: limit ?? null },
      ...{ requestId: request.origin.requestId, actor: JSON.stringify(request.origin.actor) },
    } as never,
  );
  const [build] = rows;
  if (build) return build;
  throw new AppError(
    'queue_full',
    `Endpoints of ${titleOfOwner(owner)} have ${limit} builds that have not ended (BUILDS_QUEUED_LIMIT); try again later.`,
  );
}

/**
 * Records a build that needed no compiler: the artifact of the same source is known.
 * @returns the build; undefined when the artifact was deleted meanwhile
 */
export async function recordCachedBuild(
  store: Store,
  request: BuildRequest,
  known: Artifact,
): Promise<string | undefined> {
  const { endpointId, origin, ...source } = request;
  return transaction(store, async (tx) => {
    const id = await insertCachedBuild(tx, request, known);
    if (id !== undefined && endpointId !== null)
      await addCompiledVersions(tx, id, { ...source, artifact: known.digest, actor: origin.actor });
    return id;
  });
}

/** Makes it the latest build of the endpoint, too. */
async function insertCachedBuild(
  tx: Store,
  request: BuildRequest,
  known: Artifact,
): Promise<string | undefined> {
  const { rows } = await tx.knex.raw<{ rows: { id: string }[] }>(
    `WITH known AS (
       SELECT digest FROM artifacts WHERE source_key = ? AND toolchain = ? AND digest = ? FOR KEY SHARE),
     build AS (
       INSERT INTO builds (source_key, code, dependencies, state, cached, request_id, actor, artifact, diagnostics,
                           started_at, finished_at)
       SELECT ?, ?, ?::jsonb, 'succeeded', true, ?, ?::jsonb, digest, ?::jsonb, clock_timestamp(), clock_timestamp()
         FROM known RETURNING id),
     latest AS (
       UPDATE endpoints SET build_id = build.id, build_actor = ?::jsonb FROM build WHERE endpoints.id = ?)
     SELECT id FROM build`,
    [
      ...[known.source_key, known.toolchain, known.digest],
      ...[request.sourceKey, request.code, JSON.stringify(request.dependencies)],
      ...[request.origin.requestId, JSON.stringify(request.origin.actor), JSON.stringify(known.diagnostics)],
      ...[JSON.stringify(request.origin.actor), request.endpointId],
    ] as never[],
  );
  return rows[0]?.id;
}

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

export async function findBuild(store: Store, id: string): Promise<Build | undefined> {
  return store.knex<Build>('builds').where({ id }).first();
}

/** An endpoint that a build is of. */
export interface BuiltEndpoint {
  readonly id: string;
  readonly name: string;
}

/** The visible endpoints whose latest build is one of these, by build. */
export async function endpointsOfBuilds(
  store: Store,
  ids: readonly string[],
  scope: Scope,
): Promise<ReadonlyMap<string, readonly BuiltEndpoint[]>> {
  const query = store
    .knex<BuiltEndpoint & { readonly build_id: string }>('endpoints')
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
): Promise<ReadonlyMap<string, readonly BuiltEndpoint[]>> {
  if (ids.length === 0) return new Map();
  const { knex } = store;
  const owners = knex.raw(
    `SELECT builds.id AS build_id, endpoints.id AS endpoint_id
       FROM builds JOIN endpoints USING (source_key) WHERE builds.id = ANY(:ids)
      UNION
     SELECT builds.id, endpoint_id FROM builds JOIN endpoint_versions USING (source_key) WHERE builds.id = ANY(:ids)`,
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
    .select<(BuiltEndpoint & { readonly build_id: string })[]>('id', 'name', 'build_id');
  return byBuild(rows);
}

function byBuild(rows: readonly (BuiltEndpoint & { readonly build_id: string })[]) {
  const found = new Map<string, BuiltEndpoint[]>();
  for (const { build_id, ...endpoint } of rows)
    found.set(build_id, [...(found.get(build_id) ?? []), endpoint]);
  return found;
}

const CLAIMED = ['id', 'attempt', 'source_key', 'code', 'dependencies', 'owner', 'request_id'] as const;
/** What a worker needs to know of a build. */
export type ClaimedBuild = Pick<Build, (typeof CLAIMED)[number]>;

/**
 * Claims a queued build for a worker; undefined when another worker claimed it, or this attempt is no longer current.
 */
export async function claimBuild(
  store: Store,
  { id, attempt }: BuildAttempt,
  workerId: string,
): Promise<ClaimedBuild | undefined> {
  const [build] = await store
    .knex<Build>('builds')
    .where({ id, attempt, state: 'queued' })
    .update({
      state: 'running',
      worker_id: workerId,
      started_at: store.knex.raw('clock_timestamp()') as unknown as Date,
    })
    .returning(CLAIMED);
  return build;
}

/**
 * Ends a build and writes its outcome to the endpoints that wait for it.
 * @returns false, without effect, when the attempt is no longer current
 */
export async function finishBuild(
  store: Store,
  { id, attempt }: BuildAttempt,
  result: BuildResult,
): Promise<boolean> {
  return transaction(store, async (tx) => {
    const [build] = await tx
      .knex<Build>('builds')
      .where({ id, attempt })
      .whereIn('state', ['queued', 'running'])
      .update({
        state: result.state,
        diagnostics: JSON.stringify(result.diagnostics) as unknown as Diagnostic[],
        timings: JSON.stringify(result.timings) as unknown as BuildTimings,
        finished_at: tx.knex.raw('clock_timestamp()') as unknown as Date,
        ...(result.state === 'succeeded'
          ? { artifact: result.artifact, cached: result.cached }
          : { error_code: result.errorCode, error: result.error }),
      })
      .returning<Pick<Build, 'source_key' | 'code' | 'dependencies' | 'actor'>[]>([
        'source_key',
        'code',
        'dependencies',
        'actor',
      ]);
    if (!build) return false;
    // A separate statement, whose snapshot includes endpoints that joined while the first one waited for the row lock.
    if (result.state === 'succeeded') {
      const { source_key: sourceKey, code, dependencies, actor } = build;
      const { artifact } = result;
      await addCompiledVersions(tx, id, { sourceKey, code, dependencies, artifact, actor });
    } else if (isFaultOfHandler(result.errorCode)) await failEndpointsOf(tx, id, result.error);
    tx.announce('build', id);
    return true;
  });
}

/**
 * Ends a build that is queued or running, whose worker learns of it by the announcement.
 * @returns false, without effect, when it has ended
 */
export async function cancelBuild(store: Store, id: string): Promise<boolean> {
  for (;;) {
    const build = await findBuild(store, id);
    if (build?.state !== 'queued' && build?.state !== 'running') return false;
    // It may have been queued again meanwhile.
    if (await finishBuild(store, build, CANCELLED)) return true;
  }
}

/** Starts a new attempt of an abandoned build; undefined when it has changed meanwhile. */
export async function requeueBuild(
  store: Store,
  { id, attempt }: BuildAttempt,
): Promise<(BuildAttempt & { readonly request_id: string }) | undefined> {
  const [build] = await store
    .knex('builds')
    .where({ id, attempt })
    .whereIn('state', ['queued', 'running'])
    .update({
      ...{ state: 'queued', attempt: attempt + 1, worker_id: null, started_at: null },
      queued_at: store.knex.raw('clock_timestamp()'),
    })
    .returning<(BuildAttempt & { request_id: string })[]>(['id', 'attempt', 'request_id']);
  return build;
}

/** The builds that a worker has claimed and not ended. */
export async function runningBuildsOf(store: Store, workerId: string): Promise<BuildAttempt[]> {
  return store
    .knex('builds')
    .select<BuildAttempt[]>('id', 'attempt')
    .where({ state: 'running', worker_id: workerId });
}

/** Running builds whose worker has ended. */
export async function abandonedBuilds(store: Store, liveWorkers: readonly string[]): Promise<BuildAttempt[]> {
  return store
    .knex('builds')
    .select<BuildAttempt[]>('id', 'attempt')
    .where({ state: 'running' })
    .whereNotIn('worker_id', liveWorkers);
}

/** Builds that were queued longer ago than this, the oldest first, at most `limit`: their job may have been lost. */
export async function longQueuedBuilds(
  store: Store,
  olderThanMs: number,
  limit: number,
): Promise<BuildAttempt[]> {
  return store
    .knex('builds')
    .select<BuildAttempt[]>('id', 'attempt')
    .where({ state: 'queued' })
    .whereRaw("queued_at < clock_timestamp() - ? * interval '1 millisecond'", [olderThanMs])
    .orderBy('queued_at')
    .limit(limit);
}

/** Of each owner that has only queued builds, for so long, that which was queued first. */
export async function buildsOfWaitingOwners(
  store: Store,
  sinceMs: number,
  limit: number,
): Promise<(BuildAttempt & { readonly request_id: string })[]> {
  const { rows } = await store.knex.raw(
    `SELECT id, attempt, request_id FROM (
       SELECT DISTINCT ON (owner) id, attempt, request_id, queued_at FROM builds AS waiting
        WHERE state = 'queued' AND queued_at < clock_timestamp() - :sinceMs * interval '1 millisecond'
          AND NOT EXISTS (SELECT FROM builds WHERE state = 'running' AND owner = waiting.owner)
        ORDER BY owner, queued_at) AS firsts
      ORDER BY queued_at LIMIT :limit`,
    { sinceMs, limit },
  );
  return rows;
}

/** Deletes finished builds older than this, but never the latest of an endpoint. */
export async function pruneBuilds(store: Store, olderThanMs: number): Promise<number> {
  return store
    .knex('builds')
    .whereRaw("finished_at < clock_timestamp() - ? * interval '1 millisecond'", [olderThanMs])
    .whereNotExists(store.knex('endpoints').whereRaw('endpoints.build_id = builds.id'))
    .delete();
}

/** A failure of the service says nothing about an endpoint: its status stays. */
function isFaultOfHandler(code: ErrorCode): boolean {
  return code === 'compile_failed' || code === 'compile_timeout';
}

async function failEndpointsOf(tx: Store, build: string, error: string): Promise<void> {
  // Endpoints are locked in the order of their ids everywhere, to avoid deadlocks.
  const locked = await tx.knex('endpoints').where({ build_id: build }).orderBy('id').forUpdate().pluck('id');
  if (locked.length === 0) return;
  await tx.knex('endpoints').whereIn('id', locked).update({ status: 'error', last_error: error });
}
