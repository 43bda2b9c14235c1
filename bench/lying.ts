/**
 * How does a backend that lies affect calls of other services? Their p99 while a service on such a server is active and
 * called, compared with that without it. `npm run bench -- lying`, optionally with the beginnings of names. Results of
 * a full run go to `bench/RESULTS.md`.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startRedisBackend } from '../test/support/backends/redis.js';
import { type Lie, startLyingServer } from '../test/support/lies/lie.js';
import { OTHER_LIES } from '../test/support/lies/others.js';
import { POSTGRES_LIES } from '../test/support/lies/postgres.js';
import { REDIS_LIES } from '../test/support/lies/redis.js';
import type { Stack } from '../test/support/processes.js';
import type { ServiceClient } from '../test/support/service-client.js';
import {
  activeService,
  bind,
  connectAs,
  createEndpoint,
  createService,
  SECRET_KEY,
} from '../test/support/test-services.js';
import { withStacks } from './support/gateway.js';
import { isMet, median, type Row, round, table } from './support/report.js';
import { machine, writeSection } from './support/results.js';

const ROUNDS = 3;
const MEASURE_MS = 2_000;
const PAUSE_MS = 4;
/** After what a round leaves behind has ended. */
const SETTLE_MS = 500;
const CALLS = [
  [{ pool: 'database', op: 'query' }, '{"sql":"SELECT 1","params":[]}'],
  [{ pool: 'cache', op: 'command' }, '["PING"]'],
] as const;

const named = process.argv.slice(2);
const lies = [...POSTGRES_LIES, ...REDIS_LIES, ...OTHER_LIES].filter(
  ({ name }) => named.length === 0 || named.some((beginning) => name.startsWith(beginning)),
);
if (lies.length === 0) throw new Error(`No lie has a name that begins with ${named.join(' or ')}`);

const rows = await withStacks([{ env: { LOG_LEVEL: 'fatal', SECRET_KEY } }], async (stack) => {
  if (!stack) throw new Error('no stack');
  const redis = await startRedisBackend();
  const endpointId = await createEndpoint(stack.api, '/canary');
  const path = join(stack.dataDir, 'canary.db');
  await bind(stack.api, endpointId, await activeService(stack.api, 'sqlite', { path }), 'database');
  await bind(stack.api, endpointId, await activeService(stack.api, 'redis', redis.config), 'cache');
  const canary = await connectAs(stack, endpointId);
  try {
    await callsP99(canary);
    const measured: Row[] = [];
    for (const lie of lies) measured.push(await measure(stack, canary, lie, endpointId));
    return measured;
  } finally {
    await canary.close();
    await redis.remove();
  }
});
process.stdout.write(`${table(rows)}\n`);
if (named.length === 0)
  await writeSection(
    'Neighbours of backends that lie',
    `Made by \`npm run bench -- lying\` on ${await machine()}\n\n${table(rows)}`,
  );
process.exitCode = rows.every(isMet) ? 0 : 1;

async function measure(stack: Stack, canary: ServiceClient, lie: Lie, endpointId: string): Promise<Row> {
  const pairs: { quiet: number; attacked: number }[] = [];
  for (let number = 0; number < ROUNDS; number++) {
    const quiet = await callsP99(canary);
    const server = await startLyingServer(lie);
    const id = await createService(stack.api, lie.type, lie.config(server.port), `${lie.name} ${number}`);
    await stack.api.post(`/api/services/${id}/activate`);
    await bind(stack.api, endpointId, id, id);
    const calling = new AbortController();
    const called = callAgainAndAgain(stack, lie, endpointId, id, calling.signal);
    const attacked = await callsP99(canary);
    calling.abort();
    await called;
    await stack.api.delete(`/api/services/${id}`);
    await server.close();
    await delay(SETTLE_MS);
    pairs.push({ quiet, attacked });
  }
  const of = (key: 'quiet' | 'attacked') => median(pairs.map((pair) => pair[key]));
  return {
    question: `p99 of calls of other services while a service is on a server that lies (${lie.name}), against quiet`,
    measured: `${round(of('attacked'))} ms against ${round(of('quiet'))} ms`,
    value: of('attacked') / of('quiet'),
    unit: 'x',
    bar: { atMost: 2 },
  };
}

/** Calls the service that is lied to, one call at a time. */
async function callAgainAndAgain(
  stack: Stack,
  { call }: Lie,
  endpointId: string,
  pool: string,
  signal: AbortSignal,
): Promise<void> {
  if (!call) return;
  const { operation: op, args, payload = '' } = call;
  while (!signal.aborted) {
    const client = await connectAs(stack, endpointId);
    await client.send({ pool, op, args, deadline_ms: 1_000 }, payload);
    await client.close();
  }
}

/** Milliseconds. @throws Error when a call fails */
async function callsP99(canary: ServiceClient): Promise<number> {
  const times: number[] = [];
  const until = performance.now() + MEASURE_MS;
  while (performance.now() < until) {
    for (const [call, payload] of CALLS) {
      const began = performance.now();
      const { ok, message } = await canary.send({ ...call, deadline_ms: 3_000 }, payload);
      if (!ok) throw new Error(`a call of "${call.pool}" fails: ${message}`);
      times.push(performance.now() - began);
    }
    await delay(PAUSE_MS);
  }
  return times.sort((left, right) => left - right)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}
