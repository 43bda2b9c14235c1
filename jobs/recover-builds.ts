/** Finds accepted builds whose job or worker was lost, and queues them again. */
import type { Logger } from 'pino';
import { buildJobId, compileJob } from '../src/queues/jobs.js';
import type { Queues } from '../src/queues/queues.js';
import { awaitLiveNodes } from '../src/reconcile/nodes.js';
import {
  abandonedBuilds,
  finishBuild,
  longQueuedBuilds,
  requeueBuild,
  runningBuildsOf,
} from '../src/store/build-attempts.js';
import { type BuildAttempt, pruneBuilds } from '../src/store/builds.js';
import type { Store } from '../src/store/database.js';
import type { ThisWorker } from './active-jobs.js';

/** Queued builds are checked when they have waited longer than this. */
const LOST_AFTER_MS = 5_000;
/** Queued builds that are checked in one run. */
const AT_A_TIME = 200;
/** A build that crashes its worker must not be retried without a limit. */
const MAX_ATTEMPTS = 5;
/** Finished builds are kept this long, and the latest of an endpoint without a limit. */
export const KEEP_BUILDS_MS = 30 * 24 * 3600 * 1000;

/**
 * One run: queues builds again whose worker has ended, whose worker is this one but is not executing them, or whose job
 * was lost; deletes old builds.
 */
export async function recoverBuilds(
  store: Store,
  queues: Queues,
  log: Logger,
  { workerId, activeJobs }: ThisWorker,
): Promise<void> {
  // For its own builds the worker's memory is authoritative, even while others take its node for expired.
  const others = (await awaitLiveNodes(store, 'worker')).map(({ id }) => id);
  const lost = await abandonedBuilds(store, [...others, workerId]);
  for (const build of await runningBuildsOf(store, workerId)) {
    if (!activeJobs.has(buildJobId(build))) lost.push(build);
  }
  for (const build of await longQueuedBuilds(store, LOST_AFTER_MS, AT_A_TIME)) {
    if (!(await queues.hasJob('compile', buildJobId(build)))) lost.push(build);
  }
  for (const build of lost) await enqueueAgain(store, queues, build, log);
  await pruneBuilds(store, KEEP_BUILDS_MS);
}

async function enqueueAgain(store: Store, queues: Queues, build: BuildAttempt, log: Logger): Promise<void> {
  if (build.attempt >= MAX_ATTEMPTS) {
    log.error({ build_id: build.id, attempts: build.attempt }, 'build failed after too many attempts');
    const error = `The build was lost ${build.attempt} times, with its worker or its job, and is not tried again.`;
    await finishBuild(store, build, {
      state: 'failed',
      errorCode: 'internal_error',
      error,
      diagnostics: [],
      timings: {},
    });
    return;
  }
  const next = await requeueBuild(store, build);
  if (!next) return;
  const { id, attempt, request_id } = next;
  log.warn({ request_id, build_id: id, attempt }, 'build was lost and is queued again');
  await queues.enqueue('compile', compileJob(next, request_id));
}
