/** Runs all benchmarks, prints their table, and writes it to `bench/RESULTS.md` with the machine. */
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { compile } from './compile.js';
import { compileMany } from './compile-many.js';
import { creates } from './creates.js';
import { imports } from './import.js';
import { manyEndpoints } from './many-endpoints.js';
import { services } from './services.js';
import { start } from './start.js';
import type { Benchmark } from './support/main.js';
import { isMet, type Row, table } from './support/report.js';
import { throughput } from './throughput.js';

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  compile,
  'compile-many': compileMany,
  throughput,
  'many-endpoints': manyEndpoints,
  start,
  creates,
  services,
  import: imports,
};

const rows: Row[] = [];
for (const [name, benchmark] of Object.entries(BENCHMARKS)) {
  process.stdout.write(`\u25b8 ${name}\n`);
  const measured = await benchmark();
  rows.push(...measured);
  for (const row of measured)
    process.stdout.write(`  ${row.question}: ${row.value.toPrecision(3)} ${row.unit}\n`);
}

const results = `# Benchmark results

Made by \`npm run bench\`. Every ratio compares two things measured in turn in the same run; medians over several rounds.

Machine: ${await machine()}

${table(rows)}
`;
await writeFile(fileURLToPath(new URL('../../bench/RESULTS.md', import.meta.url)), results);
process.stdout.write(`\n${table(rows)}\n\n${rows.filter(isMet).length} of ${rows.length} bars met.\n`);

async function machine(): Promise<string> {
  const model = cpus()[0]?.model ?? 'unknown CPU';
  const kernel = (await readFile('/proc/version', 'utf8')).split(' ')[2];
  const { stdout: rustc } = await execa('rustc', ['--version']);
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} cores (${model}), ${memory} GiB, Linux ${kernel}, Node ${process.version}, ${rustc}.`;
}
