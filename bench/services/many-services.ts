/** What several active services cost: their memory while nobody calls them, and each other's speed. */
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { startRedisBackend } from '../../test/support/backends/redis.js';
import { descendantsOf } from '../../test/support/process-state.js';
import type { Stack } from '../../test/support/processes.js';
import type { ServiceClient } from '../../test/support/service-client.js';
import { activeService, bind, connectAs, createEndpoint } from '../../test/support/test-services.js';
import { concurrentRate } from '../support/concurrent-rate.js';
import { median, type Row, round } from '../support/report.js';

const IDLE_SERVICES = 20;
const IDLE_MS = 15_000;
const ROUNDS = 5;
const SECONDS = 3;
/** Elements of the list that is read: the process of the service converts them, with little work for the others. */
const ELEMENTS = 10_000;
const UNDER_WAY = 8;

/** The proportional set size of the processes of 20 services, with the connections that their configs ask for. */
export async function idleServices(stack: Stack): Promise<Row> {
  const backend = await startRedisBackend();
  const ids: string[] = [];
  try {
    for (let count = 0; count < IDLE_SERVICES; count++)
      ids.push(await activeService(stack.api, 'redis', { ...backend.config, pool_size: 10 }));
    const host = stack.processes.get('actor-host')?.pid ?? 0;
    const own = descendantsOf(host).filter(({ command }) => ids.some((id) => command.includes(id)));
    // What a start leaves behind is collected when nothing has happened for some seconds.
    await delay(IDLE_MS);
    const sizes = await Promise.all(own.map(({ pid }) => proportionalMb(pid)));
    const sum = sizes.reduce((total, size) => total + size, 0);
    return {
      question: `memory of ${IDLE_SERVICES} active redis services that nobody calls`,
      measured: `${own.length} processes, ${round(median(sizes))} MiB each`,
      value: sum,
      unit: 'MiB',
      bar: { atMost: 300 },
    };
  } finally {
    for (const id of ids) await stack.api.delete(`/api/services/${id}`);
    await backend.remove();
  }
}

/** Calls of two services at once, compared with calls of one alone. */
export async function twoServices(stack: Stack): Promise<Row> {
  const backend = await startRedisBackend();
  const clients: ServiceClient[] = [];
  try {
    for (let count = 0; count < 2; count++) {
      const endpointId = await createEndpoint(stack.api, `/two-services/${count}`);
      await bind(stack.api, endpointId, await activeService(stack.api, 'redis', backend.config), 'cache');
      clients.push(await connectAs(stack, endpointId));
    }
    const list = ['RPUSH', 'list', ...Array.from({ length: ELEMENTS }, (_, at) => `element ${at}`)];
    await clients[0]?.send({ pool: 'cache', op: 'command' }, JSON.stringify(list));
    const read = async (client: ServiceClient) => {
      const { ok, message } = await client.send(
        { pool: 'cache', op: 'command' },
        '["LRANGE","list","0","-1"]',
      );
      if (!ok) throw new Error(message);
    };
    const rate = (used: readonly ServiceClient[]) => concurrentRate(SECONDS, UNDER_WAY, used, read);
    await rate(clients);
    const pairs: { one: number; two: number }[] = [];
    for (let round = 0; round < ROUNDS; round++)
      pairs.push({ two: await rate(clients), one: await rate(clients.slice(0, 1)) });
    return {
      question: 'calls/s of two services at once, against one alone: reads of lists of redis',
      measured: `${round(median(pairs.map(({ two }) => two)))}/s against ${round(median(pairs.map(({ one }) => one)))}/s`,
      value: median(pairs.map(({ one, two }) => two / one)),
      unit: 'x',
      bar: { atLeast: 1.5 },
    };
  } finally {
    for (const client of clients) await client.close();
    await backend.remove();
  }
}

/** Memory of a process, with its share of what it has in common with others, MiB. */
async function proportionalMb(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss: +(\d+) kB$/m.exec(text)?.[1]) / 1024;
}
