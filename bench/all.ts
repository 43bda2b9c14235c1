/**
 * Runs all benchmarks, prints their table, and writes it to `bench/RESULTS.md` with the machine. The soak is not among
 * them: it takes ten minutes, and is run by its name.
 */
import { apply } from './apply.js';
import { compile } from './compile.js';
import { compileMany } from './compile-many.js';
import { creates } from './creates.js';
import { dev } from './dev.js';
import { eventLoop } from './event-loop.js';
import { frontMemory } from './front-memory.js';
import { frontRestarts } from './front-restarts.js';
import { http2 } from './http2.js';
import { imports } from './import.js';
import { launcher } from './launcher.js';
import { logs } from './logs.js';
import { manyEndpoints } from './many-endpoints.js';
import { plan } from './plan.js';
import { policies } from './policies.js';
import { recovery } from './recovery.js';
import { routes } from './routes.js';
import { services } from './services.js';
import { sleep } from './sleep.js';
import { start } from './start.js';
import { streams } from './streams.js';
import type { Benchmark } from './support/main.js';
import { isMet, type Row, table } from './support/report.js';
import { machine, writeMainResults } from './support/results.js';
import { throughput } from './throughput.js';
import { tls } from './tls.js';
import { ui } from './ui.js';
import { versions } from './versions.js';

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  compile,
  'compile-many': compileMany,
  throughput,
  tls,
  http2,
  streams,
  'many-endpoints': manyEndpoints,
  'front-memory': frontMemory,
  routes,
  start,
  launcher,
  policies,
  sleep,
  versions,
  logs,
  ui,
  creates,
  plan,
  'event-loop': eventLoop,
  apply,
  dev,
  services,
  import: imports,
  recovery,
  'front-restarts': frontRestarts,
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
await writeMainResults(results);
process.stdout.write(`\n${table(rows)}\n\n${rows.filter(isMet).length} of ${rows.length} bars met.\n`);
