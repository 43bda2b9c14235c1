/** The baseline of `RedisPool.get`: a process that only calls `get`, and reports its median. */
import { Redis } from 'ioredis';
import { median, timed } from './report.js';

const TIMES = 20_000;

const [, , port, password] = process.argv;
const redis = new Redis({ port: Number(port), ...(password && { password }) });
const durations: number[] = [];
for (let i = 0; i < TIMES; i++) durations.push(await timed(() => redis.get('greeting')));
redis.disconnect();
process.send?.({ p50: median(durations) });
