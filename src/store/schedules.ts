/** The table `schedules`: requests that are sent to a handler again and again. Each run is a job (`jobs.ts`). */
import { isDeepStrictEqual } from 'node:util';
import type { HandlerRequest } from '../model/handler-request.js';
import { type Store, transaction } from './database.js';
import { type OwnerFull, QUEUED_JOB, type QueuedJob, type QueueFull } from './jobs.js';
import { ownerOfHost } from './owners.js';
import { ownerWithoutRoom, queuedBytesOf } from './queued-bytes.js';

/** A row. */
export interface Schedule {
  readonly id: string;
  readonly endpoint_id: string;
  readonly cron: string;
  /** A name of the IANA database. */
  readonly timezone: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  readonly enabled: boolean;
  /** Null while it is disabled. */
  readonly next_run_at: Date | null;
  readonly last_run_at: Date | null;
  /** Runs since it was made that had no job, because no worker was running. */
  readonly missed_runs: number;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** What a user sets. */
export interface ScheduleSettings {
  readonly cron: string;
  readonly timezone: string;
  readonly request: HandlerRequest;
  readonly enabled: boolean;
}

/** How runs of all schedules are sent. */
export interface RunSettings {
  readonly maxAttempts: number;
  readonly backoffMs: number;
  /** Most bytes of unfinished jobs and schedules of an owner. */
  readonly maxBytes: number;
}

/** How many schedules there may be. */
export interface ScheduleLimits {
  /** Most schedules of an endpoint. */
  readonly schedules: number;
  /** Most bytes of unfinished jobs and schedules of a domain. */
  readonly bytes: number;
}

/** When the first run after a moment begins; undefined when there is none. */
export type NextRun = (cron: string, timezone: string, after: Date) => Date | undefined;

/** @returns beyond a limit, what is full */
export async function insertSchedule(
  store: Store,
  endpointId: string,
  settings: ScheduleSettings,
  nextRun: NextRun,
  limits: ScheduleLimits,
): Promise<Schedule | QueueFull> {
  return transaction(store, async (tx) => {
    // Two at a time are counted one after the other.
    await tx.knex('endpoints').where({ id: endpointId }).forUpdate().first('id');
    const [{ count } = { count: 0 }] = await tx
      .knex('schedules')
      .where({ endpoint_id: endpointId })
      .count<{ count: number }[]>({ count: '*' });
    if (Number(count) >= limits.schedules) return { full: 'endpoint' };
    const bytes = queuedBytesOf(settings.request);
    const owner = await ownerWithoutRoom(tx, endpointId, bytes, limits.bytes);
    if (owner !== undefined) return { full: 'owner', owner, bytes };
    const row = { endpoint_id: endpointId, ...(await columnsOf(tx, settings, nextRun)) };
    const [inserted] = await tx
      .knex<Schedule>('schedules')
      .insert(row as never)
      .returning('*');
    return inserted as Schedule;
  });
}

/**
 * @param isRetimed whether its times have changed: otherwise the run that is due next stays so
 * @param maxBytes of unfinished jobs and schedules of the owner; it may always send less than before
 * @returns undefined when there is no such schedule of the endpoint; beyond the limit, what is full
 */
export async function updateSchedule(
  store: Store,
  endpointId: string,
  id: string,
  settings: ScheduleSettings,
  nextRun: NextRun,
  isRetimed: boolean,
  maxBytes: number,
): Promise<Schedule | OwnerFull | undefined> {
  return transaction(store, async (tx) => {
    // Two at a time are counted one after the other.
    await tx.knex('endpoints').where({ id: endpointId }).forUpdate().first('id');
    const before = await findSchedule(tx, endpointId, id);
    if (!before) return undefined;
    const bytes = queuedBytesOf(settings.request);
    const more = bytes - queuedBytesOf(before);
    const owner = more > 0 ? await ownerWithoutRoom(tx, endpointId, more, maxBytes) : undefined;
    if (owner !== undefined) return { full: 'owner', owner, bytes };
    const { next_run_at, ...columns } = await columnsOf(tx, settings, nextRun);
    const [updated] = await tx
      .knex<Schedule>('schedules')
      .where({ id })
      .update({
        ...columns,
        ...(isRetimed && { next_run_at }),
        updated_at: tx.knex.raw('clock_timestamp()'),
      } as never)
      .returning('*');
    return updated as Schedule | undefined;
  });
}

/**
 * Gives an endpoint these schedules, and no others. One that is among them already stays, with its next run.
 * @param tx in which the endpoint is locked
 * @returns the ids of those that the queue has to be told of
 */
export async function replaceSchedules(
  tx: Store,
  endpointId: string,
  schedules: readonly ScheduleSettings[],
  nextRun: NextRun,
): Promise<string[]> {
  const left = [...schedules];
  const changed: string[] = [];
  for (const schedule of await schedulesOf(tx, endpointId)) {
    const at = left.findIndex((settings) => isSameSchedule(schedule, settings));
    if (at >= 0) {
      left.splice(at, 1);
      continue;
    }
    await deleteSchedule(tx, endpointId, schedule.id);
    changed.push(schedule.id);
  }
  for (const settings of left) {
    const row = { endpoint_id: endpointId, ...(await columnsOf(tx, settings, nextRun)) };
    const [inserted] = await tx
      .knex<Schedule>('schedules')
      .insert(row as never)
      .returning('id');
    if (inserted) changed.push(inserted.id);
  }
  return changed;
}

function isSameSchedule(
  { cron, timezone, enabled, method, path, headers, body }: Schedule,
  { request, ...times }: ScheduleSettings,
): boolean {
  const stored = { cron, timezone, enabled, method, path, headers, body: textOf(body) };
  const given = {
    ...{ cron: times.cron, timezone: times.timezone, enabled: times.enabled },
    ...{ method: request.method, path: request.path, headers: request.headers },
    body: textOf(request.body),
  };
  return isDeepStrictEqual(stored, given);
}

/** Null for none. */
function textOf(body: Buffer | null): string | null {
  return body && body.length > 0 ? body.toString('base64') : null;
}

export async function findSchedule(
  store: Store,
  endpointId: string,
  id: string,
): Promise<Schedule | undefined> {
  return store.knex<Schedule>('schedules').where({ id, endpoint_id: endpointId }).first();
}

/** Those of an endpoint, the oldest first. */
export async function schedulesOf(store: Store, endpointId: string): Promise<Schedule[]> {
  return store
    .knex<Schedule>('schedules')
    .where({ endpoint_id: endpointId })
    .orderBy('created_at')
    .orderBy('id');
}

/** The bytes of the bodies of those of an endpoint. */
export async function bodyBytesOfSchedules({ knex }: Store, endpointId: string): Promise<number> {
  const [row] = await knex('schedules')
    .where({ endpoint_id: endpointId })
    .select(knex.raw('coalesce(sum(octet_length(body)), 0)::bigint AS bytes'));
  return (row as { bytes: number }).bytes;
}

/** Those of some ids that there are. */
export async function schedulesByIds(store: Store, ids: readonly string[]): Promise<Map<string, Schedule>> {
  const rows = await store.knex<Schedule>('schedules').whereIn('id', ids);
  return new Map(rows.map((schedule) => [schedule.id, schedule as Schedule]));
}

/** Its runs are kept. @returns whether there was one */
export async function deleteSchedule(store: Store, endpointId: string, id: string): Promise<boolean> {
  return (await store.knex('schedules').where({ id, endpoint_id: endpointId }).delete()) > 0;
}

/** All that are enabled. */
export async function enabledSchedules(store: Store): Promise<Pick<Schedule, 'id' | 'cron' | 'timezone'>[]> {
  return store.knex('schedules').whereNotNull('next_run_at').select('id', 'cron', 'timezone');
}

/** SQL: schedules with their owners, who take turns for their runs. */
const OWNED = `
  SELECT schedules.id, next_run_at, ${ownerOfHost('endpoints.domain')} AS owner
    FROM schedules JOIN endpoints ON endpoints.id = endpoint_id`;

/** Those whose run should have begun so long ago: the first of each owner, then the second of each, and so on. */
export async function overdueSchedules({ knex }: Store, sinceMs: number): Promise<string[]> {
  const { rows } = await knex.raw<{ rows: { id: string }[] }>(
    `SELECT id FROM (${OWNED}) AS owned WHERE next_run_at < clock_timestamp() - ? * interval '1 ms'
      ORDER BY row_number() OVER (PARTITION BY owner ORDER BY next_run_at), next_run_at LIMIT 500`,
    [sinceMs],
  );
  return rows.map(({ id }) => id);
}

/** The schedule whose run is due first, of each owner that is not among the busy ones, if it is due for so long. */
export async function schedulesOfWaitingOwners(
  { knex }: Store,
  sinceMs: number,
  limit: number,
  busy: readonly string[],
): Promise<string[]> {
  const { rows } = await knex.raw<{ rows: { id: string }[] }>(
    `SELECT id FROM (
       SELECT DISTINCT ON (owner) * FROM (${OWNED}) AS owned
        WHERE next_run_at < clock_timestamp() - :sinceMs * interval '1 ms' AND owner <> ALL(:busy)
        ORDER BY owner, next_run_at) AS firsts
      ORDER BY next_run_at LIMIT :limit`,
    { sinceMs, limit, busy: [...busy] } as never,
  );
  return rows.map(({ id }) => id);
}

/** Who takes turns for the runs of a schedule; undefined when it is not there any more. */
export async function ownerOfSchedule({ knex }: Store, id: string): Promise<string | undefined> {
  const { rows } = await knex.raw<{ rows: { owner: string }[] }>(`${OWNED} WHERE schedules.id = ?`, [id]);
  return rows[0]?.owner;
}

/** Clocks of machines may differ from that of the database by so much. */
const EARLY_MS = 1_000;
/** Missed runs that are counted one by one. */
const MAX_COUNTED = 1_000;
/** Runs of one schedule that have not ended, at a time. */
const MAX_UNFINISHED = 10;

/**
 * Makes the job of the run that is due. Each run has one job, however many workers ask: they find that the next run is
 * not due yet. Of several runs that are due the last one has a job; the others are missed, and said to be.
 * @returns the job; undefined when none is due
 */
export async function runSchedule(
  store: Store,
  id: string,
  nextRun: NextRun,
  { maxAttempts, backoffMs, maxBytes }: RunSettings,
): Promise<QueuedJob | undefined> {
  return transaction(store, async (tx) => {
    const schedule = await tx
      .knex<Schedule & { now: Date }>('schedules')
      .where({ id })
      .forUpdate()
      .first('*', tx.knex.raw('clock_timestamp() AS now'));
    if (!schedule?.next_run_at) return undefined;
    const { cron, timezone, next_run_at: first, now } = schedule as Schedule & { now: Date };
    if (first === null || first.getTime() > now.getTime() + EARLY_MS) return undefined;

    let [planned, next, missed] = [first, nextRun(cron, timezone, first), 0];
    while (next && next.getTime() <= now.getTime() && missed < MAX_COUNTED) {
      [planned, next, missed] = [next, nextRun(cron, timezone, next), missed + 1];
    }
    if (next && next.getTime() <= now.getTime()) next = nextRun(cron, timezone, now);
    await tx
      .knex('schedules')
      .where({ id })
      .update({
        next_run_at: next ?? null,
        last_run_at: planned,
        missed_runs: schedule.missed_runs + missed,
      });
    if (missed > 0) await sayNotRun(tx, schedule, first, whichWereMissed(missed));
    const unfinished = await tx
      .knex('jobs')
      .where({ schedule_id: id })
      .whereIn('state', ['queued', 'running'])
      .limit(MAX_UNFINISHED)
      .pluck('id');
    if (unfinished.length === MAX_UNFINISHED) {
      await sayNotRun(tx, schedule, planned, `${MAX_UNFINISHED} earlier runs had not ended.`);
      return undefined;
    }
    const bytes = queuedBytesOf(schedule);
    if ((await ownerWithoutRoom(tx, schedule.endpoint_id, bytes, maxBytes)) !== undefined) {
      const reason = 'The queued requests and schedules of the domain had all their room (JOBS_QUEUED_MB).';
      await sayNotRun(tx, schedule, planned, reason);
      return undefined;
    }
    const { rows } = await tx.knex.raw<{ rows: QueuedJob[] }>(
      `INSERT INTO jobs (endpoint_id, schedule_id, planned_at, method, path, headers, body, state, queued_bytes,
                         max_attempts, backoff_ms, run_at, request_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, clock_timestamp(), gen_random_uuid())
       ON CONFLICT (schedule_id, planned_at) DO NOTHING RETURNING ${QUEUED_JOB}`,
      [...columnsOfRun(schedule, planned), schedule.body, bytes, maxAttempts, backoffMs] as never[],
    );
    return rows[0];
  });
}

/** One row for all of them: a schedule of seconds misses thousands in an hour. */
function whichWereMissed(missed: number): string {
  const more = missed === MAX_COUNTED ? 'More than ' : '';
  const which = missed === 1 ? 'This run was' : `${more}${missed} runs from this one on were`;
  return `${which} missed: no worker was running, or the queue did not answer.`;
}

/** A run without a job. @param reason that its row says */
async function sayNotRun(tx: Store, schedule: Schedule, planned: Date, reason: string): Promise<void> {
  await tx.knex.raw(
    `INSERT INTO jobs (endpoint_id, schedule_id, planned_at, method, path, headers, state, max_attempts, backoff_ms,
                       run_at, request_id, last_error, finished_at)
     VALUES (?, ?, ?, ?, ?, '{}', 'failed', 0, 0, clock_timestamp(), gen_random_uuid(), ?, clock_timestamp())
     ON CONFLICT (schedule_id, planned_at) DO NOTHING`,
    [schedule.endpoint_id, schedule.id, planned, schedule.method, schedule.path, reason] as never[],
  );
}

function columnsOfRun({ endpoint_id, id, method, path, headers }: Schedule, planned: Date): unknown[] {
  return [endpoint_id, id, planned, method, path, JSON.stringify(headers)];
}

async function columnsOf(
  store: Store,
  { cron, timezone, request, enabled }: ScheduleSettings,
  nextRun: NextRun,
) {
  const { method, path, headers, body } = request;
  // That of the database counts: clocks of machines differ.
  const { rows } = await store.knex.raw<{ rows: [{ now: Date }] }>('SELECT clock_timestamp() AS now');
  return {
    ...{ cron, timezone, method, path, enabled, body },
    headers: JSON.stringify(headers),
    queued_bytes: queuedBytesOf(request),
    next_run_at: enabled ? (nextRun(cron, timezone, rows[0].now) ?? null) : null,
  };
}
