/**
 * `npm run check`: types, lint, format, import rules and cycles, length of prose lines, and the same for Rust. Runs
 * all, then lists the failed ones. With `--built`, dist/ is taken as it is: tests run from it meanwhile.
 */
import { join } from 'node:path';
import { buildAll } from './compile.mjs';
import { ensureAllPackages, fail, ROOT, requireNode, requireRust, run, step } from './prepare.mjs';

requireNode();
await requireRust();
if (!process.argv.includes('--built')) await buildAll(ensureAllPackages); // types

const cargo = (folder, ...args) => run('cargo', args, { cwd: join(ROOT, folder) });
const clippy = (folder, ...features) =>
  cargo(
    ...[folder, 'clippy', '--locked', '--workspace', '--all-targets', ...features],
    ...['--', '-D', 'warnings'],
  );
const checks = [
  ['import rules', () => run(process.execPath, [`${ROOT}scripts/import-rules.mjs`])],
  ['length of prose lines', () => run(process.execPath, [`${ROOT}scripts/line-length.mjs`])],
  ['tables of docs/', () => run(process.execPath, [`${ROOT}scripts/docs.mjs`, '--check'])],
  ['lint, format and import cycles', () => run(`${ROOT}node_modules/.bin/biome`, ['ci', '.'])],
  ['cargo fmt', () => cargo('rust/sdk', 'fmt', '--all', '--check')],
  ['clippy', () => clippy('rust/sdk')],
  ['clippy (async)', () => clippy('rust/sdk', '--all-features')],
  ['cargo fmt of the native programs', () => cargo('rust', 'fmt', '--all', '--check')],
  ['clippy of the native programs', () => clippy('rust')],
];
const failed = [];
for (const [name, check] of checks) {
  step(`Checking: ${name}`);
  if ((await check()) !== 0) failed.push(name);
}
if (failed.length > 0) fail(`Failed: ${failed.join(', ')}`);
process.stdout.write('All checks passed.\n');
