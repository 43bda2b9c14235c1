/**
 * Runs tests: `node scripts/test.mjs everyday` (what `npm test` does), `torture`, `affected` (the torture tests that
 * belong to what has changed), `check` (`npm run check` as one test), several of these, `all` (`npm run test:all`), or
 * single files (`npm run test:only -- test/api/domains.test.ts`). Sets up what they need, and ends with what has
 * failed, and one line `N passed, N failed` for all. With CI=true, a skipped test is a failure. With `--shaken`,
 * processes of the product pause at random before they read and write; without names, the everyday suite is run so.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildAll } from './compile.mjs';
import { ensureAllPackages, fail, ROOT, requireNode, requireRust, run, step } from './prepare.mjs';
import { shakenOptions } from './shaken.mjs';
import { isTorture, longestFirst, mostlyWaits } from './test-order.mjs';
import { ensureTestServers } from './test-servers.mjs';
import { affectedTorture, cleanCommit, recordGreen } from './torture-areas.mjs';

const GROUPS = { check, everyday, affected, torture };
const ALL = ['check', 'everyday', 'torture'];
const CORES = availableParallelism();
/** More than the cores, because tests mostly wait for other processes. */
const JOBS = CORES + 2;

/**
 * What cargo tests: a name, the folder, and arguments. The feature `async` of the SDK only adds code, so its tests run
 * once, with it. Those of the front mostly wait.
 */
const CRATES = [
  ['SDK tests', 'rust/sdk', ['--features', 'async']],
  ['native programs', 'rust', ['--', '--test-threads=8']],
];

const given = process.argv.slice(2);
const isShaken = given.includes('--shaken');
const names = given.filter((name) => name !== '--shaken').flatMap((name) => (name === 'all' ? ALL : [name]));
const args = isShaken && names.length === 0 ? ['everyday'] : names;
const files = args.filter((name) => !(name in GROUPS));
/** The commit that is tested, if there are no other changes. */
const commit = cleanCommit();
const total = { passed: 0, failed: 0, skipped: 0 };
/** The names of failed tests, each followed by its error. */
const failures = [];

requireNode();
await requireRust();
await buildAll(ensureAllPackages);
await ensureTestServers();
const shaken = isShaken ? shakenOptions() : [];
const groups = Object.keys(GROUPS).filter((name) => args.includes(name));
if (groups.length > 0) await fillBuildCache();
for (const name of groups) await timed(name, GROUPS[name]);
if (files.length > 0) await mocha(files.map(compiled));

if (process.env.CI === 'true' && total.skipped > 0) {
  process.stdout.write(`\nCI=true: ${total.skipped} skipped tests count as failed.\n`);
  failures.push(`${total.skipped} skipped tests`);
  total.failed += total.skipped;
  total.skipped = 0;
}
printFailures();
const isWhole = ALL.every((name) => args.includes(name)) && total.skipped === 0 && !isShaken;
if (isWhole && total.failed === 0) recordGreenCommit();
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : '';
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed${skipped}\n`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;

/** Builds the libraries that handlers are compiled against. */
async function fillBuildCache() {
  step('Preparing what handlers are compiled against');
  const code = await run(process.execPath, [`${ROOT}dist/test/support/fill-build-cache.js`]);
  if (code !== 0) fail('No handler can be compiled; see the error above.');
}

async function check() {
  const code = await run(process.execPath, [`${ROOT}scripts/check.mjs`]);
  total[code === 0 ? 'passed' : 'failed']++;
  if (code !== 0) failures.push('npm run check');
}

/** The tests in Rust, concurrently with those of the service, several files at a time. */
async function everyday() {
  const rust = cargoTests();
  const specs = testFiles().filter((file) => !isTorture(file));
  await mocha(longestFirst(specs), ['--parallel', '--jobs', String(JOBS)]);
  process.stdout.write(await rust);
}

/** The torture tests that belong to what has changed. */
async function affected() {
  const { files, reason } = affectedTorture(testFiles().filter(isTorture));
  step(`${files.length} files with torture tests: ${reason}`);
  await torture(files);
}

/** Those that mostly wait, several at a time; the others one after the other: they saturate the machine. */
async function torture(specs = testFiles().filter(isTorture)) {
  await mocha(longestFirst(specs.filter(mostlyWaits)), ['--parallel', '--jobs', String(JOBS)]);
  await mocha(specs.filter((file) => !mostlyWaits(file)));
}

/** The compiled test files, relative to the root. */
function testFiles() {
  return readdirSync(join(ROOT, 'dist/test'), { recursive: true })
    .filter((file) => file.endsWith('.test.js'))
    .map((file) => `dist/test/${file}`)
    .sort();
}

/** Runs the tests in Rust and adds up their results. Returns the text to print: all output if a test failed. */
async function cargoTests() {
  let text = '';
  for (const [name, folder, args] of CRATES) {
    const { code, output } = await captured('cargo', ['test', '--locked', '--workspace', ...args], {
      cwd: join(ROOT, folder),
    });
    const counts = countCargo(output);
    // A test program that does not compile has no result line.
    if (code !== 0 && counts.failed === 0) counts.failed++;
    for (const key of Object.keys(total)) total[key] += counts[key];
    if (counts.failed > 0) {
      text += output;
      failures.push(name);
    }
    text += `${name}: ${counts.passed} passed, ${counts.failed} failed\n`;
  }
  return text;
}

/** Adds up the `test result:` lines of cargo's test programs. */
function countCargo(output) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [, passed, failed, ignored] of output.matchAll(
    /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/gm,
  )) {
    counts.passed += Number(passed);
    counts.failed += Number(failed);
    counts.skipped += Number(ignored);
  }
  return counts;
}

/** Runs mocha on these compiled files, and adds up its results. */
async function mocha(specs, options = []) {
  // To mocha, this is an error.
  if (specs.length === 0) return;
  const folder = mkdtempSync(join(tmpdir(), 'edge-gateway-result-'));
  const resultFile = join(folder, 'result.json');
  const program = join(ROOT, 'node_modules', 'mocha', 'bin', 'mocha.js');
  const code = await run(
    process.execPath,
    [program, '--reporter', 'scripts/mocha-reporter.cjs', ...shaken, ...options, ...specs],
    { env: { ...process.env, RESULT_FILE: resultFile } },
  );
  const failedBefore = total.failed;
  try {
    const { counts, failed } = JSON.parse(readFileSync(resultFile, 'utf8'));
    for (const key of Object.keys(total)) total[key] += counts[key];
    failures.push(...failed);
  } catch {
    failures.push('mocha ended without a result');
  }
  rmSync(folder, { recursive: true });
  if (code !== 0 && total.failed === failedBefore) {
    total.failed++;
    failures.push(`mocha, which exited with ${code}`);
  }
}

/** Later changes are compared with this commit. */
function recordGreenCommit() {
  if (commit === undefined || cleanCommit() !== commit)
    step('The whole suite is green, but not recorded: there are changes that are not committed.');
  else step(`The whole suite is green. Commit ${recordGreen(commit, total.passed)}, which names ${commit}.`);
}

/** What has failed, once more at the end: its details are far above. */
function printFailures() {
  if (failures.length > 0) step('Failed');
  for (const failure of failures) process.stdout.write(`${failure.trim().replaceAll('\n', '\n    ')}\n`);
}

/** The compiled form of a test file: `test/x.test.ts` is run as `dist/test/x.test.js`. */
function compiled(file) {
  return file.startsWith('dist/') ? file : `dist/${file.replace(/\.ts$/, '.js')}`;
}

/** Runs a group of tests and prints its duration. */
async function timed(name, group) {
  step(`Testing: ${name}`);
  const began = performance.now();
  await group();
  const seconds = Math.round((performance.now() - began) / 1_000);
  step(`${name}: ${Math.floor(seconds / 60)} min ${seconds % 60} s`);
}

/** Runs a program and returns its output. */
function captured(command, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
