/** Attempts of builds: what workers claim, finish, and find abandoned. */
import type { ErrorCode } from '../errors.js';
import type { Diagnostic } from '../model/diagnostic.js';
import { type FileRef, SOURCE_MEMBERS } from '../model/source-files.js';
import { type Build, type BuildAttempt, type BuildResult, type BuildTimings, findBuild } from './builds.js';
import { type Store, transaction } from './database.js';
import { type TurnsOf, turnBy } from './owners.js';
import { addCompiledVersions } from './versions.js';

/** The result of a build that somebody has ended early. */
export const CANCELLED = {
  state: 'failed',
  errorCode: 'build_cancelled',
  error: 'The build was cancelled before it had ended. Compile again if the result is wanted after all.',
  diagnostics: [],
  timings: {},
} as const satisfies BuildResult;

const CLAIMED = [
  'id',
  'attempt',
  ...(['source_key', 'draft_key', 'base_lock', 'resolves_anew'] as const),
  ...SOURCE_MEMBERS,
  ...(['owner', 'principal', 'request_id'] as const),
] as const;
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

/** What versions have of a build. */
const FINISHED = ['source_key', 'draft_key', ...SOURCE_MEMBERS, 'actor'] as const;

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
          ? {
              ...{ artifact: result.artifact, cached: result.cached },
              ...(result.resolvedLock && {
                resolved_lock: JSON.stringify(result.resolvedLock) as unknown as FileRef,
              }),
            }
          : { error_code: result.errorCode, error: result.error }),
      })
      .returning<Pick<Build, (typeof FINISHED)[number]>[]>([...FINISHED]);
    if (!build) return false;
    // A separate statement, whose snapshot includes endpoints that joined while the first one waited for the row lock.
    if (result.state === 'succeeded') {
      const { source_key, draft_key, ...source } = build;
      const { artifact, resolvedLock = null } = result;
      const compiled = { sourceKey: draft_key ?? source_key, ...source, artifact, resolvedLock };
      await addCompiledVersions(tx, { build: id }, compiled);
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

/** The build that was queued first, of each owner or part of one that has only queued builds for so long. */
export async function buildsOfWaitingOwners(
  store: Store,
  sinceMs: number,
  limit: number,
  turnsOf: TurnsOf = 'owners',
): Promise<(BuildAttempt & { readonly request_id: string })[]> {
  const { rows } = await store.knex.raw(
    `WITH unfinished AS (
       SELECT id, attempt, request_id, state, queued_at, ${turnBy(turnsOf, 'principal', 'owner')} AS turn
         FROM builds WHERE state IN ('queued', 'running'))
     SELECT id, attempt, request_id FROM (
       SELECT DISTINCT ON (turn) id, attempt, request_id, queued_at FROM unfinished AS waiting
        WHERE state = 'queued' AND queued_at < clock_timestamp() - :sinceMs * interval '1 millisecond'
          AND NOT EXISTS (SELECT FROM unfinished WHERE state = 'running' AND turn = waiting.turn)
        ORDER BY turn, queued_at) AS firsts
      ORDER BY queued_at LIMIT :limit`,
    { sinceMs, limit },
  );
  return rows;
}

/** A failure of the service says nothing about an endpoint: its status stays. */
function isFaultOfHandler(code: ErrorCode): boolean {
  return code === 'compile_failed' || code === 'compile_timeout' || code === 'crates_timeout';
}

async function failEndpointsOf(tx: Store, build: string, error: string): Promise<void> {
  // Endpoints are locked in the order of their ids everywhere, to avoid deadlocks.
  const locked = await tx.knex('endpoints').where({ build_id: build }).orderBy('id').forUpdate().pluck('id');
  if (locked.length === 0) return;
  await tx.knex('endpoints').whereIn('id', locked).update({ status: 'error', last_error: error });
}
