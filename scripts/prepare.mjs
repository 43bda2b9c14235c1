/** Set-up of all scripts, on a fresh machine too: checks Node and Rust, installs packages. Must not import packages. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Prints an error and exits. */
export function fail(message, exitCode = 1) {
  process.stderr.write(`\n${message}\n`);
  process.exit(exitCode);
}

/** Exits without an error when the reader of the output has ended, as in `npm run up | head`. */
export function endQuietly() {
  process.exit(1);
}
process.stdout.on('error', endQuietly);

/**
 * Runs a program in the root folder with inherited streams; resolves with its exit code. The program must not outlive
 * this process, nor must what it has started: it has a process group of its own, which gets the signals of this
 * process. A second signal ends it at once.
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    let child;
    let exitCode;
    const kill = () => signalGroup(child.pid, 'SIGTERM');
    const passOn = (signal, number) => {
      if (exitCode !== undefined) process.exit(exitCode);
      exitCode = 128 + number;
      signalGroup(child.pid, signal);
    };
    // Before the program runs: it must not outlive a signal that comes at its start.
    for (const signal of END_SIGNALS) process.on(signal, passOn);
    child = spawn(command, args, { cwd: ROOT, stdio: 'inherit', detached: true, ...options });
    process.once('exit', kill);
    const done = () => {
      // With `kill`, because jobs of a shell in the background ignore SIGINT.
      if (exitCode !== undefined) process.exit(exitCode);
      process.off('exit', kill);
      for (const signal of END_SIGNALS) process.off(signal, passOn);
    };
    child.once('error', (error) => {
      done();
      reject(error);
    });
    child.once('close', (code, signal) => {
      done();
      resolve(code ?? (signal ? 128 : 1));
    });
  });
}

const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function signalGroup(leader, signal) {
  try {
    process.kill(-leader, signal);
  } catch {
    // It has ended.
  }
}

/** Fails when this version of Node is too old. */
export function requireNode() {
  const needed = /\d+\.\d+/.exec(JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')).engines.node)[0];
  if (isOlder(process.versions.node, needed)) {
    fail(
      `Edge Gateway needs Node ${needed} or newer. Found: Node ${process.versions.node} (${process.execPath}).\n` +
        'Newer ones are at https://nodejs.org.',
    );
  }
}

/** Fails without a Rust toolchain that is new enough, or without a linker. */
export async function requireRust() {
  const needed = /^rust-version = "(.+)"$/m.exec(readFileSync(`${ROOT}rust/sdk/Cargo.toml`, 'utf8'))[1];
  for (const tool of ['rustc', 'cargo']) {
    // In the folder of the SDK: rustup can select toolchains per folder.
    const { error, status, stdout, stderr } = spawnSync(tool, ['--version'], {
      cwd: `${ROOT}rust/sdk`,
      encoding: 'utf8',
    });
    const version = /^\w+ (\d+\.\d+\.\d+)/.exec(stdout ?? '')?.[1];
    if (status === 0 && version && !isOlder(version, needed)) continue;
    const found = error
      ? `no \`${tool}\` on the PATH`
      : stdout.trim() || `\`${tool}\` fails: ${stderr.trim()}`;
    fail(
      `Handlers are written in Rust: Edge Gateway needs rustc and cargo ${needed} or newer. Found: ${found}.\n` +
        'Install a current toolchain with rustup (https://rustup.rs), or, with rustup, `rustup default stable`; then put\n' +
        '~/.cargo/bin at the front of the PATH. The packages of many distributions are too old.',
    );
  }
  if (spawnSync('cc', ['--version'], { stdio: 'ignore' }).error)
    fail(
      'Rust links programs with `cc`, which is not on the PATH: install gcc (`apt-get install gcc libc6-dev`).',
    );
}

/** Whether a version is lower than the required one, which may have fewer numbers. */
export function isOlder(version, needed) {
  return version.localeCompare(needed, 'en', { numeric: true }) < 0;
}

/** Installs missing packages needed for running. Other packages stay. */
export async function ensurePackages() {
  const missing = missingPackages(isForRunning);
  if (missing.length === 0) return;
  // Packages for tests are kept current if they were installed before.
  if (hasTestPackages())
    await install(
      ['ci'],
      packagesWhere(() => true),
    );
  else await install(['ci', '--omit=dev'], packagesWhere(isForRunning));
}

/** Installs missing packages needed for running, tests and checks. */
export async function ensureAllPackages() {
  const missing = missingPackages(() => true);
  if (missing.length === 0) return;
  // `npm ci` would remove installed packages first.
  if (existsSync(HIDDEN_LOCKFILE)) await install(['install', '--no-save'], missing);
  else await install(['ci'], missing);
}

/** What is for tests, and else only an option, is not needed for running. */
function isForRunning({ dev, devOptional }) {
  return !dev && !devOptional;
}

const HIDDEN_LOCKFILE = `${ROOT}node_modules/.package-lock.json`;
const PROGRESS_EVERY_MS = process.stdout.isTTY ? 200 : 5_000;

/** Paths of the packages of the lockfile that are for this machine and of this kind. */
function packagesWhere(condition) {
  return Object.entries(packagesIn(`${ROOT}package-lock.json`))
    .filter(([path, entry]) => path !== '' && isForThisMachine(entry) && condition(entry))
    .map(([path]) => path);
}

/** Optional packages without a machine are native parts that others do without. */
function isForThisMachine({ optional, os, cpu, libc }) {
  if (!os && !cpu) return !optional;
  const fits = (list, value) => !list || list.includes(value);
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  return fits(os, process.platform) && fits(cpu, process.arch) && fits(libc, isGlibc ? 'glibc' : 'musl');
}

/** Packages that npm has not installed, or in another version; links to our own packages have none. */
function missingPackages(condition) {
  const wanted = packagesIn(`${ROOT}package-lock.json`);
  const installed = packagesIn(HIDDEN_LOCKFILE);
  return packagesWhere(condition).filter(
    (path) => !installed[path] || installed[path].version !== wanted[path].version,
  );
}

/** Whether the packages for tests and checks are installed. */
export function hasTestPackages() {
  return Object.values(packagesIn(HIDDEN_LOCKFILE)).some(({ dev }) => dev);
}

function packagesIn(lockfile) {
  return existsSync(lockfile) ? JSON.parse(readFileSync(lockfile, 'utf8')).packages : {};
}

/** Runs npm, which prints no progress, and shows how many of these packages are installed. */
async function install(args, paths) {
  step('Installing packages');
  const started = performance.now();
  const show = () => {
    const count = paths.filter((path) => existsSync(`${ROOT}${path}/package.json`)).length;
    const seconds = Math.round((performance.now() - started) / 1000);
    const text = `  Installing packages: ${count} of ${paths.length} (${seconds} s)`;
    process.stdout.write(process.stdout.isTTY ? `\r${text}` : `${text}\n`);
  };
  const timer = setInterval(show, PROGRESS_EVERY_MS);
  const code = await run('npm', [...args, '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  }).catch((error) => fail(`npm cannot be run: ${error.message}`));
  clearInterval(timer);
  show();
  if (process.stdout.isTTY) process.stdout.write('\n');
  if (code !== 0) fail('The packages could not be installed; npm printed the reason above.');
}

/** Prints the title of a step. */
export function step(text) {
  process.stdout.write(`\u25b8 ${text}\n`);
}
