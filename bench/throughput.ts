/**
 * What does a request cost, and how many a second does one thread of the front serve? Compared with servers that answer
 * the same by themselves.
 */
import type { Stack } from '../test/support/processes.js';
import { type Baseline, denoServer, hyperServer, latenciesAt, nodeServer } from './support/baselines.js';
import { withStacks } from './support/gateway.js';
import { ECHO, SMALL_JSON } from './support/handlers.js';
import { type LoadResult, load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { cpuSeconds, frontPid } from './support/process-figures.js';
import { median, type Row, round } from './support/report.js';

const ROUNDS = 7;
const SECONDS = 3;
const CONNECTIONS = 64;
const POST_BODY = 'x'.repeat(10 * 1024);
const PATH = '/hello/ada';

/** One load, and the processor time that it took of the processes that serve it. */
interface Measured extends LoadResult {
  /** Seconds for 100,000 requests. */
  readonly cpu: number;
}

interface Target {
  readonly url: string;
  readonly pids: readonly number[];
}

export const throughput: Benchmark = () =>
  withStacks([{ env: { GATEWAY_CONCURRENCY: '1' } }], async (stack) => {
    if (!stack) throw new Error('no stack');
    const id = await stack.deploy({ path: '/hello/{name}', code: SMALL_JSON });
    await stack.deploy({ path: '/echo', method: 'POST', code: ECHO });
    const servers = { hyper: await hyperServer(), node: await nodeServer(), deno: await denoServer() };
    try {
      return [
        ...(await againstAll(await oursAt(stack, id), servers)),
        await atFixedRate(stack.gatewayUrl, servers.node.url),
        await echoed(stack.gatewayUrl, servers.node.url),
      ];
    } finally {
      for (const server of Object.values(servers)) await server.stop();
    }
  });

async function oursAt({ api, gatewayUrl, processes }: Stack, id: string): Promise<Target> {
  const { body } = await api.get(`/api/endpoints/${id}`);
  const { pid: handler } = (body as { data: { pid: number } }).data;
  const front = await frontPid(processes.get('gateway')?.pid ?? 0);
  return { url: gatewayUrl, pids: [front, handler] };
}

/** Measures all in turn, and compares those of the same round: other load on the machine slows all of them. */
async function againstAll(
  ours: Target,
  servers: Record<'hyper' | 'node' | 'deno', Baseline>,
): Promise<Row[]> {
  const target = ({ url, pid }: Baseline) => ({ url, pids: [pid] });
  const rounds: Record<'ours' | 'hyper' | 'node' | 'deno', Measured>[] = [];
  for (let number = 0; number <= ROUNDS; number++) {
    const round = {
      ours: await measure(ours),
      hyper: await measure(target(servers.hyper)),
      node: await measure(target(servers.node)),
      deno: await measure(target(servers.deno)),
    };
    if (number > 0) rounds.push(round);
  }
  const rps = (of: 'ours' | 'node' | 'deno') => median(rounds.map((each) => each[of].requestsPerSecond));
  const ratio = (of: 'node' | 'deno') =>
    median(rounds.map((each) => each.ours.requestsPerSecond / each[of].requestsPerSecond));
  const cpu = (of: 'ours' | 'hyper') => median(rounds.map((each) => each[of].cpu));
  return [
    {
      question:
        'processor time of front and handler for a small JSON response, against hyper that answers itself',
      measured: `${round(cpu('ours'))} s against ${round(cpu('hyper'))} s for 100,000 requests`,
      value: median(rounds.map((each) => each.ours.cpu / each.hyper.cpu)),
      unit: 'x',
      bar: { atMost: 2.2 },
    },
    {
      question:
        'requests/s with one thread, small JSON handler, 64 connections, against a plain Node `http` server',
      measured: `${round(rps('ours'))}/s against ${round(rps('node'))}/s`,
      value: ratio('node'),
      unit: 'x',
      bar: { atLeast: 1.2 },
    },
    {
      question: 'the same against `Deno.serve`',
      measured: `${round(rps('ours'))}/s against ${round(rps('deno'))}/s`,
      value: ratio('deno'),
      unit: 'x',
      bar: { atLeast: 0.5 },
    },
  ];
}

async function measure({ url, pids }: Target): Promise<Measured> {
  const before = await cpuSeconds(pids);
  const result = await load({ url: url + PATH, seconds: SECONDS, connections: CONNECTIONS });
  const cpu = (await cpuSeconds(pids)) - before;
  return { ...result, cpu: (cpu / (result.requestsPerSecond * SECONDS)) * 100_000 };
}

/** At half the rate that the plain server reaches. */
async function atFixedRate(gatewayUrl: string, plainUrl: string): Promise<Row> {
  const { requestsPerSecond } = await load({
    url: plainUrl + PATH,
    seconds: SECONDS,
    connections: CONNECTIONS,
  });
  const rate = requestsPerSecond / 2;
  const pairs: { ours: number; plain: number }[] = [];
  for (let number = 0; number < ROUNDS; number++) {
    const [ours, plain] = [
      await latenciesAt(rate, gatewayUrl + PATH, SECONDS),
      await latenciesAt(rate, plainUrl + PATH, SECONDS),
    ];
    pairs.push({ ours: ours.p99, plain: plain.p99 });
  }
  const of = (key: 'ours' | 'plain') => median(pairs.map((pair) => pair[key]));
  return {
    question: `p99 latency at ${round(rate)} requests/s, half of what a plain Node server reaches, against it`,
    measured: `${round(of('ours'))} ms against ${round(of('plain'))} ms`,
    value: median(pairs.map(({ ours, plain }) => ours / plain)),
    unit: 'x',
    bar: { atMost: 1.5 },
  };
}

async function echoed(gatewayUrl: string, plainUrl: string): Promise<Row> {
  const run = (url: string) =>
    load({ url: `${url}/echo`, seconds: SECONDS, connections: CONNECTIONS, body: POST_BODY });
  const pairs: { ours: LoadResult; plain: LoadResult }[] = [];
  for (let number = 0; number <= ROUNDS; number++) {
    const pair = { ours: await run(gatewayUrl), plain: await run(plainUrl) };
    if (number > 0) pairs.push(pair);
  }
  const of = (key: 'ours' | 'plain') => median(pairs.map((pair) => pair[key].requestsPerSecond));
  return {
    question: 'requests/s with one thread, 10 KB POST echoed, against a plain Node `http` server',
    measured: `${round(of('ours'))}/s against ${round(of('plain'))}/s`,
    value: median(pairs.map(({ ours, plain }) => ours.requestsPerSecond / plain.requestsPerSecond)),
    unit: 'x',
    bar: { atLeast: 1.3 },
  };
}

await runAlone(import.meta.url, throughput);
