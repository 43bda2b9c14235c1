/**
 * The table `jobs`: requests that workers send to handlers. Rows are the truth; what the queue has of them only says
 * when to look. A row that is queued again has a new generation, and what the queue has of an older one does nothing.
 */
import type { HandlerRequest } from '../model/handler-request.js';
import type { Store } from './database.js';
import { ownerOfHost, type TurnsOf, turnBy } from './owners.js';
import { HAS_ROOM, ownerWithoutRoom, queuedBytesOf } from './queued-bytes.js';

export type JobState = 'queued' | 'running' | 'succeeded' | 'failed';

/** A row. */
export interface Job {
  readonly id: string;
  readonly endpoint_id: string;
  readonly schedule_id: string | null;
  /** When a run of a schedule should begin; null: it is none. */
  readonly planned_at: Date | null;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  readonly state: JobState;
  readonly generation: number;
  /** How often it was sent. */
  readonly attempts: number;
  readonly max_attempts: number;
  readonly backoff_ms: number;
  /** When it is sent, while it is queued. */
  readonly run_at: Date;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly request_id: string;
  readonly created_at: Date;
  readonly finished_at: Date | null;
}

/** Without what is sent, which may be long. */
export type JobSummary = Omit<Job, 'body' | 'headers'>;
const SUMMARY = [
  ...(['id', 'endpoint_id', 'schedule_id', 'planned_at', 'method', 'path', 'state', 'generation'] as const),
  ...(['attempts', 'max_attempts', 'backoff_ms', 'run_at', 'last_status', 'last_error'] as const),
  ...(['request_id', 'created_at', 'finished_at'] as const),
] as const;

/** What was put on the queue once; its job refers to it. */
export interface QueuedJob extends Pick<Job, 'id' | 'generation'> {
  /** The name of the endpoint, for the dashboard. */
  readonly endpoint?: string;
}

/** SQL: the columns of a queued job. */
export const QUEUED_JOB = `jobs.id, jobs.generation,
  (SELECT name FROM endpoints WHERE endpoints.id = jobs.endpoint_id) AS endpoint`;

export interface NewJob {
  readonly endpointId: string;
  readonly request: HandlerRequest;
  readonly maxAttempts: number;
  readonly backoffMs: number;
  readonly delayMs: number;
  readonly deduplicationId: string | null;
  readonly requestId: string;
  /** Whose turn it takes, and of theirs that of the domain; null: that of the domain alone. */
  readonly principal: string | null;
}

/** The outcome of an attempt. */
export interface AttemptResult {
  readonly status: number | null;
  readonly error: string | null;
}

/** How much may be queued. */
export interface QueueLimits {
  /** Unfinished jobs of an endpoint. */
  readonly jobs: number;
  /** Bytes of unfinished jobs and schedules of an owner. */
  readonly bytes: number;
}

/** What has no room. */
export type QueueFull = { readonly full: 'endpoint' } | OwnerFull;
export interface OwnerFull {
  readonly full: 'owner';
  readonly owner: string;
  /** What there was to be more. */
  readonly bytes: number;
}

/**
 * Queues a request.
 * @returns the job, or the unfinished one with the same deduplication id; beyond a limit, what is full
 */
export async function insertJob(
  store: Store,
  job: NewJob,
  { jobs: limit, bytes: maxBytes }: QueueLimits,
): Promise<(QueuedJob & { readonly isNew: boolean }) | QueueFull> {
  const { endpointId, request, deduplicationId } = job;
  const bytes = queuedBytesOf(request);
  for (;;) {
    const { rows } = await store.knex.raw<{ rows: QueuedJob[] }>(
      `INSERT INTO jobs (endpoint_id, method, path, headers, body, state, queued_bytes, max_attempts, backoff_ms,
                         run_at, deduplication_id, request_id, principal)
       SELECT ?, ?, ?, ?, ?, 'queued', ?, ?, ?, clock_timestamp() + ? * interval '1 ms', ?, ?, ?
        WHERE (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE endpoint_id = ? AND state IN ('queued', 'running')
                                      LIMIT ?) AS unfinished) < ?
          AND ${HAS_ROOM}
       ON CONFLICT (endpoint_id, deduplication_id)
         WHERE state IN ('queued', 'running') AND deduplication_id IS NOT NULL DO NOTHING
       RETURNING ${QUEUED_JOB}`,
      [
        ...[endpointId, request.method, request.path, JSON.stringify(request.headers), request.body],
        ...[
          bytes,
          job.maxAttempts,
          job.backoffMs,
          job.delayMs,
          deduplicationId,
          job.requestId,
          job.principal,
        ],
        ...[endpointId, limit, limit],
        ...[endpointId, bytes, maxBytes],
      ] as never[],
    );
    if (rows[0]) return { ...rows[0], isNew: true };
    const same =
      deduplicationId === null ? undefined : await unfinishedJob(store, endpointId, deduplicationId);
    if (same) return { ...same, isNew: false };
    const [{ count } = { count: 0 }] = await store
      .knex('jobs')
      .where({ endpoint_id: endpointId })
      .whereIn('state', ['queued', 'running'])
      .count<{ count: number }[]>({ count: '*' });
    if (Number(count) >= limit) return { full: 'endpoint' };
    const owner = await ownerWithoutRoom(store, endpointId, bytes, maxBytes);
    if (owner !== undefined) return { full: 'owner', owner, bytes };
    // What was in the way has just ended.
  }
}

async function unfinishedJob(
  store: Store,
  endpointId: string,
  deduplicationId: string,
): Promise<QueuedJob | undefined> {
  return store
    .knex('jobs')
    .where({ endpoint_id: endpointId, deduplication_id: deduplicationId })
    .whereIn('state', ['queued', 'running'])
    .first<QueuedJob | undefined>('id', 'generation');
}

export async function findJob(store: Store, id: string): Promise<JobSummary | undefined> {
  return store
    .knex<Job>('jobs')
    .where({ id })
    .first(...SUMMARY);
}

/** Those of an endpoint or of a schedule, the newest first. */
export async function latestJobs(
  store: Store,
  of: { readonly endpoint_id: string } | { readonly schedule_id: string },
  limit: number,
): Promise<JobSummary[]> {
  return store
    .knex<Job>('jobs')
    .select(...SUMMARY)
    .where(of)
    .orderBy('endpoint_id' in of ? 'created_at' : 'planned_at', 'desc')
    .orderBy('id')
    .limit(limit);
}

/** Takes a queued job for an attempt; undefined when it is not this generation any more, or another worker has it. */
export async function claimJob(
  store: Store,
  { id, generation }: QueuedJob,
  workerId: string,
): Promise<Job | undefined> {
  const [job] = await store
    .knex<Job>('jobs')
    .where({ id, generation, state: 'queued' })
    // The clocks of machines may differ from that of the database. A job that comes earlier is found again in time.
    .whereRaw(`run_at <= clock_timestamp() + interval '1 second'`)
    .update({
      state: 'running',
      attempts: store.knex.raw('attempts + 1'),
      worker_id: workerId,
    } as never)
    .returning('*');
  return job as Job | undefined;
}

/** Ends a job after an attempt. */
export async function finishJob(
  store: Store,
  { id, generation }: QueuedJob,
  state: 'succeeded' | 'failed',
  { status, error }: AttemptResult,
): Promise<void> {
  await store.knex.raw(
    `UPDATE jobs SET state = ?, last_status = coalesce(?, last_status), last_error = ?, finished_at = clock_timestamp(),
            body = NULL, headers = '{}'
      WHERE id = ? AND generation = ? AND state = 'running'`,
    [state, status, error, id, generation] as never[],
  );
}

/**
 * Queues a running job again.
 * @param counts whether its attempt counts: it does unless the request was not sent
 * @returns what to put on the queue; undefined when it is not this generation any more
 */
export async function requeueJob(
  store: Store,
  { id, generation }: QueuedJob,
  delayMs: number,
  { status, error }: AttemptResult,
  counts = true,
): Promise<QueuedJob | undefined> {
  const { rows } = await store.knex.raw<{ rows: QueuedJob[] }>(
    `UPDATE jobs SET state = 'queued', generation = generation + 1, last_status = coalesce(?, last_status),
            last_error = ?, worker_id = NULL, attempts = attempts - ?, run_at = clock_timestamp() + ? * interval '1 ms'
      WHERE id = ? AND generation = ? AND state IN ('queued', 'running') RETURNING ${QUEUED_JOB}`,
    [status, error, counts ? 0 : 1, delayMs, id, generation] as never[],
  );
  return rows[0];
}

/** Running jobs of workers that are not among these, and those of one of them. */
export async function runningJobs(
  store: Store,
  liveWorkers: readonly string[],
  own: string,
): Promise<{ abandoned: JobSummary[]; own: JobSummary[] }> {
  const running = await store
    .knex<Job & { worker_id: string }>('jobs')
    .select(...SUMMARY, 'worker_id')
    .where({ state: 'running' })
    .where((query) => query.where({ worker_id: own }).orWhereNotIn('worker_id', [...liveWorkers, own]));
  return {
    abandoned: running.filter(({ worker_id }) => worker_id !== own),
    own: running.filter(({ worker_id }) => worker_id === own),
  };
}

/** Queued jobs that should have begun so long ago, the oldest first. */
export async function overdueJobs(store: Store, sinceMs: number, limit: number): Promise<JobSummary[]> {
  return store
    .knex<Job>('jobs')
    .select(...SUMMARY)
    .where({ state: 'queued' })
    .whereRaw(`run_at < clock_timestamp() - ? * interval '1 ms'`, [sinceMs])
    .orderBy('run_at')
    .limit(limit);
}

/** The job that should have begun first, of each owner or part of one without running jobs, if that was so long ago. */
export async function jobsOfWaitingOwners(
  store: Store,
  sinceMs: number,
  limit: number,
  turnsOf: TurnsOf = 'owners',
): Promise<QueuedJob[]> {
  const { rows } = await store.knex.raw<{ rows: QueuedJob[] }>(
    `WITH RECURSIVE busy AS (
       SELECT DISTINCT ${turnBy(turnsOf, 'principal', ownerOfHost('endpoints.domain'))} AS turn
         FROM jobs JOIN endpoints ON endpoints.id = endpoint_id WHERE state = 'running'),
     -- Each endpoint and principal once, however many of their jobs are queued.
     queued AS (
       (SELECT endpoint_id, coalesce(principal, '') AS asker FROM jobs WHERE state = 'queued'
         ORDER BY endpoint_id, coalesce(principal, '') LIMIT 1)
        UNION ALL
       SELECT next.* FROM queued,
              LATERAL (SELECT endpoint_id, coalesce(principal, '') AS asker FROM jobs
                        WHERE state = 'queued' AND (endpoint_id, coalesce(principal, '')) > (queued.endpoint_id, queued.asker)
                        ORDER BY endpoint_id, coalesce(principal, '') LIMIT 1) AS next)
     SELECT id, generation FROM (
       SELECT DISTINCT ON (turn) oldest.*
         FROM queued JOIN endpoints ON endpoints.id = queued.endpoint_id,
              LATERAL (SELECT ${turnBy(turnsOf, "nullif(asker, '')", ownerOfHost('endpoints.domain'))} AS turn) AS turns,
              LATERAL (SELECT id, generation, run_at FROM jobs
                        WHERE jobs.endpoint_id = endpoints.id AND coalesce(principal, '') = asker AND state = 'queued'
                        ORDER BY run_at LIMIT 1) AS oldest
        WHERE turn NOT IN (SELECT turn FROM busy)
          AND run_at < clock_timestamp() - :sinceMs * interval '1 ms'
        ORDER BY turn, run_at) AS firsts
      ORDER BY run_at LIMIT :limit`,
    { sinceMs, limit },
  );
  return rows;
}

/** Runs of a schedule that are kept. */
const RUNS_KEPT = 1_000;

/** Deletes jobs that have ended so long ago, and all but the newest runs of schedules. @returns how many */
export async function pruneJobs(store: Store, keptHours: number): Promise<number> {
  const old = await store
    .knex('jobs')
    .whereRaw(`finished_at < clock_timestamp() - ? * interval '1 hour'`, [keptHours])
    .delete();
  const { rowCount } = await store.knex.raw<{ rowCount: number }>(
    `DELETE FROM jobs USING (
       SELECT id, row_number() OVER (PARTITION BY schedule_id ORDER BY planned_at DESC) AS place
         FROM jobs WHERE schedule_id IS NOT NULL) AS runs
      WHERE jobs.id = runs.id AND runs.place > ? AND jobs.finished_at IS NOT NULL`,
    [RUNS_KEPT],
  );
  return old + rowCount;
}
