/** Where the job queues live: BullMQ on Redis when REDIS_URL is set, on PostgreSQL otherwise. */
import {
  createPostgresBackend,
  FlowProducer,
  type PostgresConnectionOptions,
  type Processor,
  Queue,
  Worker,
  withBackend,
} from 'bullmq';
import { Redis } from 'ioredis';
import { toError } from '../errors.js';
import { openQueuePool, untilConnected } from '../store/queue-pool.js';

/** Where the queues live. */
export interface QueueConfig {
  readonly DATABASE_URL: string;
  readonly REDIS_URL: string | undefined;
}

/** Retention of finished jobs, for operators. */
export const JOB_RETENTION = {
  removeOnComplete: { age: 24 * 3600, count: 1_000 },
  removeOnFail: { age: 7 * 24 * 3600, count: 1_000 },
};

/**
 * Retention of jobs whose rows say what is due, and when: one that has ended must not keep the same from being queued
 * again.
 * @see https://docs.bullmq.io/guide/jobs/job-ids
 */
export const NO_RETENTION = { removeOnComplete: true, removeOnFail: true };

/** BullMQ's classes on the server that the configuration names, sharing connections. */
export interface Backend {
  queue(name: string): Queue;
  flowProducer(): FlowProducer;
  worker<T>(name: string, processor: Processor<T, unknown>, concurrency: number): Worker<T, unknown>;
  onError(listener: (error: Error) => void): void;
  close(): Promise<void>;
}

export function openBackend(config: QueueConfig, { failFast }: { failFast: boolean }): Backend {
  return config.REDIS_URL === undefined
    ? postgresBackend(config.DATABASE_URL)
    : redisBackend(config.REDIS_URL, failFast);
}

function postgresBackend(url: string): Backend {
  const pool = untilConnected(openQueuePool(url));
  // BullMQ describes the pools it takes with an index signature, which the real class does not declare.
  const connection = pool as unknown as PostgresConnectionOptions;
  const postgres = withBackend(createPostgresBackend);
  return {
    queue: (name) => new postgres.Queue(name, { connection }) as unknown as Queue,
    flowProducer: () => new postgres.FlowProducer({ connection }) as unknown as FlowProducer,
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
    // Workers wait for Redis without a limit; producers fail fast, because callers wait for them.
    maxRetriesPerRequest: failFast ? 1 : null,
    enableOfflineQueue: !failFast,
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
  });
  return {
    queue: (name) => new Queue(name, { connection: redis }),
    flowProducer: () => new FlowProducer({ connection: redis }),
    worker: (name, processor, concurrency) =>
      new Worker(name, processor, { connection: redis, concurrency, ...JOB_RETENTION }),
    onError: (listener) => redis.on('error', listener),
    close: async () => {
      redis.disconnect();
    },
  };
}

const REPEAT_AFTER_MS = 5_000;

/** While a server is unavailable, the same error repeats: it is logged only once every few seconds. */
export function rateLimited(listener: (error: Error) => void): (error: unknown) => void {
  let last = Number.NEGATIVE_INFINITY;
  return (error) => {
    const now = performance.now();
    if (now - last < REPEAT_AFTER_MS) return;
    last = now;
    listener(toError(error));
  };
}
