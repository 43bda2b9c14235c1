/** Do 10,000 defined endpoints slow down requests, also while others are redeployed, or the arrival of a new one? */
import { setTimeout as delay } from 'node:timers/promises';
import { must, type Stack } from '../test/support/processes.js';
import { latenciesAt } from './support/baselines.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type LoadResult, load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { defineEndpoints } from './support/many-routes.js';
import { deployEndpoints, type Redeployed, whileRedeploying } from './support/redeployments.js';
import { median, type Row, round } from './support/report.js';
import { measureInTurn, medianOf, type Round, ratioOf } from './support/rounds.js';

const FEW = 10;
const MANY = 10_000;
const ROUNDS = 7;
const SECONDS = 3;
const NEW_ENDPOINTS = 50;
const REDEPLOYED_PER_SECOND = 10;

/** A gateway with one endpoint that is measured, nine that are redeployed, and others that do not run. */
interface Gateway {
  readonly stack: Stack;
  readonly url: string;
  readonly redeployed: readonly Redeployed[];
}

type Sizes = 'few' | 'many';
type Gateways = Readonly<Record<Sizes, Gateway>>;

export const manyEndpoints: Benchmark = () => {
  const env = { GATEWAY_CONCURRENCY: '1' };
  return withStacks([{ env }, { env }], async (few, many) => {
    if (!few || !many) throw new Error('no stacks');
    const gateways = { few: await gateway(few, FEW), many: await gateway(many, MANY) };
    const quiet = await inTurn(gateways, measure);
    return [
      requestsRow('requests/s with 10,000 endpoints defined, against 10', quiet),
      {
        question: 'p50 latency with 10,000 endpoints defined, against 10',
        measured: against(quiet, ({ p50 }) => p50, 'ms'),
        value: ratioOf(quiet, 'many', 'few', ({ p50 }) => p50),
        unit: 'x',
        bar: { atMost: 1.1 },
      },
      requestsRow(
        `requests/s with 10,000 endpoints, against 10, while ${REDEPLOYED_PER_SECOND} a second are redeployed`,
        await inTurn(gateways, (each) => redeploying(each, () => measure(each))),
      ),
      ...(await latencyRows(gateways, medianOf(quiet, 'few', requestsPerSecond) / 2)),
      await visibilityRow(many),
    ];
  });
};

async function gateway(stack: Stack, endpoints: number): Promise<Gateway> {
  await stack.deploy({ path: '/hello/{name}', code: SMALL_JSON });
  const redeployed = await deployEndpoints(stack, FEW - 1);
  await defineEndpoints(stack, endpoints - FEW);
  return { stack, url: `${stack.gatewayUrl}/hello/ada`, redeployed };
}

function inTurn<T>({ few, many }: Gateways, what: (gateway: Gateway) => Promise<T>) {
  return measureInTurn<Sizes, T>(ROUNDS, { few: () => what(few), many: () => what(many) });
}

function measure({ url }: Gateway): Promise<LoadResult> {
  return load({ url, seconds: SECONDS, connections: 64 });
}

function redeploying<T>({ stack, redeployed }: Gateway, what: () => Promise<T>): Promise<T> {
  return whileRedeploying(stack, redeployed, REDEPLOYED_PER_SECOND, what);
}

function requestsRow(question: string, rounds: readonly Round<Sizes, LoadResult>[]): Row {
  return {
    question,
    measured: against(rounds, requestsPerSecond, '/s'),
    value: ratioOf(rounds, 'many', 'few', requestsPerSecond),
    unit: 'x',
    bar: { atLeast: 0.97 },
  };
}

/** At a fixed rate: at the highest one, latency only says how many connections wait. */
async function latencyRows({ few, many }: Gateways, rate: number): Promise<Row[]> {
  const p99 = async ({ url }: Gateway) => (await latenciesAt(rate, url, SECONDS)).p99;
  const rounds = await measureInTurn(ROUNDS, {
    few: () => redeploying(few, () => p99(few)),
    many: () => redeploying(many, () => p99(many)),
    quiet: () => p99(many),
  });
  const ms = (name: Sizes | 'quiet') => `${round(medianOf(rounds, name, (each) => each))} ms`;
  const row = (question: string, name: Sizes | 'quiet') => ({
    question,
    measured: `${ms('many')} against ${ms(name)} at ${round(rate)}/s`,
    value: ratioOf(rounds, 'many', name, (each) => each),
    unit: 'x',
    bar: { atMost: 1.3 },
  });
  return [
    row('the same: p99 latency at a fixed rate, half of what it serves undisturbed', 'few'),
    row('the same p99 latency with 10,000 endpoints, against that while none is redeployed', 'quiet'),
  ];
}

async function visibilityRow(stack: Stack): Promise<Row> {
  const visible = await visibility(stack);
  return {
    question: "a new endpoint visible at the gateway after the API's answer, with 10,000 defined",
    measured: `median ${round(median(visible))} ms, slowest of ${NEW_ENDPOINTS} ${round(Math.max(...visible))} ms`,
    value: Math.max(...visible),
    unit: 'ms',
    bar: { atMost: 100 },
  };
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

function against<T>(
  rounds: readonly Round<Sizes, T>[],
  figure: (result: T) => number,
  unit: 'ms' | '/s',
): string {
  const [many, few] = (['many', 'few'] as const).map((name) => round(medianOf(rounds, name, figure)));
  return unit === 'ms' ? `${many} ms against ${few} ms` : `${many}/s against ${few}/s`;
}

function requestsPerSecond(result: LoadResult): number {
  return result.requestsPerSecond;
}

await runAlone(import.meta.url, manyEndpoints);
