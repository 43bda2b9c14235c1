/** Finds queued requests whose worker or whose place in the queue was lost, and queues them again. */
import { invokeJobId } from '../src/queues/jobs.js';
import { awaitLiveNodes } from '../src/reconcile/nodes.js';
import { finishJob, type JobSummary, overdueJobs, runningJobs } from '../src/store/jobs.js';
import { type DeliveryContext, sendAgain } from './deliver.js';

/** Queued jobs are looked for when they should have begun so long ago. */
const LOST_AFTER_MS = 5_000;
const AT_A_TIME = 200;
/** A request is sent at least once, but one that ends its worker not without a limit. */
const MAX_LOST = 3;

export async function recoverJobs(context: DeliveryContext): Promise<void> {
  const { store, queues, log, workerId, activeJobs } = context;
  // For its own jobs the memory of the worker counts, even while others take its node for expired.
  const live = (await awaitLiveNodes(store, 'worker')).map(({ id }) => id);
  const { abandoned, own } = await runningJobs(store, live, workerId);
  for (const job of [...abandoned, ...own.filter((job) => !activeJobs.has(invokeJobId(job)))]) {
    const lost = { status: null, error: `The worker was lost during attempt ${job.attempts}.` };
    log.warn({ job_id: job.id, request_id: job.request_id }, 'the worker of a queued request was lost');
    if (job.attempts < job.max_attempts + MAX_LOST) await sendAgain(job, 0, lost, context);
    else await finishJob(store, job, 'failed', lost);
  }
  for (const job of await overdueJobs(store, LOST_AFTER_MS, AT_A_TIME)) {
    if (!(await queues.hasJob('invoke', invokeJobId(job)))) await queueAgain(job, context);
  }
}

async function queueAgain(job: JobSummary, context: DeliveryContext): Promise<void> {
  context.log.warn({ job_id: job.id }, 'a queued request was lost by the queue and is queued again');
  await sendAgain(job, 0, { status: job.last_status, error: job.last_error }, context);
}
