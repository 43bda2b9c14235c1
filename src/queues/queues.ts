/** The job queues, for producers and consumers. */
import { type Job, type Processor, type Queue, runMigrations, UnrecoverableError } from 'bullmq';
import pTimeout from 'p-timeout';
import { AppError, toError } from '../errors.js';
import type { BuildAttempt } from '../store/builds.js';
import type { HandlerAttempt } from '../store/import-handlers.js';
import type { QueuedJob } from '../store/jobs.js';
import { openQueuePool } from '../store/queue-pool.js';
import type { Logger } from '../util/log.js';
import { JOB_RETENTION, NO_RETENTION, openBackend, type QueueConfig, rateLimited } from './backend.js';
import {
  ACME_QUEUE,
  type AcmeJob,
  ALERT_QUEUE,
  type AlertJob,
  APPLY_QUEUE,
  type ApplyJob,
  alertJobId,
  applyJobId,
  buildJobId,
  COMPILE_QUEUE,
  type CompileJob,
  HANDLER_QUEUE,
  type HandlerJob,
  handlerJobId,
  IMPORT_QUEUE,
  type ImportJob,
  INVOKE_QUEUE,
  type InvokeJob,
  invokeJobId,
  SCHEDULE_QUEUE,
  type ScheduleJob,
} from './jobs.js';

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
  /** For the dashboard. */
  readonly all: readonly Queue[];
  /**
   * Puts an attempt of a build on the queue. Idempotent.
   * @param endpoint the name of the one that asked for it
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  enqueueCompile(build: BuildAttempt, requestId: string, endpoint?: string): Promise<void>;
  /** True while the queue knows a job for this attempt that is not finished. */
  hasCompileJob(build: BuildAttempt): Promise<boolean>;
  /**
   * Puts an import on the queue: a job for each handler, and one that is their parent.
   * @throws AppError `queue_unavailable` when the queue cannot be reached: then there is no job at all.
   */
  enqueueImport(job: ImportJob, handlers: readonly HandlerAttempt[]): Promise<void>;
  /**
   * Puts an attempt of one handler on the queue, without a parent. Idempotent.
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  enqueueHandler(handler: HandlerAttempt, requestId: string): Promise<void>;
  /** True while the queue knows a job for this attempt that is not finished. */
  hasHandlerJob(handler: HandlerAttempt): Promise<boolean>;
  /**
   * Puts a request for a handler on the queue. Idempotent.
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  enqueueInvoke(job: QueuedJob, delayMs: number): Promise<void>;
  /** True while the queue knows a job for this request that is not finished. */
  hasInvokeJob(job: QueuedJob): Promise<boolean>;
  /**
   * Puts an attempt to send a webhook on the queue. Idempotent.
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  enqueueAlert(job: AlertJob): Promise<void>;
  /**
   * Puts a try to order a certificate on the queue. Idempotent.
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  enqueueAcme(job: AcmeJob): Promise<void>;
  /**
   * Puts a try of an apply on the queue. Idempotent.
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  enqueueApply(job: ApplyJob): Promise<void>;
  /** True while the queue knows a job for this try that is not finished. */
  hasApplyJob(job: Pick<ApplyJob, 'applyId' | 'attempt'>): Promise<boolean>;
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
  const open = (name: string): Queue => {
    const queue = backend.queue(name);
    queue.on('error', rateLimited(warnFailed(log, name)));
    return queue;
  };
  const compiling = open(COMPILE_QUEUE);
  const handlers = open(HANDLER_QUEUE);
  const invoking = open(INVOKE_QUEUE);
  const scheduling = open(SCHEDULE_QUEUE);
  const alerting = open(ALERT_QUEUE);
  const applying = open(APPLY_QUEUE);
  const ordering = open(ACME_QUEUE);
  const all = [compiling, open(IMPORT_QUEUE), handlers, invoking, scheduling, alerting, applying, ordering];
  const flows = backend.flowProducer();
  flows.on('error', rateLimited(warnFailed(log, IMPORT_QUEUE)));
  const warnUncounted = rateLimited((error) =>
    log.warn({ err: error }, 'jobs of the queue could not be counted'),
  );
  return {
    all,
    enqueueCompile: async (build, requestId, endpoint) => {
      const job: CompileJob = {
        ...{ buildId: build.id, attempt: build.attempt, requestId },
        ...(endpoint !== undefined && { endpoint }),
      };
      await reaching(compiling.add('compile', job, { ...JOB_RETENTION, jobId: buildJobId(build) }));
    },
    hasCompileJob: (build) => hasJob(compiling, buildJobId(build)),
    enqueueImport: async (job, attempts) => {
      const children = attempts.map((handler) => {
        const data: HandlerJob = { ...handler, requestId: job.requestId };
        // The outcome of a handler is in its row; a failed job must not block its parent.
        const opts = { ...JOB_RETENTION, jobId: handlerJobId(handler), ignoreDependencyOnFailure: true };
        return { name: 'handler', queueName: HANDLER_QUEUE, data, opts };
      });
      const opts = { ...JOB_RETENTION, jobId: job.importId };
      const flow = { name: 'import', queueName: IMPORT_QUEUE, data: job, opts, children };
      await reaching(flows.add(flow), ANSWER_TIMEOUT_MS + children.length * ANSWER_TIMEOUT_OF_CHILD_MS);
    },
    enqueueHandler: async (handler, requestId) => {
      const job: HandlerJob = { ...handler, requestId };
      await reaching(handlers.add('handler', job, { ...JOB_RETENTION, jobId: handlerJobId(handler) }));
    },
    hasHandlerJob: (handler) => hasJob(handlers, handlerJobId(handler)),
    enqueueInvoke: async ({ id, generation, endpoint }, delayMs) => {
      const job: InvokeJob = { id, generation, ...(endpoint !== undefined && { endpoint }) };
      const opts = { ...JOB_RETENTION, jobId: invokeJobId(job), delay: delayMs };
      await reaching(invoking.add('invoke', job, opts));
    },
    hasInvokeJob: (job) => hasJob(invoking, invokeJobId(job)),
    enqueueAlert: async (job) => {
      await reaching(alerting.add('alert', job, { ...NO_RETENTION, jobId: alertJobId(job) }));
    },
    enqueueAcme: async (job) => {
      await reaching(ordering.add('acme', job, { ...NO_RETENTION, jobId: job.ticket }));
    },
    enqueueApply: async (job) => {
      await reaching(applying.add('apply', job, { ...JOB_RETENTION, jobId: applyJobId(job) }));
    },
    hasApplyJob: (job) => hasJob(applying, applyJobId(job)),
    setSchedule: async (id, when) => {
      const job: ScheduleJob = { scheduleId: id };
      await reaching(
        when === null
          ? scheduling.removeJobScheduler(id)
          : scheduling.upsertJobScheduler(
              id,
              { pattern: when.cron, tz: when.timezone },
              { name: 'schedule', data: job, opts: JOB_RETENTION },
            ),
      );
    },
    schedules: async () => {
      const known = await scheduling.getJobSchedulers();
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
export function consume<T>(
  config: QueueConfig,
  queueName: string,
  processor: Processor<T, unknown>,
  concurrency: number,
  log: Logger,
): Consumer {
  const backend = openBackend(config, { failFast: false });
  const logFailed = (job: Job | undefined, error: unknown) =>
    log.error({ err: error, queue: queueName, job_id: job?.id }, 'job failed');
  const failures = new WeakSet<Error>();
  // Logged at once: BullMQ reports a failure after recording it, which an outage of its server delays.
  const logged: Processor<T, unknown> = async (job, ...rest) => {
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
