/**
 * `npm run check`: types, lint, format, import rules and cycles, length of prose lines, and the same for the SDK. Runs
 * all, then lists the failed ones.
 */
import { buildAll, ensureAllPackages, fail, ROOT, requireNode, requireRust, run, step } from './prepare.mjs';

requireNode();
await requireRust();
await ensureAllPackages();
await buildAll(); // types

const cargo = (args) => run('cargo', args, { cwd: `${ROOT}sdk` });
const checks = [
  ['import rules', () => run(process.execPath, [`${ROOT}scripts/import-rules.mjs`])],
  ['length of prose lines', () => run(process.execPath, [`${ROOT}scripts/line-length.mjs`])],
  ['tables of docs/', () => run(process.execPath, [`${ROOT}scripts/docs.mjs`, '--check'])],
  ['lint, format and import cycles', () => run(`${ROOT}node_modules/.bin/biome`, ['ci', '.'])],
  ['cargo fmt', () => cargo(['fmt', '--all', '--check'])],
  ['clippy', () => cargo(['clippy', '--locked', '--workspace', '--all-targets', '--', '-D', 'warnings'])],
  [
    'clippy (async)',
    () =>
      cargo(['clippy', '--locked', '--workspace', '--all-targets', '--all-features', '--', '-D', 'warnings']),
  ],
];
const failed = [];
for (const [name, check] of checks) {
  step(`Checking: ${name}`);
  if ((await check()) !== 0) failed.push(name);
}
if (failed.length > 0) fail(`Failed: ${failed.join(', ')}`);
process.stdout.write('All checks passed.\n');
