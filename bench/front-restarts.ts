/**
 * How long does a front take that replaces a killed one, under load, also when it has to learn of many endpoints? Each
 * kill counts: the slowest of them is compared with the bar.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { numbered } from '../test/support/handler-sources.js';
import { startLoad } from '../test/support/load.js';
import { frontOf } from '../test/support/process-state.js';
import type { Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { type Benchmark, runAlone } from './support/main.js';
import { defineEndpoints } from './support/many-routes.js';
import { median, type Row, round } from './support/report.js';

const KILLS = 10;
const MANY = 10_000;
/** The gateway pauses before restarts of fronts that live shorter. */
const SHORT_LIFE_MS = 1_000;

/** Milliseconds. */
interface Kill {
  /** From the kill until the next one listens. */
  readonly away: number;
  /** Of that: from the start of the program until it listens, with all endpoints. */
  readonly start: number;
}

export const frontRestarts: Benchmark = () => {
  const env = { LOG_LEVEL: 'info', GATEWAY_CONCURRENCY: '3' };
  return withStacks([{ env }, { env }], async (few, many) => {
    if (!few || !many) throw new Error('no stacks');
    await defineEndpoints(many, MANY - 1);
    const [withFew, withMany] = [await kills(few), await kills(many)];
    return [
      row(
        'a front is killed: time until it is served again',
        withFew.map(({ away }) => away),
        250,
      ),
      row(
        'the same with 10,000 endpoints',
        withMany.map(({ away }) => away),
        250,
      ),
      row(
        'start of a front that learns of 10,000 endpoints',
        withMany.map(({ start }) => start),
        200,
      ),
    ];
  });
};

async function kills(stack: Stack): Promise<Kill[]> {
  await stack.deploy({ path: '/served', code: numbered(0) });
  const gateway = stack.processes.get('gateway');
  if (!gateway) throw new Error('no gateway runs');
  gateway.logged.expectErrors(/front exited, starting another/);
  const listening = () => gateway.logged.lines.filter(({ msg }) => msg === 'front listening');
  const load = await startLoad({
    ...{ targets: [stack.gatewayUrl], clients: 6 },
    request: () => ({ path: '/served', text: '0 ' }),
  });
  const killed: Kill[] = [];
  for (let number = 0; number < KILLS; number++) {
    await delay(SHORT_LIFE_MS);
    const before = listening().length;
    const from = performance.now();
    process.kill(frontOf(gateway.pid) ?? 0, 'SIGKILL');
    while (listening().length === before) await delay(1);
    killed.push({ away: performance.now() - from, start: Number(listening().at(-1)?.['ms']) });
  }
  await load.stop();
  return killed;
}

function row(question: string, times: readonly number[], atMost: number): Row {
  return {
    question,
    measured: `slowest of ${KILLS}, median ${round(median(times))} ms`,
    value: Math.max(...times),
    unit: 'ms',
    bar: { atMost },
  };
}

await runAlone(import.meta.url, frontRestarts);
