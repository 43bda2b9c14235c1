/**
 * `npm run check`: types, lint, format, what the repository says of itself, and the same for Rust. Runs all, then lists
 * the failed ones.
 */
import { join } from 'node:path';
import { buildAll } from './compile.mjs';
import { ensureAllPackages, fail, ROOT, requireNode, requireRust, run, step } from './prepare.mjs';

requireNode();
await requireRust();
await buildAll(ensureAllPackages); // types

const script = (name, ...args) => run(process.execPath, [`${ROOT}scripts/${name}.mjs`, ...args]);
const cargo = (folder, ...args) => run('cargo', args, { cwd: join(ROOT, folder) });
const clippy = (folder, ...features) =>
  cargo(
    ...[folder, 'clippy', '--locked', '--workspace', '--all-targets', ...features],
    ...['--', '-D', 'warnings'],
  );
const checks = [
  ['contracts between Rust and TypeScript', () => script('contracts', '--check')],
  ['import rules', () => script('import-rules')],
  ['circles and layers in Rust', () => script('rust-circles')],
  ['packages of the product', () => script('packages')],
  ['catalogue of errors', () => script('error-catalogue')],
  ['systemd units', () => script('systemd-units')],
  ['tables of promises', () => script('promises')],
  ['length of prose lines', () => script('line-length')],
  ['tables of docs/', () => script('docs', '--check')],
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
if (failed.length > 0)
  fail(
    `Failed: ${failed.join(', ')}. What each has found stands below its line "Checking: ..."; ` +
      '`npm run format` mends the format.',
  );
process.stdout.write('All checks passed.\n');
