/** Do 10,000 defined endpoints slow down requests, or the arrival of a new one? */
import { setTimeout as delay } from 'node:timers/promises';
import { must, type Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type LoadResult, load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round } from './support/report.js';

const FEW = 10;
const MANY = 10_000;
const ROUNDS = 7;
const NEW_ENDPOINTS = 50;

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
    const visible = await visibility(many);
    const of = (key: 'few' | 'many', what: 'requestsPerSecond' | 'p50') =>
      median(pairs.map((pair) => pair[key][what]));
    return [
      {
        question: 'requests/s with 10,000 endpoints defined, against 10',
        measured: `${round(of('many', 'requestsPerSecond'))}/s against ${round(of('few', 'requestsPerSecond'))}/s`,
        value: median(pairs.map((pair) => pair.many.requestsPerSecond / pair.few.requestsPerSecond)),
        unit: 'x',
        bar: { atLeast: 0.9 },
      },
      {
        question: 'p50 latency with 10,000 endpoints defined, against 10',
        measured: `${round(of('many', 'p50'))} ms against ${round(of('few', 'p50'))} ms`,
        value: median(pairs.map((pair) => pair.many.p50 / pair.few.p50)),
        unit: 'x',
        bar: { atMost: 1.1 },
      },
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
