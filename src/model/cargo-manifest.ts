/**
 * Reads the files Cargo.toml of a folder as cargo does: the packages of handlers, and the workspaces they are in. The
 * command line has a copy of this file, which therefore imports nothing of ours but other copies.
 */
import { posix } from 'node:path';
import type { ReadSourceFile } from './source-finder.js';

export type TomlTable = Readonly<Record<string, unknown>>;

/** Reads TOML. @throws Error with `line` for what is none */
export type ParseToml = (text: string) => TomlTable;

/** One that reads the same text once: many handlers are in one package. */
export function remembering(parse: ParseToml): ParseToml {
  const known = new Map<string, TomlTable>();
  return (text) => {
    const table = known.get(text) ?? parse(text);
    known.set(text, table);
    return table;
  };
}

/** Something in a folder that cannot be done as it is written: `Cargo.toml: dependencies.x: ...`. */
export class CargoProblem extends Error {
  override readonly name = 'CargoProblem';
}

export interface Manifest {
  /** Its path in the folder. */
  readonly path: string;
  /** The folder that it is in: empty, or with `/` at its end. */
  readonly folder: string;
  readonly table: TomlTable;
}

export const MANIFEST = 'Cargo.toml';
/** Where cargo finds names of registries. */
const CONFIG_FILES = ['.cargo/config.toml', '.cargo/config'];

/** The manifests of a folder. */
export class Manifests {
  /** Paths that were read, or looked for: a change of one may change what was read. */
  readonly paths = new Set<string>();
  readonly #tables = new Map<string, TomlTable | undefined>();

  constructor(
    private readonly read: ReadSourceFile,
    private readonly parseToml: ParseToml,
  ) {}

  /** The manifest in a folder. @throws CargoProblem */
  async in(folder: string): Promise<Manifest | undefined> {
    const path = `${folder}${MANIFEST}`;
    const table = await this.#table(path);
    return table && { path, folder, table };
  }

  /** The nearest manifest of a package, in the folder itself or above it. @throws CargoProblem */
  async package(folder: string): Promise<Manifest | undefined> {
    for (const one of foldersUp(folder)) {
      const manifest = await this.in(one);
      if (manifest && isTable(manifest.table['package'])) return manifest;
    }
    return undefined;
  }

  /** The root of the workspace that a package is in, which may be itself. @throws CargoProblem */
  async workspace(manifest: Manifest): Promise<Manifest | undefined> {
    const { table, folder, path } = manifest;
    if (isTable(table['workspace'])) return manifest;
    const named = tableIn(table, 'package')['workspace'];
    if (typeof named === 'string') {
      const root = joinedFolder(folder, named);
      const found = root === undefined ? undefined : await this.in(root);
      if (found) return found;
      throw new CargoProblem(`${path}: package.workspace: there is no ${named}/${MANIFEST} in the project`);
    }
    for (const above of foldersUp(folder).slice(1)) {
      const found = await this.in(above);
      const workspace = found?.table['workspace'];
      if (!found || !isTable(workspace)) continue;
      const { exclude } = workspace;
      const isExcluded = Array.isArray(exclude) && exclude.some((one) => isBelow(folder, above, String(one)));
      if (!isExcluded) return found;
    }
    return undefined;
  }

  /** The text of a file; undefined: there is none. @throws CargoProblem */
  async text(path: string): Promise<string | undefined> {
    this.paths.add(path);
    const content = await this.read(path);
    if (content === undefined) return undefined;
    if ('problem' in content) throw new CargoProblem(`${path} ${content.problem}`);
    return content.toString();
  }

  /** The address of the index of a registry, by its name. @throws CargoProblem */
  async registry(name: string, folder: string): Promise<string | undefined> {
    for (const above of foldersUp(folder))
      for (const file of CONFIG_FILES) {
        const config = await this.#table(`${above}${file}`);
        const { index } = tableIn(tableIn(config ?? {}, 'registries'), name);
        if (typeof index === 'string') return index;
      }
    return undefined;
  }

  async #table(path: string): Promise<TomlTable | undefined> {
    if (!this.#tables.has(path)) {
      const text = await this.text(path);
      this.#tables.set(path, text === undefined ? undefined : this.#parsed(path, text));
    }
    return this.#tables.get(path);
  }

  #parsed(path: string, text: string): TomlTable {
    try {
      return this.parseToml(text);
    } catch (thrown) {
      const { line, message } = thrown as Error & { readonly line?: number };
      const [what = message] = message.split('\n');
      throw new CargoProblem(`${path}${line === undefined ? '' : `:${line}`}: is not valid TOML: ${what}`);
    }
  }
}

/** A folder, and all above it in the project, the nearest first. */
function foldersUp(folder: string): string[] {
  const names = folder.split('/').filter((name) => name !== '');
  return Array.from({ length: names.length + 1 }, (_, at) =>
    names
      .slice(0, names.length - at)
      .map((name) => `${name}/`)
      .join(''),
  );
}

/** A folder of the project by its path in another one; undefined: it is outside of the project. */
export function joinedFolder(folder: string, path: string): string | undefined {
  if (posix.isAbsolute(path) || path.includes('\\')) return undefined;
  const joined = posix.normalize(`${folder}${path}/`);
  if (joined === './') return '';
  return joined === '../' || joined.startsWith('../') ? undefined : joined;
}

function isBelow(folder: string, root: string, path: string): boolean {
  const excluded = joinedFolder(root, path);
  return excluded !== undefined && folder.startsWith(excluded);
}

export function isTable(value: unknown): value is TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** A table of another one; an empty one where there is none. */
export function tableIn(table: TomlTable, name: string): TomlTable {
  const value = Object.hasOwn(table, name) ? table[name] : undefined;
  return isTable(value) ? value : {};
}
