/** Schedules: requests that are sent to a handler again and again. */
import { isUtf8 } from 'node:buffer';
import { type Static, Type } from '@sinclair/typebox';
import { AppError, notFound, requireFound, toError } from '../../errors.js';
import { type RequestInput, toHandlerRequest } from '../../model/handler-request.js';
import { queueLimit } from '../../model/queue-room.js';
import { cronProblem, nextRun, spelledTimezone, timezoneProblem } from '../../queues/cron.js';
import { findEndpoint } from '../../store/endpoints.js';
import { latestJobs } from '../../store/jobs.js';
import {
  bodyBytesOfSchedules,
  deleteSchedule,
  findSchedule,
  insertSchedule,
  type Schedule,
  schedulesOf,
  updateSchedule,
} from '../../store/schedules.js';
import type { Logger } from '../../util/log.js';
import { mapInParts } from '../../util/pauses.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { turnsOfList } from '../response/list-turns.js';
import { defineRoute } from '../route/route.js';
import { Deleted, IdParams } from '../route/schemas.js';
import { LISTED_JOBS, presentJob } from './jobs.routes.js';
import { JobView, NewSchedule, ScheduleChange, ScheduleParams, ScheduleView } from './jobs.schema.js';
import { queueFull } from './queue-full.js';

const tag = 'Jobs';
const path = '/api/endpoints/{id}/schedules';
const MAX_SCHEDULES = 100;

export const scheduleRoutes = [
  defineRoute({
    method: 'GET',
    path,
    permission: 'jobs:read',
    summary: 'List the schedules of the endpoint',
    tag,
    params: IdParams,
    data: Type.Array(ScheduleView),
    errors: ['busy'],
    turns: async ({ params: { id } }, { store }) => turnsOfList(await bodyBytesOfSchedules(store, id)),
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findEndpoint(store, id), 'endpoint', id);
      return mapInParts(await schedulesOf(store, id), present);
    },
  }),

  defineRoute({
    method: 'POST',
    path,
    permission: 'jobs:write',
    summary: 'Send a request to the handler at the times of a cron expression',
    tag,
    status: 201,
    params: IdParams,
    body: NewSchedule,
    data: ScheduleView,
    errors: ['queue_full'],
    handle: async ({ params: { id }, body, log }, deps) => {
      const endpoint = requireFound(await findEndpoint(deps.store, id), 'endpoint', id);
      const { timezone = 'UTC', enabled = true } = body;
      const times = validTimes({ cron: body.cron, timezone });
      const limit = deps.config.GATEWAY_BODY_LIMIT_BYTES;
      const settings = {
        ...times,
        enabled,
        request: toHandlerRequest(endpoint, requestIn(body), limit),
      };
      const limits = { schedules: MAX_SCHEDULES, bytes: queueLimit(deps.config) };
      const schedule = await insertSchedule(deps.store, id, settings, nextRun, limits);
      if ('full' in schedule) {
        if (schedule.full === 'owner') throw queueFull(schedule, deps.config);
        throw new AppError('queue_full', `The endpoint has ${MAX_SCHEDULES} schedules; delete one first.`);
      }
      await announce(deps, schedule, log);
      return present(schedule);
    },
  }),

  defineRoute({
    method: 'GET',
    path: `${path}/{schedule_id}`,
    permission: 'jobs:read',
    summary: 'Show a schedule',
    tag,
    params: ScheduleParams,
    data: ScheduleView,
    handle: async ({ params: { id, schedule_id: scheduleId } }, { store }) =>
      present(requireFound(await findSchedule(store, id, scheduleId), 'schedule', scheduleId)),
  }),

  defineRoute({
    method: 'PUT',
    path: `${path}/{schedule_id}`,
    permission: 'jobs:write',
    summary: 'Change a schedule; members that are left out stay as they are',
    tag,
    params: ScheduleParams,
    body: ScheduleChange,
    data: ScheduleView,
    errors: ['queue_full'],
    handle: async ({ params: { id, schedule_id: scheduleId }, body, log }, deps) => {
      const endpoint = requireFound(await findEndpoint(deps.store, id), 'endpoint', id);
      const before = requireFound(await findSchedule(deps.store, id, scheduleId), 'schedule', scheduleId);
      const { cron = before.cron, timezone = before.timezone, enabled = before.enabled } = body;
      const changes = requestIn(body);
      const isResent = Object.keys(changes).length > 0;
      const timing = { ...validTimes({ cron, timezone }), enabled };
      // What stays as it is need not fit the endpoint as it is now: it can still be disabled.
      const request = isResent
        ? toHandlerRequest(
            endpoint,
            { ...requestOf(before, hasBody(body)), ...changes },
            deps.config.GATEWAY_BODY_LIMIT_BYTES,
          )
        : { ...before, body: before.body ?? Buffer.alloc(0) };
      const isRetimed = [body.cron, body.timezone, body.enabled].some((given) => given !== undefined);
      const settings = { ...timing, request };
      const limit = queueLimit(deps.config);
      const updated = await updateSchedule(deps.store, id, scheduleId, settings, nextRun, isRetimed, limit);
      const schedule = requireFound(updated, 'schedule', scheduleId);
      if ('full' in schedule) throw queueFull(schedule, deps.config);
      await announce(deps, schedule, log);
      return present(schedule);
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: `${path}/{schedule_id}`,
    permission: 'jobs:write',
    summary: 'Delete a schedule; runs that have begun are finished',
    tag,
    params: ScheduleParams,
    data: Deleted,
    handle: async ({ params: { id, schedule_id: scheduleId }, log }, deps) => {
      if (!(await deleteSchedule(deps.store, id, scheduleId))) throw notFound('schedule', scheduleId);
      await announce(deps, { id: scheduleId, enabled: false }, log);
      return { id: scheduleId, deleted: true as const };
    },
  }),

  defineRoute({
    method: 'GET',
    path: `${path}/{schedule_id}/runs`,
    permission: 'jobs:read',
    summary: `List the newest ${LISTED_JOBS} runs of a schedule, those that were missed included`,
    tag,
    params: ScheduleParams,
    data: Type.Array(JobView),
    handle: async ({ params: { id, schedule_id: scheduleId } }, { store }) => {
      requireFound(await findSchedule(store, id, scheduleId), 'schedule', scheduleId);
      return (await latestJobs(store, { schedule_id: scheduleId }, LISTED_JOBS)).map(presentJob);
    },
  }),
];

type Times = Pick<Schedule, 'cron' | 'timezone'>;

/** The time zone in its own spelling. @throws AppError invalid_input */
function validTimes({ cron, timezone }: Times): Times {
  for (const [member, problem] of [
    ['cron', cronProblem(cron)],
    ['timezone', timezoneProblem(timezone)],
  ]) {
    if (problem !== undefined) throw new AppError('invalid_input', `body.${member}: ${problem}`);
  }
  return { cron, timezone: spelledTimezone(timezone) };
}

/** Workers tell the queue again when this fails. */
async function announce(
  { queues }: ApiDependencies,
  { id, enabled, ...times }: Pick<Schedule, 'id' | 'enabled'> & Partial<Schedule>,
  log: Logger,
): Promise<void> {
  const { cron, timezone } = times;
  const when = enabled && cron !== undefined && timezone !== undefined ? { cron, timezone } : null;
  await queues.setSchedule(id, when).catch((thrown: unknown) => {
    log.warn(
      { err: toError(thrown), schedule_id: id },
      'a schedule could not be updated in the queue; that is tried again',
    );
  });
}

function hasBody(body: Static<typeof ScheduleChange>): boolean {
  return body.body !== undefined || body.body_base64 !== undefined;
}

function requestIn({ method, path: target, headers, body, body_base64 }: RequestInput): RequestInput {
  return {
    ...(method !== undefined && { method }),
    ...(target !== undefined && { path: target }),
    ...(headers !== undefined && { headers }),
    ...(body !== undefined && { body }),
    ...(body_base64 !== undefined && { body_base64 }),
  };
}

function requestOf({ method, path: target, headers, body }: Schedule, hasNewBody: boolean): RequestInput {
  const isKept = body !== null && body.length > 0 && !hasNewBody;
  return { method, path: target, headers, ...(isKept && { body_base64: body.toString('base64') }) };
}

function present(schedule: Schedule) {
  const {
    id,
    endpoint_id,
    cron,
    timezone,
    method,
    path: target,
    headers,
    body,
    enabled,
    missed_runs,
  } = schedule;
  const isText = body !== null && isUtf8(body);
  return {
    ...{ id, endpoint_id, cron, timezone, method, path: target, headers },
    ...(body !== null &&
      body.length > 0 &&
      (isText ? { body: body.toString() } : { body_base64: body.toString('base64') })),
    enabled,
    next_run_at: schedule.next_run_at?.toISOString() ?? null,
    last_run_at: schedule.last_run_at?.toISOString() ?? null,
    missed_runs,
    created_at: schedule.created_at.toISOString(),
    updated_at: schedule.updated_at.toISOString(),
  };
}
