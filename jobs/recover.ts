/** Finds builds that were accepted but got lost on the way, and puts them on the queue again. */
import type { Logger } from 'pino';
import { buildJobId } from '../src/queues/jobs.js';
import type { Queues } from '../src/queues/queues.js';
import { presentNodes } from '../src/reconcile/present-nodes.js';
import {
  abandonedBuilds,
  type BuildAttempt,
  finishBuild,
  longQueuedBuilds,
  pruneBuilds,
  requeueBuild,
  runningBuildsOf,
} from '../src/store/builds.js';
import type { Store } from '../src/store/database.js';
import type { OwnWork } from './at-work.js';

/** A queued build is looked after once it has waited this long. */
const SUSPICIOUS_AFTER_MS = 5_000;
/** A build that takes its worker down with it each time must not do so for ever. */
const MAX_ATTEMPTS = 5;
/** Finished builds are kept this long, and the latest of an endpoint for ever. */
export const KEEP_BUILDS_MS = 30 * 24 * 3600 * 1000;

/**
 * One look: builds whose worker is gone, or is this one and does not work on them, builds whose job is gone; and old
 * builds are forgotten.
 */
export async function recoverBuilds(
  store: Store,
  queues: Queues,
  log: Logger,
  { workerId, atWork }: OwnWork,
): Promise<void> {
  // What this worker does it knows better than its row, which others may have taken for that of a dead one.
  const others = (await presentNodes(store, 'worker')).map(({ id }) => id);
  const lost = await abandonedBuilds(store, [...others, workerId]);
  for (const build of await runningBuildsOf(store, workerId)) {
    if (!atWork.has(buildJobId(build))) lost.push(build);
  }
  for (const build of await longQueuedBuilds(store, SUSPICIOUS_AFTER_MS)) {
    if (!(await queues.hasCompileJob(build))) lost.push(build);
  }
  for (const build of lost) await enqueueAgain(store, queues, build, log);
  await pruneBuilds(store, KEEP_BUILDS_MS);
}

async function enqueueAgain(store: Store, queues: Queues, build: BuildAttempt, log: Logger): Promise<void> {
  if (build.attempt >= MAX_ATTEMPTS) {
    log.error({ build_id: build.id, attempts: build.attempt }, 'build given up');
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
  log.warn({ request_id, build_id: id, attempt }, 'build was lost on the way and is queued again');
  await queues.enqueueCompile(next, request_id);
}
