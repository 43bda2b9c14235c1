/** How much memory does the front take: with many endpoints and busy connections, and for each idle connection? */
import { setTimeout as delay } from 'node:timers/promises';
import { openConnections } from '../test/support/connections.js';
import type { Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { defineEndpoints } from './support/many-routes.js';
import { frontPid, residentMegabytes } from './support/process-figures.js';
import { type Row, round } from './support/report.js';

const ENDPOINTS = 10_000;
const BUSY = 1_000;
const BUSY_SECONDS = 5;
const IDLE = 10_000;
const SAMPLE_MS = 100;

export const frontMemory: Benchmark = () => {
  const env = { GATEWAY_CONCURRENCY: '2' };
  // Separate gateways: memory that one measurement has left would be used by the other.
  return withStacks([{ env }, { env }], async (busy, idle) => {
    if (!busy || !idle) throw new Error('no stacks');
    return [await busyRow(busy), await idleRow(idle)];
  });
};

async function busyRow(stack: Stack): Promise<Row> {
  await stack.deploy({ path: '/hello/{name}', code: SMALL_JSON });
  await defineEndpoints(stack, ENDPOINTS - 1);
  const before = await frontMegabytes(stack);
  let isOver = false;
  let most = before;
  const sampling = (async () => {
    for (; !isOver; await delay(SAMPLE_MS)) most = Math.max(most, await frontMegabytes(stack));
  })();
  const url = `${stack.gatewayUrl}/hello/ada`;
  const { requestsPerSecond } = await load({ url, seconds: BUSY_SECONDS, connections: BUSY });
  isOver = true;
  await sampling;
  return {
    question: 'memory of the front with 10,000 endpoints, while 1,000 connections send requests',
    measured: `largest VmRSS, ${round(before)} MB before them; ${round(requestsPerSecond)} requests/s`,
    value: most,
    unit: 'MB',
    bar: { atMost: 40 },
  };
}

async function idleRow(stack: Stack): Promise<Row> {
  await stack.deploy({ path: '/hello/{name}', code: SMALL_JSON });
  const before = await frontMegabytes(stack);
  const connections = openConnections(`${stack.gatewayUrl}/hello/ada`, IDLE, 1);
  try {
    await connections.until(({ open, answered }) => open === IDLE && answered['200'] === IDLE, 60_000);
    await delay(1_000);
    const after = await frontMegabytes(stack);
    if (connections.counts().open !== IDLE) throw new Error('The front has closed connections.');
    return {
      question: 'memory of the front for an idle connection that has sent a request, with 10,000 of them',
      measured: `VmRSS ${round(after)} MB against ${round(before)} MB without`,
      value: ((after - before) * 1_000) / IDLE,
      unit: 'kB',
      bar: { atMost: 15 },
    };
  } finally {
    await connections.end();
  }
}

async function frontMegabytes({ processes }: Stack): Promise<number> {
  return residentMegabytes(await frontPid(processes.get('gateway')?.pid ?? 0));
}

await runAlone(import.meta.url, frontMemory);
