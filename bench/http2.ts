/** What does HTTP/2 cost, or spare, a request against HTTP/1.1? One load generator for both: h2load. */
import { execa } from 'execa';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type Benchmark, runAlone } from './support/main.js';
import { round } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

const ROUNDS = 7;
const SECONDS = 3;
/** Requests at a time, in all cases. */
const REQUESTS = 64;
const CONNECTIONS = 8;

export const http2: Benchmark = () =>
  withStacks([{ env: { GATEWAY_CONCURRENCY: '1' } }], async (stack) => {
    if (!stack) throw new Error('no stack');
    await stack.deploy({ path: '/hello/{name}', code: SMALL_JSON });
    const url = `${stack.gatewayUrl}/hello/ada`;
    const measure =
      (connections: number, ...args: string[]) =>
      () =>
        h2load(url, ['-c', String(connections), '-m', String(REQUESTS / connections), ...args]);
    const rounds = await measureInTurn(ROUNDS, {
      http1: measure(REQUESTS, '--h1'),
      single: measure(REQUESTS),
      shared: measure(CONNECTIONS),
    });
    type Kind = keyof (typeof rounds)[number];
    const rps = (of: Kind) => round(medianOf(rounds, of, identity));
    return [
      {
        question: `requests/s with one thread over HTTP/2, ${REQUESTS} at a time on ${CONNECTIONS} connections, against HTTP/1.1 with one on each`,
        measured: `${rps('shared')}/s against ${rps('http1')}/s; HTTP/2 with one on each: ${rps('single')}/s`,
        value: ratioOf(rounds, 'shared', 'http1', identity),
        unit: 'x',
        bar: { atLeast: 0.8 },
      },
    ];
  });

/**
 * Requests a second.
 * @throws Error when any response was not a success
 */
async function h2load(url: string, args: readonly string[]): Promise<number> {
  const { stdout } = await execa('h2load', ['-t', '1', '-D', String(SECONDS), ...args, url]);
  const [, perSecond] = /finished in \S+, ([\d.]+) req\/s/.exec(stdout) ?? [];
  if (perSecond === undefined || !/ 0 failed, 0 errored, 0 timeout/.test(stdout))
    throw new Error(`h2load saw failures at ${url}: ${stdout}`);
  return Number(perSecond);
}

const identity = (value: number) => value;

await runAlone(import.meta.url, http2);
