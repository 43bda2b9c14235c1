/**
 * Does anything fail, or leak, over a long time? `npm run bench -- soak [minutes] [endpoints]`, by default ten minutes
 * on 200 endpoints; `npm run bench -- soak handlers [count]` measures many running handlers instead. Results go to
 * `bench/RESULTS.md`.
 */
import { stopServer } from '../test/support/postgres.js';
import { manyHandlers } from './soak/many-handlers.js';
import { describeSoak } from './soak/report.js';
import { soak } from './soak/run.js';
import type { MemoryRule } from './soak/verdict.js';
import { machine, writeSection } from './support/results.js';

const MEMORY: MemoryRule = { share: 0.1, bytes: 8 * 1024 ** 2 };

const [first = '10', second] = process.argv.slice(2);
process.exitCode = (await (first === 'handlers' ? handlers() : mixed())) ? 0 : 1;

async function handlers(): Promise<boolean> {
  const count = numberOf(second ?? '500');
  await finish('Many running handlers', await manyHandlers(count));
  return true;
}

/** @returns whether there were no errors */
async function mixed(): Promise<boolean> {
  const durationMs = numberOf(first) * 60_000;
  const endpoints = numberOf(second ?? '200');
  try {
    const report = await soak({
      endpoints,
      clients: 8,
      pauseMs: 2,
      changeEveryMs: 500,
      warmUpMs: Math.min(durationMs / 2, 120_000),
      durationMs,
      memory: MEMORY,
      // Readers of imports are kept for a minute, idle connections for half of it.
      calmMs: 65_000,
      onProgress: (text) => process.stdout.write(`  ${text}\n`),
    });
    await finish('Soak', describeSoak(report, endpoints, MEMORY));
    const isFlat = report.trends.every((trend) => trend.isFlat);
    return report.outcomes.errors.length === 0 && report.leaks.length === 0 && isFlat;
  } finally {
    await stopServer();
  }
}

async function finish(title: string, text: string): Promise<void> {
  const whole = `Made by \`npm run bench -- soak${title === 'Soak' ? '' : ' handlers'}\` on ${await machine()}\n\n${text}`;
  await writeSection(title, whole);
  process.stdout.write(`\n${whole}\n`);
}

function numberOf(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`"${text}" is not a number of minutes, endpoints or handlers`);
  return number;
}
