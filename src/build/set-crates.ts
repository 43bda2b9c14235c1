/**
 * The crates of one dependency set, in a CARGO_HOME of its own: an offline build sees these, but neither other crates
 * nor cargo's credentials. Cargo keeps the file modes of the archives; here all files are made readable.
 */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type LockedPackage, lockedPackages } from '../model/cargo-lock.js';
import { UNCONFINED } from '../sandbox/confinement.js';
import { DiskFullError, reportsDiskFull } from '../util/disk-full.js';
import { gitFolders } from './git-crates.js';
import { withLocalSources } from './local-sources.js';
import { runTool, type ToolResult, type ToolRun } from './run-tool.js';

/** Options of the copy tools; `env` also locates CARGO_HOME. */
export type CopyOptions = Pick<ToolRun, 'env' | 'limits' | 'signal'>;

/** The folder of cargo's downloads. */
export function cargoHome(env: Readonly<Record<string, string>>): string {
  return env['CARGO_HOME'] ?? join(env['HOME'] ?? '/', '.cargo');
}

/**
 * Copies the crates of a lockfile that cargo has downloaded.
 * @returns the tool that was aborted, if any
 * @param own the folder to fill
 * @param inside maps paths of this machine to those the build sees
 */
export async function copyCrates(
  lock: string,
  own: string,
  inside: (path: string) => string,
  options: CopyOptions,
): Promise<ToolResult | undefined> {
  const home = cargoHome(options.env);
  const crates = registryCrates(lock);
  const [from, to] = [join(home, 'registry'), join(own, 'registry')];
  await mkdir(join(to, 'src'), { recursive: true });
  const copyAll = async (folder: string, names: readonly string[]): Promise<ToolResult | undefined> => {
    const present = names.map((name) => join(from, folder, name)).filter((path) => existsSync(path));
    if (present.length === 0) return undefined;
    await mkdir(join(to, folder), { recursive: true });
    return runSystemTool('cp', ['-Rp', '--', ...present, join(to, folder)], options);
  };
  for (const registry of await readdir(join(from, 'index')).catch(() => [])) {
    const index = crates.map(({ name }) => join('.cache', ...indexPath(name)));
    for (const file of ['config.json', ...index]) {
      const path = join('index', registry, file);
      if (!existsSync(join(from, path))) continue;
      await mkdir(dirname(join(to, path)), { recursive: true });
      await copyFile(join(from, path), join(to, path));
    }
    const named = crates.map(({ name, version }) => `${name}-${version}`);
    const packed = named.map((name) => `${name}.crate`);
    const failed =
      (await copyAll(join('cache', registry), packed)) ?? (await copyAll(join('src', registry), named));
    if (failed) return failed;
  }
  for (const folder of await gitFolders(lock, home)) {
    const to = dirname(join(own, 'git', folder));
    await mkdir(to, { recursive: true });
    const failed = await runSystemTool('cp', ['-Rp', '--', join(home, 'git', folder), to], options);
    if (failed) return failed;
  }
  await writeFile(join(own, 'config.toml'), withLocalSources(await sourceConfig(home), home, inside));
  return runSystemTool('chmod', ['-R', 'a+rX,u+w', '--', own], options);
}

/**
 * Runs a system tool on thousands of files at once, within the limits of all tools.
 * @returns its result if it was aborted
 * @throws Error with its output if it failed; DiskFullError if the disk is full
 */
export async function runSystemTool(
  file: string,
  args: readonly string[],
  options: CopyOptions,
): Promise<ToolResult | undefined> {
  const env = { ...options.env, LC_ALL: 'C' };
  const result = await runTool({
    ...options,
    env,
    confinement: UNCONFINED,
    file,
    args,
    cwd: '/',
    writable: [],
  });
  if (result.outcome !== 'exited') return result;
  if (result.exitCode === 0) return undefined;
  const problem = `crates cannot be copied: ${file}: ${result.stderr.trim()}`;
  throw result.diskMayBeFull && reportsDiskFull(result.stderr)
    ? new DiskFullError(problem)
    : new Error(problem);
}

/** The packages of a Cargo.lock that come from a registry. */
export function registryCrates(lock: string): Pick<LockedPackage, 'name' | 'version'>[] {
  return lockedPackages(lock)
    .filter(({ name, version, source }) => {
      // They become names of files.
      const isPlain = /^[\w-]+$/.test(name) && /^[\w.+-]+$/.test(version);
      return isPlain && /^(registry|sparse)\+/.test(source ?? '');
    })
    .map(({ name, version }) => ({ name, version }));
}

/**
 * The path of a crate in an index, as registries lay it out:
 * https://doc.rust-lang.org/cargo/reference/registry-index.html
 */
function indexPath(crate: string): string[] {
  const name = crate.toLowerCase();
  if (name.length <= 2) return [String(name.length), name];
  if (name.length === 3) return ['3', name.slice(0, 1), name];
  return [name.slice(0, 2), name.slice(2, 4), name];
}

/** The tables `source` of cargo's configuration: where crates come from. The rest may hold credentials. */
export async function sourceConfig(home: string): Promise<string> {
  for (const name of ['config.toml', 'config']) {
    const text = await readFile(join(home, name), 'utf8').catch(() => undefined);
    if (text !== undefined) return onlySources(text);
  }
  return '';
}

/** Lines of a TOML document that belong to tables of `source`. */
export function onlySources(toml: string): string {
  let isSource = false;
  const kept = toml.split('\n').filter((line) => {
    if (/^\s*\[/.test(line)) isSource = /^\s*\[\s*source\s*[.\]]/.test(line);
    return isSource && line.trim() !== '';
  });
  return kept.map((line) => `${line}\n`).join('');
}
