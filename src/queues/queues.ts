/** The job queues, for producers and consumers. */
import { type Job, type Processor, type Queue, runMigrations, UnrecoverableError } from 'bullmq';
import pTimeout from 'p-timeout';
import { AppError, toError } from '../errors.js';
import type { HandlerAttempt } from '../store/import-handlers.js';
import { openQueuePool } from '../store/queue-pool.js';
import type { Logger } from '../util/log.js';
import { JOB_RETENTION, NO_RETENTION, openBackend, type QueueConfig, rateLimited } from './backend.js';
import { type HandlerJob, type ImportJob, type Jobs, QUEUE_NAMES, QUEUES, type QueueName } from './jobs.js';

export type { QueueConfig } from './backend.js';

/** The jobs of one queue in one state. */
export interface QueueDepth {
  readonly queue: string;
  readonly state: string;
  readonly jobs: number;
}

/** When the runs of a schedule begin. */
export interface ScheduleTimes {
  readonly cron: string;
  readonly timezone: string;
}

/** The queues as producers see them. */
export interface Queues {
  /** All queues, for the dashboard. */
  readonly all: readonly Queue[];
  /**
   * Puts a job on its queue. Idempotent.
   * @param delayMs before which nobody takes it
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  enqueue<Name extends QueueName>(queue: Name, job: Jobs[Name], delayMs?: number): Promise<void>;
  /**
   * Puts an import on the queue: a job for each handler, and one that is their parent.
   * @throws AppError `queue_unavailable` when the queue cannot be reached: then there is no job at all.
   */
  enqueueImport(job: ImportJob, handlers: readonly HandlerAttempt[]): Promise<void>;
  /** True while the queue knows the job with this id, and it is not finished. */
  hasJob(queue: QueueName, id: string): Promise<boolean>;
  /**
   * Has a job made whenever a run of a schedule is due; null: never again. Idempotent.
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  setSchedule(id: string, when: ScheduleTimes | null): Promise<void>;
  /** The schedules that the queue knows, with their times. */
  schedules(): Promise<ReadonlyMap<string, ScheduleTimes>>;
  /** How many jobs there are; undefined (and logged) while the queue cannot be reached. */
  depths(): Promise<readonly QueueDepth[] | undefined>;
  close(): Promise<void>;
}

/** Opens the producing side. Does not wait for a connection: while there is none, enqueueing fails at once. */
export function openQueues(config: QueueConfig, log: Logger): Queues {
  const backend = openBackend(config, { failFast: true });
  backend.onError(rateLimited((error) => log.warn({ err: error }, 'queue connection failed')));
  const open = (name: QueueName): Queue => {
    const queue = backend.queue(name);
    queue.on('error', rateLimited(warnFailed(log, name)));
    return queue;
  };
  const opened = Object.fromEntries(QUEUE_NAMES.map((name) => [name, open(name)])) as Record<
    QueueName,
    Queue
  >;
  const all = Object.values(opened);
  const flows = backend.flowProducer();
  flows.on('error', rateLimited(warnFailed(log, 'import')));
  const warnUncounted = rateLimited((error) =>
    log.warn({ err: error }, 'jobs of the queue could not be counted'),
  );
  return {
    all,
    enqueue: async (name, job, delayMs) => {
      const opts = { ...optionsOf(name, job), ...(delayMs !== undefined && { delay: delayMs }) };
      await reaching(opened[name].add(name, dataOf(name, job), opts));
    },
    enqueueImport: async (job, handlers) => {
      const children = handlers.map((handler) => {
        const data: HandlerJob = { ...handler, requestId: job.requestId };
        // The outcome of a handler is in its row; a failed job must not block its parent.
        const opts = { ...optionsOf('handler', data), ignoreDependencyOnFailure: true };
        return { name: 'handler', queueName: 'handler', data: dataOf('handler', data), opts };
      });
      const opts = optionsOf('import', job);
      const flow = { name: 'import', queueName: 'import', data: dataOf('import', job), opts, children };
      await reaching(flows.add(flow), ANSWER_TIMEOUT_MS + children.length * ANSWER_TIMEOUT_OF_CHILD_MS);
    },
    hasJob: (name, id) => hasJob(opened[name], id),
    setSchedule: async (id, when) => {
      const { schedule } = opened;
      await reaching(
        when === null
          ? schedule.removeJobScheduler(id)
          : schedule.upsertJobScheduler(
              id,
              { pattern: when.cron, tz: when.timezone },
              { name: 'schedule', data: dataOf('schedule', { scheduleId: id }), opts: JOB_RETENTION },
            ),
      );
    },
    schedules: async () => {
      const known = await opened.schedule.getJobSchedulers();
      return new Map(
        known.map(({ key, pattern = '', tz = '' }) => [key, { cron: pattern, timezone: tz }] as const),
      );
    },
    depths: async () => {
      try {
        return (await Promise.all(all.map(depthsOf))).flat();
      } catch (error) {
        warnUncounted(error);
        return undefined;
      }
    },
    close: async () => {
      await flows.close();
      for (const queue of all) await queue.close();
      await backend.close();
    },
  };
}

function dataOf<Name extends QueueName>(name: Name, job: Jobs[Name]): Partial<Jobs[Name]> {
  const members = Object.keys(QUEUES[name].members) as (keyof Jobs[Name])[];
  const entries = members.flatMap((member) =>
    job[member] === undefined ? [] : [[member, job[member]] as const],
  );
  return Object.fromEntries(entries) as Partial<Jobs[Name]>;
}

function optionsOf<Name extends QueueName>(name: Name, job: Jobs[Name]) {
  const { jobId, keepsFinished } = QUEUES[name];
  return { ...(keepsFinished ? JOB_RETENTION : NO_RETENTION), jobId: jobId(job) };
}

/** A running consumer of one queue. */
export interface Consumer {
  /** Takes no more jobs and resolves when active ones are done. */
  close(): Promise<void>;
}

/** The work of a job was done, and has failed for a reason of its own: it is no fault of the service. */
export class FailedJob extends UnrecoverableError {
  /** @param reason for operators; what is beyond the limit is left out */
  constructor(reason: string) {
    super(reason.slice(0, MAX_REASON_CHARACTERS));
    // The dashboard shows it below the reason.
    this.stack = '';
  }
}

const MAX_REASON_CHARACTERS = 16 * 1024;

/** Consumes a queue, `concurrency` jobs at a time. */
export function consume<Name extends QueueName>(
  config: QueueConfig,
  queueName: Name,
  processor: Processor<Jobs[Name], unknown>,
  concurrency: number,
  log: Logger,
): Consumer {
  const backend = openBackend(config, { failFast: false });
  const logFailed = (job: Job | undefined, error: unknown) =>
    log.error({ err: error, queue: queueName, job_id: job?.id }, 'job failed');
  const failures = new WeakSet<Error>();
  // Logged at once: BullMQ reports a failure after recording it, which an outage of its server delays.
  const logged: Processor<Jobs[Name], unknown> = async (job, ...rest) => {
    try {
      return await processor(job, ...rest);
    } catch (thrown) {
      const error = toError(thrown);
      failures.add(error);
      if (!(error instanceof FailedJob)) logFailed(job, error);
      throw error;
    }
  };
  const worker = backend.worker(queueName, logged, concurrency);
  worker.on('error', rateLimited(warnFailed(log, queueName)));
  // Others are BullMQ's own, such as those of stalled jobs.
  worker.on('failed', (job, error) => {
    if (!failures.has(error)) logFailed(job, error);
  });
  backend.onError(rateLimited((error) => log.warn({ err: error }, 'queue connection failed')));
  return {
    close: async () => {
      await worker.close();
      await backend.close();
    },
  };
}

/** Creates BullMQ's own tables when the queues live in PostgreSQL. */
export async function migrateQueues(config: QueueConfig): Promise<void> {
  const pool = openQueuePool(config.DATABASE_URL);
  try {
    await runMigrations(pool);
  } finally {
    await pool.end();
  }
}

async function hasJob(queue: Queue, id: string): Promise<boolean> {
  const look = async () => {
    const job = await queue.getJob(id);
    return job !== undefined && !(await job.isCompleted()) && !(await job.isFailed());
  };
  return pTimeout(look(), { milliseconds: ANSWER_TIMEOUT_MS });
}

async function depthsOf(queue: Queue): Promise<QueueDepth[]> {
  const counts = await pTimeout(queue.getJobCounts('waiting', 'active', 'delayed', 'failed'), {
    milliseconds: ANSWER_TIMEOUT_MS,
  });
  return Object.entries(counts).map(([state, jobs]) => ({ queue: queue.name, state, jobs }));
}

const ANSWER_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_OF_CHILD_MS = 10;

/** @throws AppError queue_unavailable */
async function reaching(work: Promise<unknown>, timeoutMs = ANSWER_TIMEOUT_MS): Promise<void> {
  try {
    await pTimeout(work, { milliseconds: timeoutMs });
  } catch (cause) {
    throw new AppError(
      'queue_unavailable',
      'The job queue cannot be reached; try again in a moment.',
      {},
      { cause },
    );
  }
}

function warnFailed(log: Logger, queue: string): (error: Error) => void {
  return (error) => log.warn({ err: error, queue }, 'queue connection failed');
}
