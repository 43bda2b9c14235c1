/**
 * `npm test`: sets up what the tests need, runs the tests of the SDK (cargo) and of the service (mocha), and ends with
 * a line `N passed, N failed, N skipped`. With CI=true, a skipped test is a failure.
 *
 * `npm run test:only -- test/api/domains.test.ts ...` builds and runs just these files.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, ensurePackages, ROOT, requireNode, requireRust, run, step } from './prepare.mjs';
import { ensureTestServers } from './test-servers.mjs';

const files = process.argv.slice(2);
const total = { passed: 0, failed: 0, skipped: 0 };

requireNode();
await requireRust();
await ensurePackages();
await build();
await ensureTestServers();
if (files.length === 0) {
  await cargoTests([]);
  await cargoTests(['--features', 'async']);
}
await mochaTests(files);

if (process.env.CI === 'true' && total.skipped > 0) {
  process.stdout.write(`\nCI=true: ${total.skipped} skipped tests count as failed.\n`);
  total.failed += total.skipped;
  total.skipped = 0;
}
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : '';
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed${skipped}\n`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;

/** Runs the tests of the SDK and adds up the `test result:` lines of its test programs. */
async function cargoTests(args) {
  step(`Testing the SDK ${args.join(' ')}`);
  const { code, output } = await captured('cargo', ['test', '--locked', '--workspace', ...args], {
    cwd: join(ROOT, 'sdk'),
  });
  for (const [, passed, failed, ignored] of output.matchAll(
    /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/gm,
  )) {
    total.passed += Number(passed);
    total.failed += Number(failed);
    total.skipped += Number(ignored);
  }
  // A test program that does not compile has no result line.
  if (code !== 0 && total.failed === 0) total.failed++;
}

/** Runs mocha on these files, or on all. */
async function mochaTests(only) {
  step('Testing the service');
  const folder = mkdtempSync(join(tmpdir(), 'edge-gateway-result-'));
  const resultFile = join(folder, 'result.json');
  const specs = only.length > 0 ? only.map(compiled) : ['dist/test/**/*.test.js'];
  const mocha = join(ROOT, 'node_modules', 'mocha', 'bin', 'mocha.js');
  const code = await run(process.execPath, [mocha, '--reporter', 'scripts/mocha-reporter.cjs', ...specs], {
    env: { ...process.env, RESULT_FILE: resultFile },
  });
  try {
    const counts = JSON.parse(readFileSync(resultFile, 'utf8'));
    for (const key of Object.keys(total)) total[key] += counts[key];
  } catch {
    process.stdout.write('mocha ended without a result.\n');
  }
  rmSync(folder, { recursive: true });
  if (code !== 0 && total.failed === 0) total.failed++;
}

/** The compiled form of a test file: `test/x.test.ts` is run as `dist/test/x.test.js`. */
function compiled(file) {
  return file.startsWith('dist/') ? file : `dist/${file.replace(/\.ts$/, '.js')}`;
}

/** Runs a program, shows its output and returns it. */
function captured(command, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
      process.stdout.write(text);
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
