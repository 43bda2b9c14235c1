/** The job `schedule`: queues the run of a schedule that is due. */
import { toError } from '../src/errors.js';
import { nextRun } from '../src/queues/cron.js';
import type { ScheduleJob } from '../src/queues/jobs.js';
import { enabledSchedules, overdueSchedules, runSchedule } from '../src/store/schedules.js';
import type { DeliveryContext } from './deliver.js';

type ScheduleContext = Pick<DeliveryContext, 'store' | 'queues' | 'log'>;

const RUN_SETTINGS = { maxAttempts: 5, backoffMs: 1_000 };
/** Runs that the queue has not announced by then. */
const LATE_MS = 5_000;

/** Queues the run of a schedule that is due, if no other worker has done it. */
export async function startRun({ scheduleId }: ScheduleJob, context: ScheduleContext): Promise<void> {
  const { store, queues, log } = context;
  const run = await runSchedule(store, scheduleId, nextRun, RUN_SETTINGS);
  if (!run) return;
  await queues.enqueueInvoke(run, 0).catch((thrown: unknown) => {
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
  const wanted = await enabledSchedules(store);
  for (const { id, cron, timezone } of wanted) {
    const is = known.get(id);
    if (is?.cron !== cron || is.timezone !== timezone) await queues.setSchedule(id, { cron, timezone });
  }
  const ids = new Set(wanted.map(({ id }) => id));
  for (const id of known.keys()) if (!ids.has(id)) await queues.setSchedule(id, null);
}
