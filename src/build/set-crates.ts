/**
 * The crates of one dependency set, in a CARGO_HOME of its own: what is built offline sees these, and neither the crates
 * of others nor cargo's credentials. Cargo keeps modes as it finds them in the archives; here everybody can read.
 */
import { chmod, cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Where cargo keeps what it has downloaded. */
export function cargoHome(env: Readonly<Record<string, string>>): string {
  return env['CARGO_HOME'] ?? join(env['HOME'] ?? '/', '.cargo');
}

/**
 * Copies what cargo has fetched for a lock.
 * @param home the CARGO_HOME that it was fetched to
 * @param own the folder to make
 */
export async function copyCrates(home: string, lock: string, own: string): Promise<void> {
  const crates = registryCrates(lock);
  const registries = await readdir(join(home, 'registry', 'index')).catch(() => []);
  for (const registry of registries) {
    const copy = async (...names: readonly string[]) => {
      const path = join('registry', ...names);
      await copyReadable(join(home, path), join(own, path));
    };
    await copy('index', registry, 'config.json');
    for (const { name, version } of crates) {
      await copy('index', registry, '.cache', ...indexPath(name));
      await copy('cache', registry, `${name}-${version}.crate`);
      await copy('src', registry, `${name}-${version}`);
    }
  }
  await mkdir(join(own, 'registry', 'src'), { recursive: true });
  await writeFile(join(own, 'config.toml'), await sourceConfig(home));
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

/** Copies a file or folder if it is there. */
async function copyReadable(from: string, to: string): Promise<void> {
  const status = await stat(from).catch(() => undefined);
  if (!status) return;
  await mkdir(dirname(to), { recursive: true });
  await cp(from, to, { recursive: true, preserveTimestamps: true });
  await makeReadable(to);
}

async function makeReadable(path: string): Promise<void> {
  const { mode } = await stat(path);
  // Who may read it may enter it, or run it, if its owner may.
  await chmod(path, (mode & 0o777) | 0o644 | (mode & 0o100 ? 0o111 : 0));
  if (!(await stat(path)).isDirectory()) return;
  for (const name of await readdir(path)) await makeReadable(join(path, name));
}

/** The tables `source` of cargo's configuration: where crates come from. The rest may hold credentials. */
async function sourceConfig(home: string): Promise<string> {
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
    return isSource;
  });
  return kept.map((line) => `${line}\n`).join('');
}
