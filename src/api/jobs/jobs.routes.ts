/** Work for later: requests that workers send to a handler. */
import { Type } from '@sinclair/typebox';
import { AppError, requireFound, toError } from '../../errors.js';
import { toHandlerRequest } from '../../model/handler-request.js';
import { ownerOfActor } from '../../model/owner.js';
import { queueLimit } from '../../model/queue-room.js';
import { findEndpoint } from '../../store/endpoints.js';
import { findJob, insertJob, type JobSummary, latestJobs } from '../../store/jobs.js';
import { defineRoute } from '../route/route.js';
import { IdParams } from '../route/schemas.js';
import { Enqueue, Enqueued, JobView } from './jobs.schema.js';
import { queueFull } from './queue-full.js';

const tag = 'Jobs';
const DEFAULT_ATTEMPTS = 5;
const DEFAULT_BACKOFF_MS = 1_000;
/** Jobs that a list shows. */
export const LISTED_JOBS = 100;

export const jobRoutes = [
  defineRoute({
    method: 'POST',
    path: '/api/endpoints/{id}/enqueue',
    permission: 'jobs:write',
    summary: 'Queue a request for the handler: it is sent at least once, again when it fails',
    tag,
    status: 201,
    params: IdParams,
    body: Enqueue,
    isBodyOptional: true,
    data: Enqueued,
    errors: ['queue_full'],
    handle: async ({ params: { id }, body, origin, log }, { store, queues, config }) => {
      const endpoint = requireFound(await findEndpoint(store, id), 'endpoint', id);
      const delayMs = body.delay_ms ?? 0;
      const job = await insertJob(
        store,
        {
          endpointId: id,
          request: toHandlerRequest(endpoint, body, config.GATEWAY_BODY_LIMIT_BYTES),
          maxAttempts: body.attempts ?? DEFAULT_ATTEMPTS,
          backoffMs: body.backoff_ms ?? DEFAULT_BACKOFF_MS,
          delayMs,
          deduplicationId: body.deduplication_id ?? null,
          requestId: origin.requestId,
          principal: ownerOfActor(origin.actor),
        },
        { jobs: config.JOBS_QUEUED_LIMIT, bytes: queueLimit(config) },
      );
      if ('full' in job) {
        if (job.full === 'owner') throw queueFull(job, config);
        throw new AppError(
          'queue_full',
          `The endpoint has ${config.JOBS_QUEUED_LIMIT} requests that have not ended (JOBS_QUEUED_LIMIT); ` +
            'try again later.',
        );
      }
      // The row counts: a worker finds it also when the queue does not have it.
      if (job.isNew) {
        await queues.enqueue('invoke', job, delayMs).catch((thrown: unknown) => {
          log.warn({ err: toError(thrown), job_id: job.id }, 'a request could not be put on the queue');
        });
      }
      return { job_id: job.id };
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/jobs',
    permission: 'jobs:read',
    summary: `List the newest ${LISTED_JOBS} queued requests of the endpoint`,
    tag,
    params: IdParams,
    data: Type.Array(JobView),
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findEndpoint(store, id), 'endpoint', id);
      return (await latestJobs(store, { endpoint_id: id }, LISTED_JOBS)).map(presentJob);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/jobs/{id}',
    permission: 'jobs:read',
    summary: 'Show a queued request, and what became of it',
    tag,
    params: IdParams,
    data: JobView,
    handle: async ({ params: { id } }, { store }) =>
      presentJob(requireFound(await findJob(store, id), 'job', id)),
  }),
];

export function presentJob(job: JobSummary) {
  return {
    id: job.id,
    endpoint_id: job.endpoint_id,
    schedule_id: job.schedule_id,
    planned_at: job.planned_at?.toISOString() ?? null,
    method: job.method,
    path: job.path,
    state: job.state,
    attempts: job.attempts,
    max_attempts: job.max_attempts,
    last_status: job.last_status,
    last_error: job.last_error,
    next_attempt_at: job.state === 'queued' ? job.run_at.toISOString() : null,
    request_id: job.request_id,
    created_at: job.created_at.toISOString(),
    finished_at: job.finished_at?.toISOString() ?? null,
  };
}
