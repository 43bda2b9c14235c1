/** Schemas of queued requests and schedules. */
import { Type } from '@sinclair/typebox';
import { Enabled, Id, nullable, oneOf, optional, Timestamp } from '../route/schemas.js';
import { HandlerRequestBody } from './handler-request.schema.js';

const DAY_MS = 24 * 3600 * 1000;

export const Enqueue = Type.Object({
  ...HandlerRequestBody,
  ...optional({
    delay_ms: Type.Integer({
      minimum: 0,
      maximum: 366 * DAY_MS,
      description: 'It is sent after this; 0 unless given',
    }),
    attempts: Type.Integer({
      minimum: 1,
      maximum: 100,
      description: 'How often it is sent at most; 5 unless given',
    }),
    backoff_ms: Type.Integer({
      minimum: 0,
      maximum: DAY_MS,
      description: 'Pause before the second attempt, doubled with each one, up to an hour; 1000 unless given',
    }),
    deduplication_id: Type.String({
      minLength: 1,
      maxLength: 255,
      format: 'line',
      description: 'While a request of the endpoint with this id has not ended, that one is meant',
    }),
  }),
});

export const Enqueued = Type.Object({ job_id: Id }, { title: 'Enqueued' });

export const JobView = Type.Object(
  {
    id: Id,
    endpoint_id: Id,
    schedule_id: nullable(Id),
    planned_at: nullable({ ...Timestamp, description: 'Of a run of a schedule: when it should begin' }),
    method: Type.String(),
    path: Type.String(),
    state: oneOf(['queued', 'running', 'succeeded', 'failed']),
    attempts: Type.Integer({ description: 'How often it was sent' }),
    max_attempts: Type.Integer(),
    last_status: nullable(Type.Integer({ description: 'Of the last attempt that was answered' })),
    last_error: nullable(Type.String({ description: 'Why there was no answer of the handler' })),
    next_attempt_at: nullable({ ...Timestamp, description: 'While it is queued' }),
    request_id: Type.String({ description: 'The handler and the logs have it' }),
    created_at: Timestamp,
    finished_at: nullable(Timestamp),
  },
  { title: 'Job' },
);

const Timing = {
  cron: Type.String({
    minLength: 1,
    maxLength: 255,
    description:
      'Five fields, e.g. `0 9 * * 1-5`, or six with seconds; or `@hourly`, `@daily`, `@weekly`, `@monthly`',
  }),
  timezone: Type.String({ maxLength: 64, description: 'Of the IANA database; UTC unless given' }),
};

export const NewSchedule = Type.Object({
  cron: Timing.cron,
  ...optional({ timezone: Timing.timezone, enabled: Enabled }),
  ...HandlerRequestBody,
});

export const ScheduleChange = Type.Object({
  ...optional({ ...Timing, enabled: Type.Boolean() }),
  ...HandlerRequestBody,
});

export const ScheduleParams = Type.Object({ id: Id, schedule_id: Id });

export const ScheduleView = Type.Object(
  {
    id: Id,
    endpoint_id: Id,
    cron: Type.String(),
    timezone: Type.String(),
    method: Type.String(),
    path: Type.String(),
    headers: Type.Record(Type.String(), Type.String()),
    body: Type.Optional(Type.String({ description: 'When there is one, and it is UTF-8' })),
    body_base64: Type.Optional(Type.String({ description: 'When there is one, and it is not' })),
    enabled: Type.Boolean(),
    next_run_at: nullable(Timestamp),
    last_run_at: nullable(Timestamp),
    missed_runs: Type.Integer({ description: 'Runs that had no job, because no worker was running' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Schedule' },
);
