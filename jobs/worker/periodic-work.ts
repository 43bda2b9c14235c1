/** What a worker does again and again. Each task is in a file of its own. */
import type { Shutdown } from '../../src/bootstrap/shutdown.js';
import type { Config } from '../../src/config.js';
import { killAbandoned } from '../../src/sandbox/run-user.js';
import { condenseFigures } from '../../src/store/figures.js';
import { PeriodicTask } from '../../src/util/periodic-task.js';
import { orderDue } from '../acme.js';
import { watchAlerts } from '../alerts.js';
import { dropAccess } from '../drop-access.js';
import { dropLogs } from '../drop-logs.js';
import { recoverApplies } from '../recover-applies.js';
import { recoverBuilds } from '../recover-builds.js';
import { recoverCrashLoops, recoverDeployments, tidyHistory } from '../recover-deployments.js';
import { recoverImports } from '../recover-imports.js';
import { recoverJobs } from '../recover-jobs.js';
import { restoreSchedules, startOverdueRuns } from '../schedule.js';
import type { WorkerContext } from './context.js';

interface PeriodicWork {
  /** What it is called in the log, when it has failed. */
  readonly title: string;
  readonly everyMs: number;
  /** True for an interval that PERIODIC_WORK_PERCENT does not change. */
  readonly isFixed?: true;
  readonly run: (worker: WorkerContext) => Promise<unknown>;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Prepared dependency sets take some 50 MB each. */
const KEEP_UNUSED_SETS_MS = 30 * 24 * HOUR;

/** What may take minutes. */
const LONG_WORK: readonly PeriodicWork[] = [
  {
    title: 'encryption with SECRET_KEY',
    everyMs: 2 * SECOND,
    run: async ({ reseal }) => reseal?.run(),
  },
  {
    title: 'deletion of old versions and unused artifacts',
    everyMs: HOUR,
    isFixed: true,
    run: async ({ store, config, log, sweep }) => {
      await tidyHistory(store, config, log);
      await sweep.run();
    },
  },
  {
    title: 'deletion of unused dependency sets',
    everyMs: HOUR,
    isFixed: true,
    run: ({ sets }) => sets.forgetUnused(KEEP_UNUSED_SETS_MS),
  },
];

/** Each has a timer of its own: one that fails, without the queue for example, holds up no other. */
const WORK: readonly PeriodicWork[] = [
  {
    title: 'ending of abandoned programs',
    everyMs: 5 * SECOND,
    run: ({ runDir }) => killAbandoned(runDir),
  },
  {
    title: 'recovery of deployments',
    everyMs: 5 * SECOND,
    run: ({ lifecycle, log }) => recoverDeployments(lifecycle, log),
  },
  {
    title: 'ending of crash loops',
    everyMs: 5 * SECOND,
    run: ({ store, log }) => recoverCrashLoops(store, log),
  },
  { title: 'recovery of queued requests', everyMs: 5 * SECOND, run: recoverJobs },
  { title: 'recovery of schedules', everyMs: 5 * SECOND, run: startOverdueRuns },
  { title: 'restoring schedules', everyMs: MINUTE, run: restoreSchedules },
  { title: 'watching for alerts', everyMs: 5 * SECOND, run: watchAlerts },
  {
    title: 'ordering certificates',
    // A new domain waits no longer for its certificate.
    everyMs: 5 * SECOND,
    run: async ({ acme }) => acme && orderDue(acme),
  },
  {
    title: 'retention of the log',
    everyMs: 10 * SECOND,
    run: ({ store, config, log }) => dropLogs(store, config, log),
  },
  {
    title: 'retention of the audit',
    everyMs: 10 * SECOND,
    run: ({ store, config }) => dropAccess(store, config),
  },
  { title: 'retention of figures', everyMs: MINUTE, run: ({ store }) => condenseFigures(store) },
];

/** Once the SDK is built, and this worker takes the jobs that are recovered. */
const WORK_WITH_COMPILER: readonly PeriodicWork[] = [
  {
    title: 'recovery of builds',
    everyMs: 5 * SECOND,
    run: (worker) => recoverBuilds(worker.store, worker.queues, worker.log, worker),
  },
  {
    title: 'recovery of imports',
    everyMs: 5 * SECOND,
    run: (worker) => recoverImports(worker.store, worker.queues, worker.log, worker),
  },
  {
    title: 'recovery of applies',
    everyMs: 5 * SECOND,
    run: (worker) => recoverApplies(worker, worker.config),
  },
];

/** To be started before jobs are taken: what stops later than they do does not hold them up. */
export function startLongPeriodicWork(worker: WorkerContext, shutdown: Shutdown): void {
  startAll(LONG_WORK, worker, shutdown);
}

export function startPeriodicWork(worker: WorkerContext, shutdown: Shutdown): void {
  startAll(WORK, worker, shutdown);
}

export function startPeriodicWorkWithCompiler(worker: WorkerContext, shutdown: Shutdown): void {
  startAll(WORK_WITH_COMPILER, worker, shutdown);
}

/** The interval of periodic work, which a setting scales. */
export function intervalMs(
  { PERIODIC_WORK_PERCENT }: Pick<Config, 'PERIODIC_WORK_PERCENT'>,
  defaultMs: number,
): number {
  return (defaultMs * PERIODIC_WORK_PERCENT) / 100;
}

function startAll(all: readonly PeriodicWork[], worker: WorkerContext, shutdown: Shutdown): void {
  const { config, log } = worker;
  for (const { title, everyMs, isFixed, run } of all) {
    const task = new PeriodicTask(
      isFixed ? everyMs : intervalMs(config, everyMs),
      async () => void (await run(worker)),
      (error) => log.warn({ err: error }, `${title} failed`),
    );
    shutdown.add(title, () => task.stop());
  }
}
