/**
 * The job `apply`: takes one apply from its plan to where everything is changed, or nothing. The state of its row says
 * how far it is; another worker that gets it resumes there.
 */
import { AppError, type ErrorFacts, toError } from '../src/errors.js';
import { requireRightsAsBefore } from '../src/lifecycle/current-rights.js';
import { nextRun } from '../src/queues/cron.js';
import { type ApplyJob, applyJobId } from '../src/queues/jobs.js';
import { FailedJob } from '../src/queues/queues.js';
import {
  type AnnouncedChanges,
  type Apply,
  type ApplyState,
  AttemptLost,
  advanceApply,
  claimApply,
  findApplySummary,
} from '../src/store/applies.js';
import { commitApply, settleApply, undoApply } from '../src/store/apply-commit.js';
import { awayServices } from '../src/store/apply-convergence.js';
import { appliesOfWaitingOwners, lostTurns, type QueuedApply, takeTurn } from '../src/store/apply-turns.js';
import type { Store } from '../src/store/database.js';
import { schedulesByIds } from '../src/store/schedules.js';
import { awaitTurn } from './apply/await-turn.js';
import { compileAll } from './apply/compile.js';
import type { ApplyContext, ApplyTry } from './apply/context.js';
import { awaitConvergence } from './apply/converge.js';
import { configSealer, readObjects, SecretsChangedSince } from './apply/installation-snapshot.js';
import { prepareAll } from './apply/prepare.js';
import type { SharedQueue } from './consume-in-turns.js';

/** These jobs wait for compilers, for their turn, and for gateways. */
const APPLIES_AT_A_TIME = 8;

/** The queue of applies, as a worker consumes it. */
export function applyQueue(
  context: ApplyContext & { readonly interrupt: AbortSignal },
): SharedQueue<'apply'> {
  const { store } = context.lifecycle;
  return {
    ...{ name: 'apply', slots: APPLIES_AT_A_TIME },
    work: (job) => runApply(job, context, context.interrupt),
    urgent: async (sinceMs) => (await lostTurns(store, sinceMs)).map(jobOf),
    waiting: async (sinceMs, limit) => (await appliesOfWaitingOwners(store, sinceMs, limit)).map(jobOf),
  };
}

function jobOf({ id: applyId, attempt, request_id: requestId }: QueuedApply): ApplyJob {
  return { applyId, attempt, requestId };
}

/**
 * Carries out a try. Running it twice is harmless: the second run finds nothing to claim. When the service itself
 * fails, the row stays without an active job, and recovery queues it again.
 * @param signal aborts when the worker has to stop
 */
export function runApply(job: ApplyJob, context: ApplyContext, signal: AbortSignal): Promise<void> {
  return context.activeJobs.run(applyJobId(job), () => carryOut(job, context, signal));
}

async function carryOut(job: ApplyJob, context: ApplyContext, signal: AbortSignal): Promise<void> {
  const { applyId: id, attempt, requestId } = job;
  const log = context.log.child({ request_id: requestId, apply_id: id });
  const { store } = context.lifecycle;
  const apply = await claimApply(store, { id, attempt }, context.workerId);
  if (!apply) {
    log.info({ attempt }, 'apply is no longer waiting for this job');
    return;
  }
  try {
    await resume(context, tryOf(apply, context, log, signal));
  } catch (thrown) {
    if (signal.aborted) {
      // Recovery queues it again.
      log.warn('apply interrupted by the end of this worker');
      return;
    }
    if (!(thrown instanceof AttemptLost)) throw thrown;
    log.info({ attempt }, 'another worker continues the apply');
    return;
  }
  await releaseAll(context, id);
  const ended = await findApplySummary(store, id);
  log.info({ state: ended?.state, ...(ended?.error && { error: ended.error }) }, 'apply finished');
  // So that the dashboard has it under Failed.
  if (ended && ended.state !== 'succeeded') throw new FailedJob(ended.error ?? ended.state);
}

function tryOf(apply: Apply, context: ApplyContext, log: ApplyTry['log'], signal: AbortSignal): ApplyTry {
  const { store } = context.lifecycle;
  let progress = apply.progress;
  return {
    ...{ apply, log, signal },
    progress: async (state, step, done, of) => {
      progress = { ...progress, [step]: { done, of } };
      await advanceApply(store, apply, state, { progress });
    },
  };
}

/** Carries the apply from the state of its row to its end. */
async function resume(context: ApplyContext, current: ApplyTry): Promise<void> {
  const { apply } = current;
  if (apply.state === 'undoing') return undo(context, current, failureOfRow(apply));
  const written = apply.state === 'converging' ? apply.written : await commit(context, current);
  if (written) await converge(context, { ...current, apply: { ...apply, written } });
}

/** @returns what is committed; undefined when it has failed, and nothing was changed */
async function commit(context: ApplyContext, current: ApplyTry): Promise<AnnouncedChanges | undefined> {
  const { apply, signal } = current;
  const { lifecycle, secrets, config } = context;
  const { store } = lifecycle;
  const changed = new SecretsChangedSince(apply.created_at, false);
  // What it does may begin long after it was asked for, and end long after it has begun.
  const stillAllowed = async (tx: Store) => {
    await requireRightsAsBefore(tx, config, apply);
    return changed.readObjects(tx, secrets);
  };
  let state: ApplyState = apply.state;
  const enter = async (next: ApplyState) => {
    signal.throwIfAborted();
    await advanceApply(store, apply, state, { state: next });
    state = next;
  };
  try {
    await requireRightsAsBefore(store, config, apply);
    await enter('compiling');
    const compiled = await compileAll(context, current);
    await advanceApply(store, apply, state, { isReady: true });
    if (!(await takeTurn(store, apply))) {
      await enter('waiting');
      await awaitTurn(lifecycle, current);
    }
    // Its code runs from here on.
    await requireRightsAsBefore(store, config, apply);
    await enter('preparing');
    await prepareAll(context, current, compiled, await readObjects(store, secrets));
    await enter('committing');
    const scheduled = new Set<string>();
    const written = await commitApply(store, apply, stillAllowed, {
      ...{ compiled, nextRun },
      ...(await configSealer(store, secrets, apply.rollback_of, changed)),
      scheduled: (ids) => {
        for (const id of ids) scheduled.add(id);
      },
    });
    await updateQueue(context, [...scheduled]);
    return written;
  } catch (thrown) {
    if (signal.aborted || !(thrown instanceof AppError)) throw thrown;
    await advanceApply(store, apply, state, { state: 'failed', failure: failureOf(thrown), hasEnded: true });
    return undefined;
  }
}

async function converge(context: ApplyContext, current: ApplyTry): Promise<void> {
  const { apply, signal, progress } = current;
  const { lifecycle } = context;
  const written = apply.written ?? { endpoints: [], services: [] };
  const of = written.endpoints.length;
  const onProgress = (left: number) => progress('converging', 'converged', of - left, of);
  const { refusals, isLate } = await awaitConvergence(lifecycle, written, signal, onProgress);
  const [first] = refusals;
  if (!first && !isLate) {
    const away = await awayServices(lifecycle.store, written.services);
    return settleApply(lifecycle.store, apply, away.map(awayWarning));
  }
  const failure: ErrorFacts = {
    code: 'handler_start_failed',
    message: first
      ? `"${first.name}" on the machine ${first.hostname}: ${first.error ?? 'it does not run.'}`
      : 'Not all gateways have reported in time that they serve accordingly; see their logs.',
    details: { refusals },
  };
  await advanceApply(lifecycle.store, apply, 'converging', { state: 'undoing', failure });
  await undo(context, current, failure);
}

/** Why, only those may read who may read services. */
function awayWarning(name: string): string {
  return (
    `The service "${name}" is active, but cannot be reached yet; it is tried again by itself. ` +
    'Its state says why (`edge service show`).'
  );
}

async function undo(context: ApplyContext, current: ApplyTry, failure: ErrorFacts): Promise<void> {
  const { apply, signal, log } = current;
  const { lifecycle, secrets } = context;
  const { store } = lifecycle;
  log.warn({ error: failure.message }, 'an apply is undone');
  let { written } = apply;
  if (apply.undone_at === null) {
    const row = await findApplySummary(store, apply.id);
    const scheduled = new Set<string>();
    const changed = new SecretsChangedSince(apply.created_at, true);
    written = await undoApply(
      store,
      { ...apply, outcome: row?.outcome ?? null },
      failure,
      (tx) => changed.readObjects(tx, secrets),
      {
        nextRun,
        changedSecrets: () => changed.names,
        ...(await configSealer(store, secrets, apply.id, changed)),
        scheduled: (ids) => {
          for (const id of ids) scheduled.add(id);
        },
      },
    );
    await updateQueue(context, [...scheduled]);
  }
  // What was there before may have been in error before: there is nothing else to go back to.
  if (written) await awaitConvergence(lifecycle, written, signal);
  await advanceApply(store, apply, 'undoing', { state: 'undone', hasEnded: true });
}

function failureOf({ code, message, extras }: AppError): ErrorFacts {
  return { code, message, details: (extras.details ?? {}) as Readonly<Record<string, unknown>> };
}

function failureOfRow({ error_code, error }: Apply): ErrorFacts {
  return { code: error_code ?? 'internal_error', message: error ?? 'It was undone.' };
}

/** Tells the queue of schedules that were made, changed or deleted. A periodic task finds those that it misses. */
async function updateQueue({ lifecycle, queues, log }: ApplyContext, ids: readonly string[]): Promise<void> {
  try {
    const known = await schedulesByIds(lifecycle.store, ids);
    for (const id of ids) {
      const schedule = known.get(id);
      const when = schedule?.enabled ? { cron: schedule.cron, timezone: schedule.timezone } : null;
      await queues.setSchedule(id, when);
    }
  } catch (thrown) {
    log.warn({ err: toError(thrown) }, 'schedules could not be updated in the queue; that is tried again');
  }
}

/** Ends handlers that were prepared and not taken. A gateway that cannot be reached ends them by itself. */
export async function releaseAll({ gateways, log }: ApplyContext, applyId: string): Promise<void> {
  try {
    const nodes = await gateways.nodes();
    await Promise.all(nodes.map(async ({ address }) => address && gateways.release(address, { applyId })));
  } catch (thrown) {
    log.info({ err: toError(thrown), apply_id: applyId }, 'prepared handlers end by themselves');
  }
}
