/** How much latency does a call of a service add to a request? */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type { ServiceConfig } from '../../src/model/service-configs.js';
import { startRedisBackend } from '../../test/support/backends/redis.js';
import type { Stack } from '../../test/support/processes.js';
import { activeService, bind } from '../../test/support/test-services.js';
import { REDIS_GET, SMALL_JSON } from '../support/handlers.js';
import { load } from '../support/load.js';
import { median, type Row, round } from '../support/report.js';

const ROUNDS = 5;
const SECONDS = 3;

/** One request at a time: the latency that a call adds to a handler. */
export async function redisGet(stack: Stack): Promise<Row> {
  const backend = await startRedisBackend();
  const direct = new Redis({ port: backend.config.port, password: backend.config.password ?? '' });
  try {
    await direct.set('greeting', 'hello');
    const serviceId = await activeService(stack.api, 'redis', backend.config);
    await stack.deploy({ path: '/without/{name}', code: SMALL_JSON });
    await bind(stack.api, await stack.deploy({ path: '/with', code: REDIS_GET }), serviceId, 'cache');
    const p50 = async (path: string) =>
      (await load({ url: stack.gatewayUrl + path, seconds: SECONDS, connections: 1 })).p50;
    await p50('/with');
    const ratios: number[] = [];
    const added: number[] = [];
    const plain: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const difference = (await p50('/with')) - (await p50('/without/ada'));
      const own = await ioredisP50(backend.config);
      added.push(difference);
      plain.push(own);
      ratios.push(difference / own);
    }
    return {
      question: 'p50 that `RedisPool.get` adds to a request, against `get` of ioredis from Node',
      measured: `${round(median(added))} ms against ${round(median(plain))} ms`,
      value: median(ratios),
      unit: 'x',
      bar: { atMost: 2 },
    };
  } finally {
    direct.disconnect();
    await backend.remove();
  }
}

/** Median duration of a `get` in milliseconds, in a program that does nothing else. */
async function ioredisP50({ port, password }: ServiceConfig<'redis'>): Promise<number> {
  const child = fork(fileURLToPath(new URL('../support/ioredis-latency.js', import.meta.url)), [
    String(port),
    password ?? '',
  ]);
  const [{ p50 }] = (await once(child, 'message')) as [{ p50: number }];
  await once(child, 'exit');
  return p50;
}
