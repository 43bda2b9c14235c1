/** Finds applies whose job or worker was lost, and queues them again: they go on where they were, or are undone. */

import type { Config } from '../src/config.js';
import { applyJobId } from '../src/queues/jobs.js';
import { awaitLiveNodes } from '../src/reconcile/nodes.js';
import {
  AttemptLost,
  advanceApply,
  requeueApply,
  type UnfinishedApply,
  unfinishedApplies,
} from '../src/store/applies.js';
import { pruneApplies } from '../src/store/kept-applies.js';
import type { ApplyContext } from './apply/context.js';
import { releaseAll } from './apply.js';

/** Queued ones are checked when they were queued longer ago than this. */
const LOST_AFTER_MS = 5_000;
/** An apply that ends its worker again and again must not be tried without a limit. */
const MAX_ATTEMPTS = 5;
/** Attempts after which an undoing that has not ended is given up: no other apply could have its turn. */
const MAX_UNDOING_ATTEMPTS = 10;

/** One run. */
export async function recoverApplies(
  context: ApplyContext,
  { APPLIES_KEPT_DAYS, APPLIES_KEPT_MB }: Pick<Config, 'APPLIES_KEPT_DAYS' | 'APPLIES_KEPT_MB'>,
): Promise<void> {
  const { lifecycle, workerId } = context;
  const { store } = lifecycle;
  const unfinished = await unfinishedApplies(store);
  if (unfinished.length > 0) {
    const others = (await awaitLiveNodes(store, 'worker')).map(({ id }) => id);
    const alive = new Set([...others, workerId]);
    for (const apply of unfinished) if (await isLost(context, apply, alive)) await recover(context, apply);
  }
  const applies = await pruneApplies(store, APPLIES_KEPT_DAYS, APPLIES_KEPT_MB);
  if (applies > 0)
    context.log.info(
      { applies, days: APPLIES_KEPT_DAYS, megabytes_of_user: APPLIES_KEPT_MB },
      'applies that ended long ago, or beyond what a user may keep, were deleted',
    );
}

async function isLost(
  { workerId, activeJobs, queues }: ApplyContext,
  { id: applyId, attempt, worker_id, queued_ms }: UnfinishedApply,
  alive: ReadonlySet<string>,
): Promise<boolean> {
  const job = { applyId, attempt };
  if (worker_id === workerId) return !activeJobs.has(applyJobId(job));
  if (worker_id !== null) return !alive.has(worker_id);
  return queued_ms > LOST_AFTER_MS && !(await queues.hasJob('apply', applyJobId(job)));
}

async function recover(context: ApplyContext, apply: UnfinishedApply): Promise<void> {
  const { lifecycle, queues, log } = context;
  const { store } = lifecycle;
  const facts = { request_id: apply.request_id, apply_id: apply.id };
  try {
    if (apply.state === 'undoing' && apply.attempt >= MAX_UNDOING_ATTEMPTS) {
      await giveUp(context, apply);
      return;
    }
    const isCommitted = apply.state === 'converging';
    // One that waits is interrupted with every restart of its worker.
    const isWaiting = apply.state === 'queued' || apply.state === 'waiting';
    if (apply.attempt >= MAX_ATTEMPTS && apply.state !== 'undoing' && !isWaiting) {
      const message = `The apply was lost ${apply.attempt} times, with its worker or its job, and is not tried again.`;
      const failure = { code: 'internal_error', message } as const;
      log.error({ ...facts, attempts: apply.attempt }, 'apply failed after too many attempts');
      // Once it is committed, only its undoing ends it.
      await advanceApply(store, apply, apply.state, {
        ...(isCommitted ? { state: 'undoing' } : { state: 'failed', hasEnded: true }),
        failure,
      });
      if (!isCommitted) {
        await releaseAll(context, apply.id);
        return;
      }
    }
    const next = await requeueApply(store, apply);
    if (!next) return;
    log.warn({ ...facts, attempt: next.attempt }, 'apply was lost and is queued again');
    await queues.enqueue('apply', { applyId: next.id, attempt: next.attempt, requestId: apply.request_id });
  } catch (thrown) {
    if (!(thrown instanceof AttemptLost)) throw thrown;
  }
}

/** It ends as it is. Deployments that nobody has settled are settled as all others. */
async function giveUp(context: ApplyContext, apply: UnfinishedApply): Promise<void> {
  const { lifecycle, log } = context;
  const message =
    `The apply could not be undone in ${apply.attempt} attempts; the log of the workers says why. ` +
    'Its changes remain: apply what should be there instead.';
  log.error({ request_id: apply.request_id, apply_id: apply.id }, 'the undoing of an apply was given up');
  const failure = { code: 'internal_error', message } as const;
  await advanceApply(lifecycle.store, apply, 'undoing', { state: 'not_undone', failure, hasEnded: true });
  await releaseAll(context, apply.id);
}
