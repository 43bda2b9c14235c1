/**
 * `npm run bench`: all benchmarks, `npm run bench -- throughput` one of them, with `--save` its results are kept,
 * `npm run bench -- soak 10` the soak.
 */
import { buildAll } from './compile.mjs';
import { ensureAllPackages, fail, ROOT, requireNode, requireRust, run, step } from './prepare.mjs';
import { ensureLargeDocument } from './test-servers.mjs';

requireNode();
await requireRust();
await buildAll(ensureAllPackages);
await ensureLoad('wrk', 'wrk');
await ensureLoad('h2load', 'nghttp2-client');
await ensureLargeDocument();
const [name = 'all', ...args] = process.argv.slice(2);
process.exitCode = await run(process.execPath, [`${ROOT}dist/bench/${name}.js`, ...args]);

/** Installs a load generator unless it starts. */
async function ensureLoad(program, name) {
  // wrk has no option that exits with 0; starting at all is enough.
  const found = await run(program, ['--version'], { stdio: 'ignore' }).then(
    () => true,
    () => false,
  );
  if (found) return;
  if (process.getuid?.() !== 0) fail(`The benchmarks need \`${program}\`: apt-get install ${name}`);
  step(`Installing ${name}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['update', '-qq'], { env });
  if ((await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name], { env })) !== 0) {
    fail(`${name} could not be installed; apt-get said why above.`);
  }
}
