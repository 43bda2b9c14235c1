/** The job `schedule`: queues the run of a schedule that is due. */
import { toError } from '../src/errors.js';
import { nextRun } from '../src/queues/cron.js';
import type { ScheduleJob } from '../src/queues/jobs.js';
import {
  enabledSchedules,
  overdueSchedules,
  ownerOfSchedule,
  runSchedule,
  schedulesOfWaitingOwners,
} from '../src/store/schedules.js';
import type { SharedQueue } from './consume-in-turns.js';
import type { DeliveryContext } from './deliver.js';

interface ScheduleContext extends Pick<DeliveryContext, 'store' | 'queues' | 'log'> {
  /** Most bytes of unfinished jobs and schedules of a domain. */
  readonly maxQueuedBytes: number;
}

const RUN_SETTINGS = { maxAttempts: 5, backoffMs: 1_000 };
/** These jobs only write rows. */
const RUNS_AT_A_TIME = 1;
/** Runs that the queue has not announced by then. */
const LATE_MS = 5_000;

/** The queue of schedules, as a worker consumes it. */
export function scheduleQueue(context: ScheduleContext): SharedQueue<'schedule'> {
  const { store } = context;
  return {
    ...{ name: 'schedule', slots: RUNS_AT_A_TIME },
    work: (job) => startRun(job, context),
    ownerOf: ({ scheduleId }) => ownerOfSchedule(store, scheduleId),
    waiting: async (sinceMs, limit, busy) => {
      const ids = await schedulesOfWaitingOwners(store, sinceMs, limit, busy);
      return ids.map((scheduleId) => ({ scheduleId }));
    },
  };
}

/** Queues the run of a schedule that is due, if no other worker has done it. */
export async function startRun({ scheduleId }: ScheduleJob, context: ScheduleContext): Promise<void> {
  const { store, queues, log, maxQueuedBytes: maxBytes } = context;
  const run = await runSchedule(store, scheduleId, nextRun, { ...RUN_SETTINGS, maxBytes });
  if (!run) return;
  await queues.enqueue('invoke', run).catch((thrown: unknown) => {
    // Recovery finds it.
    log.warn({ err: toError(thrown), schedule_id: scheduleId }, 'the run of a schedule could not be queued');
  });
}

/** Starts runs that the queue has not announced. */
export async function startOverdueRuns(context: ScheduleContext): Promise<void> {
  for (const scheduleId of await overdueSchedules(context.store, LATE_MS)) {
    context.log.warn({ schedule_id: scheduleId }, 'the queue has not announced the run of a schedule');
    await startRun({ scheduleId }, context);
  }
}

/** Tells the queue of schedules that it has lost, or that have changed without it. */
export async function restoreSchedules({ store, queues }: ScheduleContext): Promise<void> {
  // In this order: one that is made meanwhile is not taken for one that was deleted.
  const known = await queues.schedules();
  const enabled = await enabledSchedules(store);
  for (const { id, cron, timezone } of enabled) {
    const current = known.get(id);
    if (current?.cron !== cron || current.timezone !== timezone)
      await queues.setSchedule(id, { cron, timezone });
  }
  const ids = new Set(enabled.map(({ id }) => id));
  for (const id of known.keys()) if (!ids.has(id)) await queues.setSchedule(id, null);
}
