/** Servers that answer by themselves what the gateway's handlers answer, each in a process of its own. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';

/** A running server. */
export interface Baseline {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Sources stand beside the compiled files: benchmarks are run in the checkout. */
const BENCH = 'bench';
const RUST = join(BENCH, 'rust');
/** Other libraries of C have no package. */
const DENO = { package: `@deno/linux-${process.arch}-glibc`, version: '2.9.6' };
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'edge-gateway/bench');

/** Node's own server. */
export function nodeServer(): Promise<Baseline> {
  return started(process.execPath, ['dist/bench/support/plain-server.js']);
}

/** hyper: the least that a request costs. */
export async function hyperServer(): Promise<Baseline> {
  return started(await rustProgram('hyper-server'), []);
}

/** `Deno.serve`. */
export async function denoServer(): Promise<Baseline> {
  return started(await denoProgram(), [
    ...['run', '--no-config', '--allow-net=127.0.0.1'],
    join(BENCH, 'support/deno-server.mjs'),
  ]);
}

/** Downloads Deno unless it is there: one file of a package, which is no dependency of this project. */
async function denoProgram(): Promise<string> {
  const program = join(CACHE, `deno-${DENO.version}`);
  if (existsSync(program)) return program;
  await mkdir(CACHE, { recursive: true });
  const cwd = await mkdtemp(join(CACHE, 'download-'));
  try {
    const pack = ['pack', `${DENO.package}@${DENO.version}`, '--silent'];
    await execa('npm', pack, { cwd, stderr: 'inherit' });
    await execa('tar', ['-xzf', (await readdir(cwd))[0] ?? '', 'package/deno'], { cwd });
    await rename(join(cwd, 'package/deno'), program);
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
  return program;
}

/** Latencies of GET requests that are due at a fixed rate, milliseconds. */
export async function latenciesAt(
  rate: number,
  url: string,
  seconds: number,
): Promise<{ p50: number; p99: number }> {
  const { host, pathname } = new URL(url);
  const args = [host, pathname, '64', String(Math.round(rate)), String(seconds)];
  const { stdout } = await execa(await rustProgram('fixed-rate'), args);
  const [p50 = Number.NaN, p99 = Number.NaN] = stdout.split(' ').map(Number);
  return { p50, p99 };
}

async function rustProgram(name: string): Promise<string> {
  await execa('cargo', ['build', '--release', '--locked', '--quiet'], { cwd: RUST });
  return join(RUST, 'target/release', name);
}

/** Starts a program that prints its port. */
async function started(program: string, args: readonly string[]): Promise<Baseline> {
  const child = execa(program, args, { stderr: 'inherit', reject: false });
  const { value } = await child.iterable()[Symbol.asyncIterator]().next();
  const { pid } = child;
  if (pid === undefined || !Number(value))
    throw new Error(`${program} did not print its port: ${String(value)}`);
  return {
    url: `http://127.0.0.1:${Number(value)}`,
    pid,
    stop: async () => {
      child.kill();
      await child;
    },
  };
}
