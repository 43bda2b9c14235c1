/**
 * Resolves and downloads the crates of a manifest: outside the sandbox, with a network, and without running any of
 * their code.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UNCONFINED } from '../sandbox/confinement.js';
import { LOCAL_FOLDER, type LocalCrates } from './local-crates.js';
import { runTool, type ToolResult, type ToolRun } from './run-tool.js';
import type { Toolchain } from './toolchain.js';

/** How crates are downloaded. */
export interface DownloadOptions extends Pick<ToolRun, 'env' | 'limits' | 'signal'> {
  readonly toolchain: Toolchain;
}

/** A manifest, the lock that cargo begins with, and the crates to which paths lead. */
export interface Project {
  readonly manifest: string;
  readonly lock: string;
  readonly local: LocalCrates | undefined;
}

/** The lock with all crates of the manifest, or what cargo says. */
export type Downloaded =
  | { readonly ok: true; readonly lock: string }
  | { readonly ok: false; readonly result: ToolResult };

/**
 * Cargo changes as little of the lock as the manifest needs.
 * @param folder an empty one
 */
export async function downloadCrates(
  folder: string,
  project: Project,
  { toolchain, env, ...others }: DownloadOptions,
): Promise<Downloaded> {
  await writeProject(folder, project);
  const result = await runTool({
    ...others,
    confinement: UNCONFINED,
    file: toolchain.cargo,
    // Without the target, cargo would download the crates of all other platforms.
    args: ['fetch', `--target=${toolchain.host}`],
    cwd: folder,
    env: { ...env, CARGO_TERM_COLOR: 'never', RUSTC: toolchain.rustc },
    writable: [],
  });
  if (result.outcome !== 'exited' || result.exitCode !== 0) return { ok: false, result };
  return { ok: true, lock: await readFile(join(folder, 'Cargo.lock'), 'utf8') };
}

/** Writes a package whose dependencies are all that matters. */
export async function writeProject(folder: string, { manifest, lock, local }: Project): Promise<void> {
  await mkdir(join(folder, 'src'));
  await writeFile(join(folder, 'Cargo.toml'), manifest);
  await writeFile(join(folder, 'Cargo.lock'), lock);
  await writeFile(join(folder, 'src', 'main.rs'), 'fn main() {}\n');
  for (const [path, content] of local?.files ?? []) {
    const file = join(folder, LOCAL_FOLDER, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content, { flag: 'wx' });
  }
}
