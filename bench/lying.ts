/**
 * How does a backend that lies affect calls of other services? Their p99 while a service on such a server is active and
 * called, compared with that without it. `npm run bench -- lying`, optionally with the beginnings of names. Results of
 * a full run go to `bench/RESULTS.md`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Canary, callLiar, startCanary } from '../test/support/lies/canary.js';
import type { Lie } from '../test/support/lies/lie.js';
import type { Stack } from '../test/support/processes.js';
import { bind, createService, SECRET_KEY } from '../test/support/test-services.js';
import { withStacks } from './support/gateway.js';
import { LIES, startLyingProcess } from './support/lying-server.js';
import { isMet, type Row, round, table } from './support/report.js';
import { machine, writeSection } from './support/results.js';

const ROUNDS = 3;
const MEASURE_MS = 2_000;
const PAUSE_MS = 4;
/** Between the calls of the service that is lied to: the server is the attacker, not its callers. */
const LIAR_PAUSE_MS = 10;
/** After what a round leaves behind has ended. */
const SETTLE_MS = 500;

const named = process.argv.slice(2);
const lies = LIES.filter(
  ({ name }) => named.length === 0 || named.some((beginning) => name.startsWith(beginning)),
);
if (lies.length === 0) throw new Error(`No lie has a name that begins with ${named.join(' or ')}`);

const rows = await withStacks([{ env: { LOG_LEVEL: 'fatal', SECRET_KEY } }], async (stack) => {
  if (!stack) throw new Error('no stack');
  const canary = await startCanary(stack);
  try {
    await durations(canary);
    const measured: Measured[] = [];
    for (const lie of lies) measured.push(await measure(stack, canary, lie));
    // Of all rounds together: in two seconds, the p99 is the fourth slowest call, on any machine a matter of chance.
    const quiet = p99(measured.flatMap((each) => each.quiet));
    return measured.map((each) => rowOf(each, quiet));
  } finally {
    await canary.close();
  }
});
process.stdout.write(`${table(rows)}\n`);
if (named.length === 0)
  await writeSection(
    'Neighbours of backends that lie',
    `Made by \`npm run bench -- lying\` on ${await machine()}\n\n${table(rows)}`,
  );
process.exitCode = rows.every(isMet) ? 0 : 1;

/** Durations of calls, milliseconds. */
interface Measured {
  readonly lie: Lie;
  readonly quiet: readonly number[];
  readonly attacked: readonly number[];
}

async function measure(stack: Stack, canary: Canary, lie: Lie): Promise<Measured> {
  const { endpointId } = canary;
  const quiet: number[] = [];
  const attacked: number[] = [];
  for (let number = 0; number < ROUNDS; number++) {
    quiet.push(...(await durations(canary)));
    const server = await startLyingProcess(lie);
    const id = await createService(stack.api, lie.type, lie.config(server.port), `${lie.name} ${number}`);
    await stack.api.post(`/api/services/${id}/activate`);
    await bind(stack.api, endpointId, id, id);
    const calling = new AbortController();
    const called = callAgainAndAgain(stack, lie, endpointId, id, calling.signal);
    attacked.push(...(await durations(canary)));
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

/** The durations of calls for a while, milliseconds. @throws Error when one fails */
async function durations({ calls }: Canary): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + MEASURE_MS;
  while (performance.now() < until) {
    for (const call of calls) {
      const began = performance.now();
      const failure = await call();
      if (failure !== undefined) throw new Error(`another service fails: ${failure}`);
      times.push(performance.now() - began);
    }
    await delay(PAUSE_MS);
  }
  return times;
}

function p99(times: readonly number[]): number {
  return times.toSorted((left, right) => left - right)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}
