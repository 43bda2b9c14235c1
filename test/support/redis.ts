/** A real Redis for the job queues of tests: without a password, and empty whenever it starts. */
import { type RedisBackend, startRedisBackend } from './backends/redis.js';

export interface TestRedis extends Omit<RedisBackend, 'config'> {
  readonly url: string;
}

/** Starts a server. */
export async function startRedis(): Promise<TestRedis> {
  const { config, ...server } = await startRedisBackend({ password: null });
  return { ...server, url: `redis://${config.host}:${config.port}` };
}
