/** What do endpoints cost whose handlers sleep, and how long does their first request take? */
import { setTimeout as delay } from 'node:timers/promises';
import { call } from '../test/support/http.js';
import { outcomes, startLoad } from '../test/support/load.js';
import { must, type Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type Benchmark, runAlone } from './support/main.js';
import { frontPid, residentMegabytes } from './support/process-figures.js';
import { median, type Row, round } from './support/report.js';
import { makeRunning, pathOf } from './support/sleeping-endpoints.js';

const MANY = 10_000;
const EXPECTED = /"hello":"ada"/;
const STARTS = 3;
const FIRST_REQUESTS = 400;
const STORM = 1_000;
/** In this time, what starting has left is collected. */
const SETTLE_MS = 40_000;
const SAMPLE_MS = 500;

export const sleep: Benchmark = () => {
  const env = { GATEWAY_CONCURRENCY: '2' };
  return withStacks([{ env }, { env }], async (few, many) => {
    if (!few || !many) throw new Error('no stacks');
    await few.deploy({ path: '/awake', code: SMALL_JSON, limits: { min_instances: 1 } });
    const code = SMALL_JSON.replace('req.path_param("name")', 'req.path_param("id")');
    const id = await many.deploy({ path: '/awake/{id}', code, limits: { min_instances: 1 } });
    await makeRunning(many, MANY, id);
    const times = [];
    for (let number = 0; number < STARTS; number++) times.push(await restart(many));
    await few.processes.get('gateway')?.end();
    await few.start('gateway');
    const rows = [startRow(times), await memoryRow(few, many)];
    rows.push(...(await firstRequestRows(many)));
    rows.push(...(await stormRows(many)));
    return rows;
  });
};

/** Milliseconds until a gateway that starts has answered for an endpoint, and until all are observed. */
async function restart(stack: Stack): Promise<{ serves: number; observed: number }> {
  await stack.processes.get('gateway')?.end();
  const from = performance.now();
  const starting = stack.start('gateway');
  for (;;) {
    const answer = await call(`${stack.gatewayUrl}${pathOf(MANY - 1)}`).catch(() => undefined);
    if (answer?.status === 200) break;
    if (answer) throw new Error(`the gateway answers ${answer.status}`);
    await delay(1);
  }
  const serves = performance.now() - from;
  await starting;
  for (;;) {
    const { endpoints_running } = (await must(stack.api.get('/api/stats'))) as { endpoints_running: number };
    if (endpoints_running === MANY + 1) break;
    await delay(10);
  }
  return { serves, observed: performance.now() - from };
}

function startRow(times: readonly { serves: number; observed: number }[]): Row {
  const observed = median(times.map((each) => each.observed));
  return {
    question: 'a gateway with 10,000 running endpoints starts: time until the first request is answered',
    measured: `median of ${times.length}; all are observed as running after ${round(observed)} ms`,
    value: median(times.map(({ serves }) => serves)),
    unit: 'ms',
    bar: { atMost: 5_000 },
  };
}

async function memoryRow(few: Stack, many: Stack): Promise<Row> {
  const [ofFew, ofMany] = await Promise.all([lowest(few), lowest(many)]);
  const [supervisor, front] = [ofMany.supervisor - ofFew.supervisor, ofMany.front - ofFew.front];
  return {
    question: 'memory of supervisor and front for each of 10,000 sleeping endpoints',
    measured: `VmRSS, lowest in ${SETTLE_MS / 1_000} s: supervisor ${round(supervisor / MANY)} kB, front ${round(front / MANY)} kB`,
    value: (supervisor + front) / MANY,
    unit: 'kB',
    bar: { atMost: 2 },
  };
}

/** What is left after collections, in kilobytes. */
async function lowest({ processes }: Stack): Promise<{ supervisor: number; front: number }> {
  const pid = processes.get('gateway')?.pid ?? 0;
  const front = await frontPid(pid);
  const found = { supervisor: Infinity, front: Infinity };
  for (const from = performance.now(); performance.now() - from < SETTLE_MS; await delay(SAMPLE_MS)) {
    found.supervisor = Math.min(found.supervisor, (await residentMegabytes(pid)) * 1_000);
    found.front = Math.min(found.front, (await residentMegabytes(front)) * 1_000);
  }
  return found;
}

async function firstRequestRows({ gatewayUrl }: Stack): Promise<Row[]> {
  const times: number[] = [];
  for (let number = 0; number < FIRST_REQUESTS; number++) {
    const from = performance.now();
    const { status, text } = await call(`${gatewayUrl}${pathOf(number)}`);
    times.push(performance.now() - from);
    if (status !== 200 || !EXPECTED.test(text)) throw new Error(`a first request got ${status} ${text}`);
  }
  times.sort((left, right) => left - right);
  const row = (name: string, share: number, atMost: number): Row => ({
    question: `first request to a sleeping endpoint, of 10,000: ${name}`,
    measured: `${FIRST_REQUESTS} one after the other`,
    value: times[Math.floor(times.length * share)] ?? Number.NaN,
    unit: 'ms',
    bar: { atMost },
  });
  return [row('p50', 0.5, 15), row('p99', 0.99, 60)];
}

async function stormRows({ gatewayUrl }: Stack): Promise<Row[]> {
  const sent: number[] = [];
  const waits: number[] = [];
  const load = await startLoad({
    targets: [gatewayUrl],
    clients: 2,
    request: (client) => {
      const now = performance.now();
      const last = sent[client];
      if (last !== undefined) waits.push(now - last);
      sent[client] = now;
      return { path: '/awake/ada', text: EXPECTED };
    },
  });
  waits.length = 0;
  const from = performance.now();
  const first = FIRST_REQUESTS;
  const answers = await Promise.all(
    Array.from({ length: STORM }, (_none, at) => call(`${gatewayUrl}${pathOf(first + at)}`)),
  );
  const took = performance.now() - from;
  const failures = await load.stop();
  const failed = answers.filter(({ status }) => status !== 200).length;
  waits.sort((left, right) => left - right);
  return [
    {
      question:
        'first requests to 1,000 sleeping endpoints at once that fail, and requests to one awake meanwhile',
      measured: `all answered after ${round(took)} ms; ${JSON.stringify(outcomes(failures))}`,
      value: failed + failures.length,
      unit: 'requests',
      bar: { atMost: 0 },
    },
    {
      question: 'meanwhile, a request to the one awake: p99',
      measured: `${waits.length} requests, median ${round(median(waits))} ms, longest ${round(waits.at(-1) ?? 0)} ms`,
      value: waits[Math.floor(waits.length * 0.99)] ?? Number.NaN,
      unit: 'ms',
      bar: { atMost: 60 },
    },
  ];
}

await runAlone(import.meta.url, sleep);
