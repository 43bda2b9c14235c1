/**
 * How does an attack by one handler affect another endpoint? The p99 of its requests, compared with that without an
 * attack. `npm run bench -- hostile`, optionally with the names of actions. Results of a full run go to
 * `bench/RESULTS.md`.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RAW_ATTACKS } from '../test/support/hostile/raw-attacks.js';
import { ATTACKS } from '../test/support/hostile/sdk-attacks.js';
import { call } from '../test/support/http.js';
import { must, type Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { isMet, median, type Row, round, table } from './support/report.js';
import { machine, writeSection } from './support/results.js';

/** The actions that the attacker repeats, and its handler. */
const ACTIONS: readonly (readonly [action: string, code: string])[] = [
  ['spin', ATTACKS],
  ['spin-in-thread', ATTACKS],
  ['spin-in-sessions', ATTACKS],
  ['recurse', ATTACKS],
  ['memory-at-once', ATTACKS],
  ['memory-slowly', ATTACKS],
  ['memory-in-children', ATTACKS],
  ['fork-bomb', ATTACKS],
  ['threads', ATTACKS],
  ['files', ATTACKS],
  ['print-lines', ATTACKS],
  ['print-without-end', ATTACKS],
  ['megabytes&mb=60', ATTACKS],
  ['panic', ATTACKS],
  ['exit', ATTACKS],
  ['flood', RAW_ATTACKS],
  ['twice', RAW_ATTACKS],
  ['huge', RAW_ATTACKS],
  ['unfinished', RAW_ATTACKS],
  ['stop-reading', RAW_ATTACKS],
];
const LIMITS = { memory_mb: 256, processes: 128, timeout_ms: 1_000 };
const ROUNDS = 3;
const MEASURE_MS = 2_000;
const CLIENTS = 4;
const PAUSE_MS = 4;

async function measure(stack: Stack, action: string, code: string): Promise<Row> {
  const pairs: { quiet: number; attacked: number }[] = [];
  for (let number = 0; number < ROUNDS; number++) {
    const quiet = await neighbourP99(stack);
    const id = await stack.deploy({ path: '/attack', method: 'POST', code, limits: LIMITS });
    const attack = startAttack(stack, action);
    let attacked: number;
    try {
      await delay(200);
      attacked = await neighbourP99(stack);
    } finally {
      await attack.stop();
    }
    await must(stack.api.delete(`/api/endpoints/${id}`));
    await delay(200);
    pairs.push({ quiet, attacked });
  }
  const of = (key: 'quiet' | 'attacked') => median(pairs.map((pair) => pair[key]));
  return {
    question: `p99 of a neighbour while a handler does \`${action}\`, against quiet`,
    measured: `${round(of('attacked'))} ms against ${round(of('quiet'))} ms`,
    value: of('attacked') / of('quiet'),
    unit: 'x',
    bar: { atMost: 2 },
  };
}

function startAttack(stack: Stack, action: string): { stop(): Promise<void> } {
  const child = fork(fileURLToPath(new URL('./support/attackers.js', import.meta.url)), [
    `${stack.gatewayUrl}/attack?do=${action}`,
  ]);
  return {
    stop: async () => {
      if (child.exitCode === null && child.kill()) await once(child, 'exit');
    },
  };
}

/** Milliseconds. @throws Error when the neighbour does not answer as it should */
async function neighbourP99({ gatewayUrl }: Stack): Promise<number> {
  const times: number[] = [];
  const until = performance.now() + MEASURE_MS;
  const clients = Array.from({ length: CLIENTS }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (performance.now() < until) {
      const began = performance.now();
      const { status, text } = await call(`${gatewayUrl}/hello/ada`, { agent });
      if (status !== 200) throw new Error(`the neighbour answers ${status}: ${text}`);
      times.push(performance.now() - began);
      await delay(PAUSE_MS);
    }
    agent.destroy();
  });
  await Promise.all(clients);
  return times.sort((left, right) => left - right)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}

const named = process.argv.slice(2);
const rows = await withStacks([{ env: { LOG_LEVEL: 'fatal', SANDBOX: 'required' } }], async (stack) => {
  if (!stack) throw new Error('no stack');
  await stack.deploy({ path: '/hello/{name}', code: SMALL_JSON });
  await neighbourP99(stack);
  const measured: Row[] = [];
  const unknown = named.find((name) => !ACTIONS.some(([action]) => action.startsWith(name)));
  if (unknown !== undefined) throw new Error(`There is no action "${unknown}"`);
  const actions = ACTIONS.filter(
    ([action]) => named.length === 0 || named.some((name) => action.startsWith(name)),
  );
  for (const [action, code] of actions) measured.push(await measure(stack, action, code));
  return measured;
});
process.stdout.write(`${table(rows)}\n`);
if (named.length === 0)
  await writeSection(
    'Neighbours of hostile handlers',
    `Made by \`npm run bench -- hostile\` on ${await machine()}\n\n${table(rows)}`,
  );
process.exitCode = rows.every(isMet) ? 0 : 1;
