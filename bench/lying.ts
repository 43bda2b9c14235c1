/**
 * How does a backend that lies affect calls of other services? Their p99 while a service on such a server is active and
 * called, compared with that without it. A handler makes and times these calls. `npm run bench -- lying`, optionally
 * with the beginnings of names. Results of a full run go to `bench/RESULTS.md`.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { startRedisBackend } from '../test/support/backends/redis.js';
import { callLiar } from '../test/support/lies/canary.js';
import type { Lie } from '../test/support/lies/lie.js';
import type { Stack } from '../test/support/processes.js';
import { activeService, bind, createService, SECRET_KEY } from '../test/support/test-services.js';
import { withStacks } from './support/gateway.js';
import { LIES, startLyingProcess } from './support/lying-server.js';
import { isMet, type Row, round, table } from './support/report.js';
import { machine, writeSection } from './support/results.js';

const ROUNDS = 3;
const MEASURE_MS = 2_000;
/** Between the calls of the service that is lied to: the server is the attacker, not its callers. */
const LIAR_PAUSE_MS = 10;
/** After what a round leaves behind has ended. */
const SETTLE_MS = 500;

/** Calls a service in Rust and one in Node for a while, in turn; answers with the milliseconds of all calls. */
const CANARY = `
use rust_edge_gateway_sdk::prelude::*;
use std::time::{Duration, Instant};

fn handle(_: Request) -> Response {
    let (db, cache) = (DbPool::new("database"), RedisPool::new("cache"));
    let until = Instant::now() + Duration::from_millis(${MEASURE_MS});
    let mut times = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        if let Err(error) = db.query("SELECT 1", &[]) { return Response::text(500, error.to_string()); }
        times.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        if let Err(error) = cache.get("key") { return Response::text(500, error.to_string()); }
        times.push(began.elapsed().as_secs_f64() * 1e3);
        std::thread::sleep(Duration::from_millis(4));
    }
    Response::ok(times)
}

handler_loop!(handle);
`;

const named = process.argv.slice(2);
const lies = LIES.filter(
  ({ name }) => named.length === 0 || named.some((beginning) => name.startsWith(beginning)),
);
if (lies.length === 0) throw new Error(`No lie has a name that begins with ${named.join(' or ')}`);

const { rows, comparison } = await withStacks(
  [{ env: { LOG_LEVEL: 'fatal', SECRET_KEY } }],
  async (stack) => {
    if (!stack) throw new Error('no stack');
    const redis = await startRedisBackend();
    try {
      const canaryId = await stack.deploy({ path: '/canary', code: CANARY });
      await bind(
        stack.api,
        canaryId,
        await activeService(stack.api, 'sqlite', { path: 'canary.db' }),
        'database',
      );
      await bind(stack.api, canaryId, await activeService(stack.api, 'redis', redis.config), 'cache');
      await durations(stack);
      const measured: Measured[] = [];
      for (const lie of lies) measured.push(await measure(stack, canaryId, lie));
      // Of all rounds together: in two seconds, the p99 is the eighth slowest call, on any machine a matter of chance.
      const quiet = p99(measured.flatMap((each) => each.quiet));
      const busy = round(p99(await whileCoresAreBusy(() => durations(stack))));
      return {
        rows: measured.map((each) => rowOf(each, quiet)),
        comparison:
          `For comparison: the same p99 is ${busy} ms against ${round(quiet)} ms while an empty loop of the lowest ` +
          'priority (SCHED_IDLE) runs on each core.',
      };
    } finally {
      await redis.remove();
    }
  },
);
const report = `${table(rows)}\n\n${comparison}`;
process.stdout.write(`${report}\n`);
if (named.length === 0)
  await writeSection(
    'Neighbours of backends that lie',
    `Made by \`npm run bench -- lying\` on ${await machine()}\n\n${report}`,
  );
process.exitCode = rows.every(isMet) ? 0 : 1;

/** Durations of calls, milliseconds. */
interface Measured {
  readonly lie: Lie;
  readonly quiet: readonly number[];
  readonly attacked: readonly number[];
}

async function measure(stack: Stack, endpointId: string, lie: Lie): Promise<Measured> {
  const quiet: number[] = [];
  const attacked: number[] = [];
  for (let number = 0; number < ROUNDS; number++) {
    quiet.push(...(await durations(stack)));
    const server = await startLyingProcess(lie);
    const id = await createService(stack.api, lie.type, lie.config(server.port), `${lie.name} ${number}`);
    await stack.api.post(`/api/services/${id}/activate`);
    await bind(stack.api, endpointId, id, id);
    const calling = new AbortController();
    const called = callAgainAndAgain(stack, lie, endpointId, id, calling.signal);
    attacked.push(...(await durations(stack)));
    calling.abort();
    await called;
    await stack.api.delete(`/api/services/${id}`);
    await server.close();
    await delay(SETTLE_MS);
  }
  return { lie, quiet, attacked };
}

function rowOf({ lie, attacked }: Measured, quiet: number): Row {
  return {
    question: `p99 of calls of other services while a service is on a server that lies (${lie.name}), against quiet`,
    measured: `${round(p99(attacked))} ms against ${round(quiet)} ms`,
    value: p99(attacked) / quiet,
    unit: 'x',
    bar: { atMost: 2 },
  };
}

/** Calls the service that is lied to, one call at a time. */
async function callAgainAndAgain(
  stack: Stack,
  lie: Lie,
  endpointId: string,
  pool: string,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await callLiar(stack, endpointId, pool, lie);
    await delay(LIAR_PAUSE_MS);
  }
}

/** The durations of calls of other services for a while, milliseconds. @throws Error when one fails */
async function durations({ gateway }: Stack): Promise<readonly number[]> {
  const { status, body } = await gateway.get('/canary');
  if (status !== 200) throw new Error(`another service fails: ${String(body)}`);
  return body as number[];
}

/** What the scheduler alone makes of it. */
async function whileCoresAreBusy(work: () => Promise<readonly number[]>): Promise<readonly number[]> {
  const command = ['--idle', '0', 'sh', '-c', 'while :; do :; done'];
  const loops = Array.from({ length: availableParallelism() }, () =>
    spawn('chrt', command, { stdio: 'ignore' }),
  );
  try {
    const times: number[] = [];
    for (let number = 0; number < ROUNDS; number++) times.push(...(await work()));
    return times;
  } finally {
    for (const loop of loops) loop.kill('SIGKILL');
  }
}

function p99(times: readonly number[]): number {
  return times.toSorted((left, right) => left - right)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}
