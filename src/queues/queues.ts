/**
 * The job queues: BullMQ on Redis when REDIS_URL is set, on PostgreSQL otherwise.
 * Jobs carry ids only; what they are about, and what came of it, stands in tables.
 */
import {
  createPostgresBackend,
  type PostgresConnectionOptions,
  type Processor,
  Queue,
  runMigrations,
  Worker,
  withBackend,
} from 'bullmq';
import { Redis } from 'ioredis';
import { AppError, toError } from '../errors.js';
import type { Logger } from '../log.js';
import type { BuildAttempt } from '../store/builds.js';
import { openQueuePool } from '../store/queue-pool.js';

/** The queue of builds. */
export const COMPILE_QUEUE = 'compile';

/** A job of the compile queue. */
export interface CompileJob {
  readonly buildId: string;
  readonly attempt: number;
  /** Of the API call that asked for it. */
  readonly requestId: string;
}

/** Where the queues live. */
export interface QueueConfig {
  readonly DATABASE_URL: string;
  readonly REDIS_URL: string | undefined;
}

/** Finished jobs are kept for operators to look at, but not for ever. */
const JOB_RETENTION = {
  removeOnComplete: { age: 24 * 3600, count: 1_000 },
  removeOnFail: { age: 7 * 24 * 3600, count: 1_000 },
};

/** The jobs of one queue in one state. */
export interface QueueDepth {
  readonly queue: string;
  readonly state: string;
  readonly jobs: number;
}

/** The queues as producers see them. */
export interface Queues {
  /** For the dashboard. */
  readonly all: readonly Queue[];
  /**
   * Puts an attempt of a build on the queue; doing so twice is the same as once.
   * @throws AppError `queue_unavailable` when the queue cannot be reached.
   */
  enqueueCompile(build: BuildAttempt, requestId: string): Promise<void>;
  /** True while the queue knows a job for this attempt that is not finished. */
  hasCompileJob(build: BuildAttempt): Promise<boolean>;
  /** How many jobs there are; undefined (and logged) while the queue cannot be reached. */
  depths(): Promise<readonly QueueDepth[] | undefined>;
  close(): Promise<void>;
}

/** Opens the producing side. Does not wait for a connection: while there is none, enqueueing fails at once. */
export function openQueues(config: QueueConfig, log: Logger): Queues {
  const backend = openBackend(config, { failFast: true });
  const queue = backend.queue(COMPILE_QUEUE);
  queue.on(
    'error',
    rateLimited((error) => log.warn({ err: error, queue: COMPILE_QUEUE }, 'queue connection failed')),
  );
  backend.onError(rateLimited((error) => log.warn({ err: error }, 'queue connection failed')));
  const warnUncounted = rateLimited((error) =>
    log.warn({ err: error, queue: COMPILE_QUEUE }, 'jobs of the queue could not be counted'),
  );
  return {
    all: [queue],
    enqueueCompile: async (build, requestId) => {
      const job: CompileJob = { buildId: build.id, attempt: build.attempt, requestId };
      try {
        await withTimeout(queue.add('compile', job, { ...JOB_RETENTION, jobId: jobId(build) }));
      } catch (cause) {
        throw new AppError(
          'queue_unavailable',
          'The job queue cannot be reached; try again in a moment.',
          {},
          { cause },
        );
      }
    },
    hasCompileJob: async (build) => {
      const job = await queue.getJob(jobId(build));
      return job !== undefined && !(await job.isCompleted()) && !(await job.isFailed());
    },
    depths: async () => {
      try {
        const counts = await withTimeout(queue.getJobCounts('waiting', 'active', 'delayed', 'failed'));
        return Object.entries(counts).map(([state, jobs]) => ({ queue: COMPILE_QUEUE, state, jobs }));
      } catch (error) {
        warnUncounted(error);
        return undefined;
      }
    },
    close: async () => {
      await queue.close();
      await backend.close();
    },
  };
}

/** A running consumer of one queue. */
export interface Consumer {
  /** Takes no more jobs and resolves when those at hand are done. */
  close(): Promise<void>;
}

/** Starts to work on a queue, `concurrency` jobs at a time. */
export function consume<T>(
  config: QueueConfig,
  queueName: string,
  processor: Processor<T, void>,
  concurrency: number,
  log: Logger,
): Consumer {
  const backend = openBackend(config, { failFast: false });
  const worker = backend.worker(queueName, processor, concurrency);
  worker.on(
    'error',
    rateLimited((error) => log.warn({ err: error, queue: queueName }, 'queue connection failed')),
  );
  worker.on('failed', (job, error) =>
    log.error({ err: error, queue: queueName, job_id: job?.id }, 'job failed'),
  );
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

// A custom job id may hold no ":" and not be a number.
function jobId({ id, attempt }: BuildAttempt): string {
  return `${id}-${attempt}`;
}

interface Backend {
  queue(name: string): Queue;
  worker<T>(name: string, processor: Processor<T, void>, concurrency: number): Worker<T, void>;
  onError(listener: (error: Error) => void): void;
  close(): Promise<void>;
}

function openBackend(config: QueueConfig, { failFast }: { failFast: boolean }): Backend {
  return config.REDIS_URL === undefined
    ? postgresBackend(config.DATABASE_URL)
    : redisBackend(config.REDIS_URL, failFast);
}

function postgresBackend(url: string): Backend {
  const pool = openQueuePool(url);
  // BullMQ describes the pools it takes with an index signature, which the real class does not declare.
  const connection = pool as unknown as PostgresConnectionOptions;
  const postgres = withBackend(createPostgresBackend);
  return {
    queue: (name) => new postgres.Queue(name, { connection }) as unknown as Queue,
    worker: (name, processor, concurrency) =>
      new postgres.Worker(name, processor as Processor, {
        connection,
        concurrency,
        ...JOB_RETENTION,
      }) as unknown as Worker,
    onError: (listener) => pool.on('error', listener),
    close: () => pool.end(),
  };
}

function redisBackend(url: string, failFast: boolean): Backend {
  const redis = new Redis(url, {
    // Workers must wait for Redis however long it takes; producers must not keep their callers waiting.
    maxRetriesPerRequest: failFast ? 1 : null,
    enableOfflineQueue: !failFast,
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
  });
  return {
    queue: (name) => new Queue(name, { connection: redis }),
    worker: (name, processor, concurrency) =>
      new Worker(name, processor, { connection: redis, concurrency, ...JOB_RETENTION }),
    onError: (listener) => redis.on('error', listener),
    close: async () => {
      redis.disconnect();
    },
  };
}

const ANSWER_TIMEOUT_MS = 2_000;

async function withTimeout<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms`)),
      ANSWER_TIMEOUT_MS,
    );
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

const REPEAT_AFTER_MS = 5_000;

/** The same errors come again and again while a server is away: one line every few seconds says as much. */
function rateLimited(listener: (error: Error) => void): (error: unknown) => void {
  let last = Number.NEGATIVE_INFINITY;
  return (error) => {
    const now = performance.now();
    if (now - last < REPEAT_AFTER_MS) return;
    last = now;
    listener(toError(error));
  };
}
