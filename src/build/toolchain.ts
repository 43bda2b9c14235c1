/** Finds the Rust toolchain and the SDK, and names their combination: artifacts of another one are not reused. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

/** What compiles handlers on this machine. */
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

const SDK_FOLDER = fileURLToPath(new URL('../../../sdk', import.meta.url));

/**
 * Looks for `rustc` and `cargo` on the PATH.
 * @param profile the flags of handler builds, as they change what is built
 * @throws ToolchainError when there is none.
 */
export async function findToolchain(profile: readonly string[]): Promise<Toolchain> {
  const [verbose, sysroot, cargo] = await Promise.all([
    toolOutput('rustc', ['-vV']),
    toolOutput('rustc', ['--print', 'sysroot']),
    toolOutput('cargo', ['--version']),
  ]);
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([verbose, cargo, profile, await sourceDigest(SDK_FOLDER)]))
    .digest('hex');
  return {
    rustc: inSysroot(sysroot, 'rustc'),
    cargo: inSysroot(sysroot, 'cargo'),
    sysroot,
    version: verbose.split('\n')[0] ?? verbose,
    host: /^host: (.+)$/m.exec(verbose)?.[1] ?? '',
    sdk: SDK_FOLDER,
    fingerprint,
  };
}

/** What is on the PATH is often rustup's proxy, which costs some 20 ms a call: prefer the tool behind it. */
function inSysroot(sysroot: string, tool: string): string {
  const direct = join(sysroot, 'bin', tool);
  return existsSync(direct) ? direct : tool;
}

async function toolOutput(tool: string, args: string[]): Promise<string> {
  try {
    return (await execa(tool, args)).stdout.trim();
  } catch (cause) {
    throw new ToolchainError(
      `\`${tool} ${args.join(' ')}\` does not work. Handlers are compiled with Rust: install a toolchain ` +
        '(for example with rustup, or `apt-get install rustc cargo`) and put it on the PATH.',
      { cause },
    );
  }
}

/** Digest of everything in the SDK that ends up in a handler. */
async function sourceDigest(folder: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of await sourceFiles(folder, '')) {
    hash.update(`${file}\0`).update(await readFile(join(folder, file)));
  }
  return hash.digest('hex');
}

const NOT_SOURCE = new Set(['target', 'tests', 'examples', 'benches']);

/** Paths of Rust sources and Cargo files, sorted. Cargo's own output, which stands beside them, is not entered. */
async function sourceFiles(root: string, folder: string): Promise<string[]> {
  const files: string[] = [];
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !NOT_SOURCE.has(entry.name)) files.push(...(await sourceFiles(root, path)));
    else if (/\.(rs|toml|lock)$/.test(entry.name)) files.push(path);
  }
  return files.sort();
}
