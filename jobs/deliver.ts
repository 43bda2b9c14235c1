/** The job `invoke`: sends a request that was queued to its handler, and decides what becomes of it. */
import { AppError, toError } from '../src/errors.js';
import type { Delivery, HandlerResponse } from '../src/internal/gateway-requests.js';
import { NotSent } from '../src/internal/gateways.js';
import { type InvokeJob, invokeJobId } from '../src/queues/jobs.js';
import { FailedJob, type Queues } from '../src/queues/queues.js';
import type { Store } from '../src/store/database.js';
import {
  type AttemptResult,
  claimJob,
  finishJob,
  type Job,
  jobsOfWaitingOwners,
  type QueuedJob,
  requeueJob,
} from '../src/store/jobs.js';
import type { Logger } from '../src/util/log.js';
import type { ThisWorker } from './active-jobs.js';
import type { SharedQueue } from './consume-in-turns.js';

/** What the delivery of requests needs. */
export interface DeliveryContext extends ThisWorker {
  readonly store: Store;
  readonly queues: Queues;
  readonly gateways: { deliver(delivery: Delivery): Promise<HandlerResponse> };
  readonly log: Logger;
}

/** These jobs wait for handlers. */
const REQUESTS_AT_A_TIME = 32;
/** Longest pause before another attempt. */
const MAX_BACKOFF_MS = 3600_000;

/** Pause before a request is sent that no gateway has taken. */
const NO_GATEWAY_MS = 2_000;

/** What becomes of a job after an attempt. */
type Verdict = 'succeeded' | 'failed' | 'again' | 'not sent';

/** The queue of requests, as a worker consumes it. */
export function invokeQueue(context: DeliveryContext): SharedQueue<'invoke'> {
  return {
    ...{ name: 'invoke', slots: REQUESTS_AT_A_TIME },
    work: (job) => deliver(job, context),
    waiting: (sinceMs, limit) => jobsOfWaitingOwners(context.store, sinceMs, limit),
    waitingParts: (sinceMs, limit) => jobsOfWaitingOwners(context.store, sinceMs, limit, 'parts'),
  };
}

/**
 * Makes an attempt, and says for the dashboard what came of it. Running it twice for one generation is harmless: the
 * second run finds nothing to claim. When the service itself fails, the row stays without an active job, and recovery
 * queues it again.
 */
export function deliver(queued: InvokeJob, context: DeliveryContext): Promise<string> {
  return context.activeJobs.run(invokeJobId(queued), () => attempt(queued, context));
}

async function attempt(queued: InvokeJob, context: DeliveryContext): Promise<string> {
  const { store, workerId } = context;
  const job = await claimJob(store, queued, workerId);
  if (!job) return 'nothing to do';
  const log = context.log.child({ request_id: job.request_id, endpoint_id: job.endpoint_id, job_id: job.id });
  const { verdict, ...result } = await send(job, context);
  const { attempts, max_attempts } = job;
  if (verdict === 'not sent') {
    await sendAgain(job, NO_GATEWAY_MS, result, context, false);
    return 'not sent: no gateway';
  }
  if (verdict === 'again' && attempts < max_attempts) {
    const delayMs = backoffOf(job);
    log.info({ ...result, attempts, delay_ms: delayMs }, 'queued request has failed and is sent again');
    await sendAgain(job, delayMs, result, context);
    return `again: ${result.status ?? 'no answer'}`;
  }
  const state = verdict === 'succeeded' ? 'succeeded' : 'failed';
  await finishJob(store, job, state, result);
  log.info({ ...result, attempts, state }, 'queued request has ended');
  // So that the dashboard has it under Failed.
  if (state === 'failed') throw new FailedJob(result.error ?? `The handler answered ${result.status}.`);
  return `succeeded: ${result.status}`;
}

/** Queues a job again. @param counts whether its attempt counts */
export async function sendAgain(
  job: QueuedJob,
  delayMs: number,
  result: AttemptResult,
  { store, queues, log }: Pick<DeliveryContext, 'store' | 'queues' | 'log'>,
  counts = true,
): Promise<void> {
  const next = await requeueJob(store, job, delayMs, result, counts);
  if (!next) return;
  await queues.enqueue('invoke', next, delayMs).catch((thrown: unknown) => {
    // Recovery finds it when its time has come.
    log.warn({ err: toError(thrown), job_id: job.id }, 'a request could not be put on the queue');
  });
}

async function send(job: Job, { gateways }: DeliveryContext): Promise<AttemptResult & { verdict: Verdict }> {
  const { endpoint_id: endpointId, method, path, headers, body, request_id: requestId, attempts } = job;
  const bodyBase64 = body?.toString('base64') ?? '';
  try {
    const sent = { endpointId, method, path, headers, bodyBase64, requestId, attempt: attempts };
    const { status, error } = await gateways.deliver(sent);
    // Without an answer of the handler, 404 and 405 say that the gateway does not know the endpoint as it is now.
    const isOutdated = error !== undefined && (status === 404 || status === 405);
    return { verdict: isOutdated ? 'again' : verdictOn(status), status, error: error ?? null };
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown;
    // Otherwise the gateway was lost before it could tell what came of it.
    const verdict = thrown instanceof NotSent ? 'not sent' : 'again';
    return { verdict, status: null, error: thrown.message };
  }
}

/** Others would be refused again. */
function verdictOn(status: number): Verdict {
  if (status >= 500 || status === 429) return 'again';
  return status < 400 ? 'succeeded' : 'failed';
}

/** Doubled with each attempt. */
function backoffOf({ attempts, backoff_ms }: Job): number {
  return Math.min(backoff_ms * 2 ** Math.min(attempts - 1, 30), MAX_BACKOFF_MS);
}
