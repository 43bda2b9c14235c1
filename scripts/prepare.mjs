/** What every script needs first, on a fresh machine too: the right Node, the packages, the build. No packages used here. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Says what is wrong, and ends. */
export function fail(message) {
  process.stderr.write(`\n${message}\n`);
  process.exit(1);
}

/** Runs a program in the root folder with our streams; resolves with its exit code. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: 'inherit', ...options });
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? (signal ? 128 : 1)));
  });
}

/** Ends with a message when this Node is too old. */
export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    fail(`Node ${process.versions.node} is too old: Edge Gateway needs Node 20.19 or newer.`);
  }
}

/** Ends with a message when there is no Rust toolchain. */
export async function requireRust() {
  for (const tool of ['rustc', 'cargo']) {
    const code = await run(tool, ['--version'], { stdio: 'ignore' }).catch(() => 1);
    if (code !== 0) {
      fail(
        `\`${tool}\` was not found. Handlers are written in Rust: install a toolchain (with rustup, or with ` +
          '`apt-get install rustc cargo`) and put it on the PATH.',
      );
    }
  }
}

/** Installs the packages when they are missing, or older than the lockfile. */
export async function ensurePackages() {
  const installed = `${ROOT}node_modules/.package-lock.json`;
  const isCurrent =
    existsSync(installed) && statSync(installed).mtimeMs >= statSync(`${ROOT}package-lock.json`).mtimeMs;
  if (isCurrent) return;
  step('Installing packages');
  const code = await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    env: { ...process.env, ...nodeHeaders() },
  });
  if (code !== 0) fail('The packages could not be installed; npm said why above.');
}

/** Where npm finds the headers of Node, if they are installed beside it, so that it need not download them. */
function nodeHeaders() {
  const prefix = dirname(dirname(realpathSync(process.execPath)));
  return existsSync(join(prefix, 'include', 'node', 'node.h')) ? { npm_config_nodedir: prefix } : {};
}

/** Compiles the TypeScript. */
export async function build() {
  step('Building');
  removeStale(ROOT);
  const code = await run(process.execPath, [
    `${ROOT}node_modules/typescript/bin/tsc`,
    '-p',
    `${ROOT}tsconfig.json`,
  ]);
  if (code !== 0) fail('The build failed; the compiler said why above.');
}

/** Removes from dist/ what was compiled from files that are gone: tests and migrations are run by what is found there. */
export function removeStale(root) {
  const dist = join(root, 'dist');
  if (!existsSync(dist)) return;
  for (const file of readdirSync(dist, { recursive: true })) {
    const [, source] = /^(.+)\.js(?:\.map)?$/.exec(file) ?? [];
    if (source !== undefined && !existsSync(join(root, `${source}.ts`))) rmSync(join(dist, file));
  }
}

/** Announces a step. */
export function step(text) {
  process.stdout.write(`\u25b8 ${text}\n`);
}
