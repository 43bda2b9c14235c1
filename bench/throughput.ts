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
import { type Row, round } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

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
        ...(await smallJson(await oursAt(stack, id), servers)),
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

async function smallJson(ours: Target, servers: Record<'hyper' | 'node' | 'deno', Baseline>): Promise<Row[]> {
  const alone = ({ url, pid }: Baseline) => measure({ url, pids: [pid] });
  const rounds = await measureInTurn(ROUNDS, {
    ours: () => measure(ours),
    hyper: () => alone(servers.hyper),
    node: () => alone(servers.node),
    deno: () => alone(servers.deno),
  });
  const rps = (of: 'ours' | 'node' | 'deno') => medianOf(rounds, of, requestsPerSecond);
  const seconds = (of: 'ours' | 'hyper') => round(medianOf(rounds, of, ({ cpu }) => cpu));
  return [
    {
      question:
        'processor time of front and handler for a small JSON response, against hyper that answers itself',
      measured: `${seconds('ours')} s against ${seconds('hyper')} s for 100,000 requests`,
      value: ratioOf(rounds, 'ours', 'hyper', ({ cpu }) => cpu),
      unit: 'x',
      bar: { atMost: 2.2 },
    },
    {
      question:
        'requests/s with one thread, small JSON handler, 64 connections, against a plain Node `http` server',
      measured: `${round(rps('ours'))}/s against ${round(rps('node'))}/s`,
      value: ratioOf(rounds, 'ours', 'node', requestsPerSecond),
      unit: 'x',
      bar: { atLeast: 1.2 },
    },
    await atFixedRate(Math.min(rps('ours'), rps('node')) / 2, ours.url, servers.node.url),
    {
      question: 'the same requests/s against `Deno.serve`',
      measured: `${round(rps('ours'))}/s against ${round(rps('deno'))}/s`,
      value: ratioOf(rounds, 'ours', 'deno', requestsPerSecond),
      unit: 'x',
      bar: { atLeast: 0.5 },
    },
  ];
}

async function measure({ url, pids }: Target): Promise<Measured> {
  const before = await cpuSeconds(pids);
  const result = await load({ url: url + PATH, seconds: SECONDS, connections: CONNECTIONS });
  const cpu = (await cpuSeconds(pids)) - before;
  return { ...result, cpu: (cpu / result.requests) * 100_000 };
}

/** At a rate that both can serve: at their highest one, latency only says how many connections wait. */
async function atFixedRate(rate: number, oursUrl: string, nodeUrl: string): Promise<Row> {
  const at = (url: string) => () => latenciesAt(rate, url + PATH, SECONDS);
  const rounds = await measureInTurn(ROUNDS, { ours: at(oursUrl), node: at(nodeUrl) });
  const p99 = (of: 'ours' | 'node') => round(medianOf(rounds, of, (latencies) => latencies.p99));
  return {
    question: 'the same: p99 latency at a fixed rate, half of what the slower one serves',
    measured: `${p99('ours')} ms against ${p99('node')} ms at ${round(rate)}/s`,
    value: ratioOf(rounds, 'ours', 'node', (latencies) => latencies.p99),
    unit: 'x',
    bar: { atMost: 1.5 },
  };
}

async function echoed(oursUrl: string, nodeUrl: string): Promise<Row> {
  const echo = (url: string) => () =>
    load({ url: `${url}/echo`, seconds: SECONDS, connections: CONNECTIONS, body: POST_BODY });
  const rounds = await measureInTurn(ROUNDS, { ours: echo(oursUrl), node: echo(nodeUrl) });
  const rps = (of: 'ours' | 'node') => round(medianOf(rounds, of, requestsPerSecond));
  return {
    question: 'requests/s with one thread, 10 KB POST echoed, against a plain Node `http` server',
    measured: `${rps('ours')}/s against ${rps('node')}/s`,
    value: ratioOf(rounds, 'ours', 'node', requestsPerSecond),
    unit: 'x',
    bar: { atLeast: 1.3 },
  };
}

function requestsPerSecond(result: LoadResult): number {
  return result.requestsPerSecond;
}

await runAlone(import.meta.url, throughput);
