/**
 * Finds the Rust toolchain and the SDK, and computes their fingerprint: artifacts are reused for the same fingerprint
 * only.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The tools that compile handlers on this machine. */
export interface Toolchain {
  /** The compiler itself, not a wrapper that chooses one. */
  readonly rustc: string;
  readonly cargo: string;
  /** Folder of the toolchain, in which its programs and libraries are. */
  readonly sysroot: string;
  /** e.g. `rustc 1.95.0 (59807616e 2026-04-14)`. */
  readonly version: string;
  /** Target triple of this machine. */
  readonly host: string;
  /** Folder of the SDK crate. */
  readonly sdk: string;
  /** Digest of compiler version, SDK sources and the flags of handler builds. */
  readonly fingerprint: string;
}

/** No usable Rust toolchain. The message says how to get one. */
export class ToolchainError extends Error {
  override readonly name = 'ToolchainError';
}

const execute = promisify(execFile);
const SDK_FOLDER = fileURLToPath(new URL('../../../rust/sdk', import.meta.url));

/**
 * Finds `rustc` and `cargo` on the PATH.
 * @param profile the flags of handler builds, which are part of the fingerprint
 * @throws ToolchainError when there is none, or it is older than the SDK needs
 */
export async function findToolchain(profile: readonly string[]): Promise<Toolchain> {
  // Alone at first: where there is no toolchain at all, the error names the compiler, not what failed first by chance.
  const verbose = await toolOutput('rustc', ['-vV']);
  const [sysroot, cargo] = await Promise.all([
    toolOutput('rustc', ['--print', 'sysroot']),
    toolOutput('cargo', ['--version']),
  ]);
  for (const installed of [versionIn(verbose), cargo]) await requireVersion(installed);
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([verbose, cargo, profile, await sourceDigest(SDK_FOLDER)]))
    .digest('hex');
  return {
    rustc: inSysroot(sysroot, 'rustc'),
    cargo: inSysroot(sysroot, 'cargo'),
    sysroot,
    version: versionIn(verbose),
    host: /^host: (.+)$/m.exec(verbose)?.[1] ?? '',
    sdk: SDK_FOLDER,
    fingerprint,
  };
}

/** The program on the PATH is often a proxy of rustup, which costs some 20 ms a call: prefer the tool itself. */
function inSysroot(sysroot: string, tool: string): string {
  const direct = join(sysroot, 'bin', tool);
  return existsSync(direct) ? direct : tool;
}

/** Runs a tool in the folder of the SDK: rustup can select toolchains per folder. */
async function toolOutput(tool: string, args: string[]): Promise<string> {
  try {
    return (await execute(tool, args, { cwd: SDK_FOLDER })).stdout.trim();
  } catch (cause) {
    throw await toolchainError(`\`${tool} ${args.join(' ')}\` does not work`, cause);
  }
}

function versionIn(verbose: string): string {
  return verbose.split('\n')[0] ?? verbose;
}

/** @param installed e.g. `cargo 1.95.0 (f2d3ce0bd 2026-03-21)` */
async function requireVersion(installed: string): Promise<void> {
  const version = /^\w+ (\d+\.\d+\.\d+)/.exec(installed)?.[1] ?? '0';
  const isOlder = version.localeCompare(await neededVersion(), 'en', { numeric: true }) < 0;
  if (isOlder) throw await toolchainError(installed);
}

async function toolchainError(installed: string, cause?: unknown): Promise<ToolchainError> {
  return new ToolchainError(
    `Handlers are compiled with rustc and cargo ${await neededVersion()} or newer. Found: ${installed}. ` +
      'Install a current toolchain with rustup (https://rustup.rs) and put it at the front of the PATH; the packages ' +
      'of many distributions are too old.',
    { cause },
  );
}

async function neededVersion(): Promise<string> {
  const manifest = await readFile(join(SDK_FOLDER, 'Cargo.toml'), 'utf8');
  return /^rust-version = "(.+)"$/m.exec(manifest)?.[1] ?? '0';
}

/** Digest of all parts of the SDK that affect handlers. */
async function sourceDigest(folder: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of await sourceFiles(folder, '')) {
    hash.update(`${file}\0`).update(await readFile(join(folder, file)));
  }
  return hash.digest('hex');
}

const NOT_SOURCE = new Set(['target', 'tests', 'examples', 'benches']);

/** Paths of Rust sources and Cargo files, sorted, without cargo's output folder. */
async function sourceFiles(root: string, folder: string): Promise<string[]> {
  const files: string[] = [];
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !NOT_SOURCE.has(entry.name)) files.push(...(await sourceFiles(root, path)));
    else if (/\.(rs|toml|lock)$/.test(entry.name)) files.push(path);
  }
  return files.sort();
}
