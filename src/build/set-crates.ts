/**
 * The crates of one dependency set, in a CARGO_HOME of its own: what is built offline sees these, and neither the crates
 * of others nor cargo's credentials. Cargo keeps modes as it finds them in the archives; here everybody can read.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { withLocalSources } from './local-sources.js';

const run = promisify(execFile);

/** Where cargo keeps what it has downloaded. */
export function cargoHome(env: Readonly<Record<string, string>>): string {
  return env['CARGO_HOME'] ?? join(env['HOME'] ?? '/', '.cargo');
}

/**
 * Copies what cargo has fetched for a lock.
 * @param home the CARGO_HOME that it was fetched to
 * @param own the folder to fill
 * @param inside how folders of this machine are called where it is used
 */
export async function copyCrates(
  home: string,
  lock: string,
  own: string,
  inside: (path: string) => string,
): Promise<void> {
  const crates = registryCrates(lock);
  const [from, to] = [join(home, 'registry'), join(own, 'registry')];
  await mkdir(join(to, 'src'), { recursive: true });
  for (const registry of await readdir(join(from, 'index')).catch(() => [])) {
    const index = crates.map(({ name }) => join('.cache', ...indexPath(name)));
    for (const file of ['config.json', ...index]) {
      const path = join('index', registry, file);
      if (!existsSync(join(from, path))) continue;
      await mkdir(dirname(join(to, path)), { recursive: true });
      await copyFile(join(from, path), join(to, path));
    }
    const named = crates.map(({ name, version }) => `${name}-${version}`);
    await copyAll(
      join(from, 'cache', registry),
      named.map((name) => `${name}.crate`),
      join(to, 'cache', registry),
    );
    await copyAll(join(from, 'src', registry), named, join(to, 'src', registry));
  }
  await writeFile(join(own, 'config.toml'), withLocalSources(await sourceConfig(home), home, inside));
  await run('chmod', ['-R', 'a+rX,u+w', '--', own]);
}

/** Copies those files and folders of a folder that are there. A program does it, as there are thousands. */
async function copyAll(from: string, names: readonly string[], to: string): Promise<void> {
  const present = names.map((name) => join(from, name)).filter((path) => existsSync(path));
  if (present.length === 0) return;
  await mkdir(to, { recursive: true });
  await run('cp', ['-Rp', '--', ...present, to]);
}

/** The packages of a Cargo.lock that come from a registry. */
export function registryCrates(lock: string): { readonly name: string; readonly version: string }[] {
  return lock
    .split('[[package]]')
    .slice(1)
    .filter((entry) => /^source = "(registry|sparse)\+/m.test(entry))
    .flatMap((entry) => {
      const name = /^name = "([\w-]+)"/m.exec(entry)?.[1];
      const version = /^version = "([\w.+-]+)"/m.exec(entry)?.[1];
      return name !== undefined && version !== undefined ? { name, version } : [];
    });
}

/** As registries lay out their index: https://doc.rust-lang.org/cargo/reference/registry-index.html */
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
