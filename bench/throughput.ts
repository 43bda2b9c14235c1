/**
 * How many requests a second does one front process serve, compared with a plain Node server with the same response?
 */
import { fork } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { withStacks } from './support/gateway.js';
import { ECHO, SMALL_JSON } from './support/handlers.js';
import { type LoadResult, load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round } from './support/report.js';

const ROUNDS = 7;
const SECONDS = 3;
const CONNECTIONS = 64;
const POST_BODY = 'x'.repeat(10 * 1024);

export const throughput: Benchmark = () =>
  withStacks([{ env: { GATEWAY_CONCURRENCY: '1' } }], async (stack) => {
    await stack?.deploy({ path: '/hello/{name}', code: SMALL_JSON });
    await stack?.deploy({ path: '/echo', method: 'POST', code: ECHO });
    const plain = await startPlainServer();
    try {
      const small = await compare(`${stack?.gatewayUrl}/hello/ada`, `${plain.url}/hello/ada`);
      const echo = await compare(`${stack?.gatewayUrl}/echo`, `${plain.url}/echo`, POST_BODY);
      return [
        {
          question:
            'requests/s of one front, small JSON handler, 64 connections, against a plain Node `http` server',
          measured: `${round(small.ours.rps)}/s against ${round(small.plain.rps)}/s`,
          value: small.ratio,
          unit: 'x',
          bar: { atLeast: 0.7 },
        },
        {
          question: 'the same: p99 latency',
          measured: `${round(small.ours.p99)} ms against ${round(small.plain.p99)} ms`,
          value: small.p99Ratio,
          unit: 'x',
          bar: { atMost: 2 },
        },
        {
          question: 'the same with a 10 KB POST echoed: requests/s',
          measured: `${round(echo.ours.rps)}/s against ${round(echo.plain.rps)}/s`,
          value: echo.ratio,
          unit: 'x',
          bar: { atLeast: 0.6 },
        },
      ];
    } finally {
      plain.stop();
    }
  });

/** Measures both alternately, and compares neighbouring rounds: other load on the machine slows both. */
async function compare(oursUrl: string, plainUrl: string, body?: string) {
  const run = (url: string) =>
    load({ url, seconds: SECONDS, connections: CONNECTIONS, ...(body !== undefined && { body }) });
  await run(oursUrl);
  await run(plainUrl);
  const pairs: { ours: LoadResult; plain: LoadResult }[] = [];
  for (let round = 0; round < ROUNDS; round++)
    pairs.push({ ours: await run(oursUrl), plain: await run(plainUrl) });
  const of = (key: 'ours' | 'plain') => ({
    rps: median(pairs.map((pair) => pair[key].requestsPerSecond)),
    p99: median(pairs.map((pair) => pair[key].p99)),
  });
  return {
    ours: of('ours'),
    plain: of('plain'),
    ratio: median(pairs.map(({ ours, plain }) => ours.requestsPerSecond / plain.requestsPerSecond)),
    p99Ratio: median(pairs.map(({ ours, plain }) => ours.p99 / plain.p99)),
  };
}

async function startPlainServer(): Promise<{ url: string; stop(): void }> {
  const child = fork(fileURLToPath(new URL('support/plain-server.js', import.meta.url)));
  const { address } = await new Promise<{ address: AddressInfo }>((resolve) =>
    child.once('message', resolve),
  );
  return { url: `http://127.0.0.1:${address.port}`, stop: () => child.disconnect() };
}

await runAlone(import.meta.url, throughput);
