/**
 * Do 10,000 defined endpoints slow down requests, also while some are redeployed, or the arrival of a new one? What
 * memory does the front take for them, and for idle connections?
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { must, type Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type LoadResult, load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { frontPid, residentMegabytes } from './support/process-figures.js';
import { median, type Row, round } from './support/report.js';

const FEW = 10;
const MANY = 10_000;
const ROUNDS = 7;
const NEW_ENDPOINTS = 50;
const REDEPLOYED = 10;
const CONNECTED = 1_000;
const IDLE = 10_000;

export const manyEndpoints: Benchmark = () => {
  const env = { GATEWAY_CONCURRENCY: '1' };
  return withStacks([{ env }, { env }], async (few, many) => {
    if (!few || !many) throw new Error('no stacks');
    await define(few, FEW);
    await define(many, MANY);
    const pairs: { few: LoadResult; many: LoadResult }[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const pair = { few: await measure(few), many: await measure(many) };
      if (round > 0) pairs.push(pair);
    }
    const redeployed = await whileRedeploying(many);
    const visible = await visibility(many);
    const memory = await frontMemory(many);
    const of = (key: 'few' | 'many', what: 'requestsPerSecond' | 'p50') =>
      median(pairs.map((pair) => pair[key][what]));
    return [
      {
        question: 'requests/s with 10,000 endpoints defined, against 10',
        measured: `${round(of('many', 'requestsPerSecond'))}/s against ${round(of('few', 'requestsPerSecond'))}/s`,
        value: median(pairs.map((pair) => pair.many.requestsPerSecond / pair.few.requestsPerSecond)),
        unit: 'x',
        bar: { atLeast: 0.97 },
      },
      {
        question: 'p50 latency with 10,000 endpoints defined, against 10',
        measured: `${round(of('many', 'p50'))} ms against ${round(of('few', 'p50'))} ms`,
        value: median(pairs.map((pair) => pair.many.p50 / pair.few.p50)),
        unit: 'x',
        bar: { atMost: 1.1 },
      },
      redeployed,
      ...memory,
      {
        question: "a new endpoint visible at the gateway after the API's answer, with 10,000 defined",
        measured: `median ${round(median(visible))} ms, slowest of ${NEW_ENDPOINTS} ${round(Math.max(...visible))} ms`,
        value: Math.max(...visible),
        unit: 'ms',
        bar: { atMost: 100 },
      },
    ];
  });
};

function measure({ gatewayUrl }: Stack): Promise<LoadResult> {
  return load({ url: `${gatewayUrl}/hello/ada`, seconds: 3, connections: 64 });
}

/** p99 while ten running endpoints are deployed anew each second, against quiet. */
async function whileRedeploying(stack: Stack): Promise<Row> {
  const ids = await Promise.all(
    Array.from({ length: REDEPLOYED }, (_none, at) =>
      stack.deploy({ path: `/redeployed/${at}/{name}`, code: SMALL_JSON }),
    ),
  );
  const pairs: { quiet: number; busy: number }[] = [];
  for (let number = 0; number < ROUNDS; number++) {
    const quiet = await measure(stack);
    let isOver = false;
    const redeploying = (async () => {
      while (!isOver) {
        const next = delay(1_000);
        await Promise.all(ids.map((id) => must(stack.api.post(`/api/endpoints/${id}/stop`))));
        await Promise.all(ids.map((id) => must(stack.api.post(`/api/endpoints/${id}/start`))));
        await next;
      }
    })();
    const busy = await measure(stack);
    isOver = true;
    await redeploying;
    pairs.push({ quiet: quiet.p99, busy: busy.p99 });
  }
  const of = (key: 'quiet' | 'busy') => median(pairs.map((pair) => pair[key]));
  return {
    question: `p99 latency with 10,000 endpoints while ${REDEPLOYED} are stopped and started each second, against quiet`,
    measured: `${round(of('busy'))} ms against ${round(of('quiet'))} ms`,
    value: median(pairs.map(({ quiet, busy }) => busy / quiet)),
    unit: 'x',
    bar: { atMost: 1.3 },
  };
}

/** With 1,000 connections that have had a request, and what each idle one takes. */
async function frontMemory({ gatewayUrl, processes }: Stack): Promise<Row[]> {
  const front = await frontPid(processes.get('gateway')?.pid ?? 0);
  const { hostname, port } = new URL(gatewayUrl);
  const sockets: Socket[] = [];
  const open = async (count: number) => {
    for (let at = 0; at < count; at++) {
      const socket = connect(Number(port), hostname);
      sockets.push(socket.on('error', () => undefined));
      socket.write('GET /hello/ada HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await once(socket, 'data');
    }
  };
  try {
    await open(CONNECTED);
    const megabytes = await residentMegabytes(front);
    await open(IDLE);
    const more = (await residentMegabytes(front)) - megabytes;
    return [
      {
        question: 'memory of the front with 10,000 endpoints and 1,000 connections',
        measured: 'resident',
        value: megabytes,
        unit: 'MB',
        bar: { atMost: 40 },
      },
      {
        question: 'memory of the front for each of 10,000 idle connections',
        measured: `${round(more)} MB more`,
        value: (more * 1_000) / IDLE,
        unit: 'KB',
        bar: { atMost: 15 },
      },
    ];
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

/** One running endpoint, the rest only defined; routes as diverse as those of real APIs. */
async function define({ api, deploy }: Stack, count: number): Promise<void> {
  await deploy({ path: '/hello/{name}', code: SMALL_JSON });
  for (let at = 1; at < count; at += 50) {
    await Promise.all(
      Array.from({ length: Math.min(50, count - at) }, (_none, offset) => {
        const path = `/api/v${(at + offset) % 7}/resource${at + offset}/{id}`;
        return must(api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*' }));
      }),
    );
  }
}

/** Milliseconds from the API's answer until the gateway answers for the new endpoint (503: it does not run). */
async function visibility({ api, gateway }: Stack): Promise<number[]> {
  const times: number[] = [];
  for (let number = 0; number < NEW_ENDPOINTS; number++) {
    const path = `/new/${number}`;
    await must(api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*' }));
    const answered = performance.now();
    while ((await gateway.get(path)).status === 404) await delay(1);
    times.push(performance.now() - answered);
  }
  return times;
}

await runAlone(import.meta.url, manyEndpoints);
