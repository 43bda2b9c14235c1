/**
 * How long after a fault is everything served again? Each fault happens several times under load; the median counts.
 * `test/torture/faults` tests the other promises about these faults.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type DatabaseServer, startDatabaseServer } from '../test/support/faults/database-server.js';
import { REDIS_READER } from '../test/support/faults/service-handlers.js';
import { numbered } from '../test/support/handler-sources.js';
import { type Load, startLoad } from '../test/support/load.js';
import { must, type Stack, startStack } from '../test/support/processes.js';
import { startRedis } from '../test/support/redis.js';
import { activeService, bind } from '../test/support/test-services.js';
import { withStacks } from './support/gateway.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, type Row, round } from './support/report.js';

const ROUNDS = 5;
const ENDPOINTS = 20;
/** Downtime of PostgreSQL. */
const AWAY_MS = 10_000;

export const recovery: Benchmark = () =>
  withStacks([{ env: { LOG_LEVEL: 'info', GATEWAY_CONCURRENCY: '3' } }], async (stack) => {
    if (!stack) throw new Error('no stack');
    for (let at = 0; at < ENDPOINTS; at++)
      await stack.deploy({ path: `/many/${at}`, code: numbered(at % 2) });
    return [
      await measured('a handler is killed', 250, () => handlerKilled(stack)),
      await measured(`a gateway with ${ENDPOINTS} endpoints is killed`, 2_000, () => gatewayKilled(stack)),
      await actorHostKilled(stack),
      ...(await databaseAway()),
    ];
  });

async function measured(fault: string, atMost: number, once: () => Promise<number>): Promise<Row> {
  const times: number[] = [];
  for (let number = 0; number < ROUNDS; number++) times.push(await once());
  return {
    question: `${fault}: time until it is served again`,
    measured: `median of ${ROUNDS}; ${times.map(round).join(', ')} ms`,
    value: median(times),
    unit: 'ms',
    bar: { atMost },
  };
}

const loadOn = ({ gatewayUrl }: Stack, path: string, text: string) =>
  startLoad({ targets: [gatewayUrl], clients: 6, request: () => ({ path, text }) });

/** Milliseconds from a moment until a request that was sent after it was answered. */
async function served(load: Load, from: number): Promise<number> {
  for (;;) {
    const first = load.firstServedAfter(from);
    if (first !== undefined) return first - from;
    await delay(1);
  }
}

/** On a separate endpoint each time, because a handler that crashes repeatedly is restarted later. */
async function handlerKilled(stack: Stack): Promise<number> {
  const path = '/killed';
  const id = await stack.deploy({ path, code: numbered(1) });
  const { pid } = (await must(stack.api.get(`/api/endpoints/${id}`))) as { pid: number };
  const load = await loadOn(stack, path, '1 ');
  const from = performance.now();
  process.kill(pid, 'SIGKILL');
  const ms = await served(load, from);
  await load.stop();
  await must(stack.api.delete(`/api/endpoints/${id}`));
  return ms;
}

/** From the restart until every endpoint has answered. */
async function gatewayKilled(stack: Stack): Promise<number> {
  await stack.processes.get('gateway')?.end('SIGKILL');
  const from = performance.now();
  const starting = stack.start('gateway');
  for (let at = 0; at < ENDPOINTS; at++) await answers(`${stack.gatewayUrl}/many/${at}`);
  const ms = performance.now() - from;
  await starting;
  return ms;
}

async function answers(url: string): Promise<void> {
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.status === 200) return;
    await delay(1);
  }
}

/** From the restart until a handler's call to a service has worked. */
async function actorHostKilled(stack: Stack): Promise<Row> {
  const redis = await startRedis();
  try {
    const { hostname: host, port } = new URL(redis.url);
    const serviceId = await activeService(stack.api, 'redis', { host, port: Number(port) });
    await bind(stack.api, await stack.deploy({ path: '/cached', code: REDIS_READER }), serviceId, 'cache');
    return await measured('the actor host is killed', 2_000, async () => {
      const load = await loadOn(stack, '/cached', 'value');
      await stack.processes.get('actor-host')?.end('SIGKILL');
      const from = performance.now();
      await stack.start('actor-host');
      const ms = await served(load, from);
      await load.stop();
      return ms;
    });
  } finally {
    await redis.remove();
  }
}

async function databaseAway(): Promise<Row[]> {
  const server = await startDatabaseServer();
  const stack = await startStack({
    databaseUrl: async () => server.url,
    processes: ['web'],
    env: { LOG_LEVEL: 'fatal' },
  });
  const seconds = AWAY_MS / 1_000;
  try {
    return [
      await measured(`PostgreSQL is stopped for ${seconds} s`, 5_000, () =>
        apiBack(stack, server.stop, server.start),
      ),
      await measured(`PostgreSQL hangs for ${seconds} s`, 5_000, () =>
        apiBack(stack, server.hang, server.wake),
      ),
    ];
  } finally {
    await stack.close();
    await server.remove();
  }
}

/** From the moment the server is back until the API answers. */
async function apiBack(
  { apiUrl }: Stack,
  takeAway: DatabaseServer['stop'],
  release: DatabaseServer['start'],
): Promise<number> {
  await takeAway();
  await delay(AWAY_MS);
  await release();
  const from = performance.now();
  await answers(`${apiUrl}/api/endpoints`);
  return performance.now() - from;
}

await runAlone(import.meta.url, recovery);
