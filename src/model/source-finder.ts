/**
 * Finds the files of a handler as rustc finds them, beginning with its code: what it names as modules or includes, what
 * these name, and so on. Where modules are: https://doc.rust-lang.org/reference/items/modules.html. The command line has
 * a copy of this file, which therefore imports nothing of ours but other copies.
 */
import { isUtf8 } from 'node:buffer';
import { posix } from 'node:path';
import { MAX_PATH_BYTES } from './file-paths.js';
import { type FileReference, fileReferences, type InlineModule, type RustFile } from './rust-references.js';

/** Reads a file of a folder by its path; undefined: there is none; or why it must not be read. */
export type ReadSourceFile = (path: string) => Promise<Buffer | { readonly problem: string } | undefined>;

/** Says what a file names. */
export type LookThrough = (path: string, code: string) => RustFile;

export interface FoundFiles {
  /** The files beside the code, by their paths. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** What is wrong, each with its place: `src/hello.rs:3: ...`. */
  readonly problems: readonly string[];
}

/** Where the modules of a file are. */
interface ModuleFolder {
  /** The folder of the file, and of modules within it that are written as blocks. */
  readonly folder: string;
  /** The folder below that, which a file that is not `mod.rs` has for its modules. */
  readonly own: string | undefined;
  /** The folder that an attribute `#![path]` in the file begins at; undefined: it does not count there. */
  readonly pathFrom: string | undefined;
}

/**
 * @param entry the path of the code
 * @param read files of the folder; it gets no path that leaves the folder
 * @param look what a file names; one that remembers it saves time where handlers share files
 */
export async function findFiles(
  entry: string,
  code: string,
  read: ReadSourceFile,
  look: LookThrough = (_, code) => fileReferences(code),
): Promise<FoundFiles> {
  const search = new Search(read, look);
  await search.file(entry, code, beside(entry).modules, [entry]);
  search.files.delete(entry);
  return search;
}

/** Nobody reads more. */
const MAX_PROBLEMS = 100;

class Search implements FoundFiles {
  readonly files = new Map<string, Buffer>();
  readonly problems: string[] = [];
  /** Files that were looked through, with the folder of their modules. */
  readonly #seen = new Set<string>();

  constructor(
    private readonly read: ReadSourceFile,
    private readonly look: LookThrough,
  ) {}

  /** @param chain the files that lead to it, and itself */
  async file(path: string, code: string, modules: ModuleFolder, chain: readonly string[]): Promise<void> {
    const visit = JSON.stringify([path, modules]);
    if (this.#seen.has(visit)) return;
    this.#seen.add(visit);
    const file = this.look(path, code);
    const its = modulesOf(file, modules);
    for (const reference of file.references) {
      if (this.problems.length >= MAX_PROBLEMS) return;
      await this.#follow(path, reference, its, chain);
    }
  }

  async #follow(
    from: string,
    reference: FileReference,
    modules: ModuleFolder,
    chain: readonly string[],
  ): Promise<void> {
    const problem = (text: string) => {
      if (!reference.isOptional)
        this.problems.push(`${from}:${reference.line}: \`${reference.written}\`: ${text}`);
    };
    const candidates = placesOf(from, reference, modules);
    if (candidates.length === 0) return problem('the folders of the modules around it have too long a path');
    const inside = candidates.filter(({ path }) => isInside(path));
    if (inside.length === 0) return problem(`${candidates[0]?.path} is outside of the folder of the project`);
    // Files of a source have such paths; rustc would look for this one.
    if (inside.some(({ path }) => path !== path.normalize('NFC')))
      return problem('a path must be in Unicode NFC: each letter composed with its accents');
    for (const { path, modules: its } of inside) {
      const content = this.files.get(path) ?? (await this.read(path));
      if (!content) continue;
      if ('problem' in content) return problem(`${path} ${content.problem}`);
      if (path !== inside.at(-1)?.path && (await this.#isThere(inside.at(-1)?.path)))
        return problem(`it is at ${path} and at ${inside.at(-1)?.path}: remove one of them`);
      if (reference.kind === 'data') {
        this.files.set(path, content);
        return;
      }
      if (chain.includes(path)) return problem(`modules in a circle: ${[...chain, path].join(' -> ')}`);
      if (!isUtf8(content)) return problem(`${path} is not UTF-8, as all Rust is: save it so`);
      this.files.set(path, content);
      return this.file(path, content.toString(), its, [...chain, path]);
    }
    // Of other files that are not there, rustc says as much.
    if (reference.kind === 'module')
      problem(`there is no ${inside.map(({ path }) => path).join(', and no ')}`);
  }

  async #isThere(path: string | undefined): Promise<boolean> {
    return path !== undefined && (this.files.has(path) || (await this.read(path)) instanceof Uint8Array);
  }
}

/** A place where a file may be. */
interface Candidate {
  readonly path: string;
  readonly modules: ModuleFolder;
}

/** Where the modules of a file are, which may say so itself. */
export function modulesOf({ path }: RustFile, modules: ModuleFolder): ModuleFolder {
  if (path === undefined || modules.pathFrom === undefined) return modules;
  return beside(joined(modules.pathFrom, path)).modules;
}

/**
 * Where a file that another one names may be; nowhere when no file has such a path.
 * @param modules where those of the other one are
 */
export function placesOf(from: string, reference: FileReference, modules: ModuleFolder): Candidate[] {
  if (reference.kind !== 'module') return [beside(joined(posix.dirname(from), reference.path))];
  const { name, path, around } = reference;
  const pathFrom = around ? folderWithin(around, modules) : modules.folder;
  if (pathFrom === undefined) return [];
  // A file that `path` names has its modules beside it, as a mod.rs has.
  if (path !== undefined) return [beside(joined(pathFrom, path))];
  const folder = around || modules.own === undefined ? pathFrom : below(pathFrom, modules.own);
  const base = below(folder, name);
  if (base.length > MAX_PATH_BYTES) return [];
  return [
    { path: `${base}.rs`, modules: { folder, own: name, pathFrom } },
    { path: `${base}/mod.rs`, modules: { folder: base, own: undefined, pathFrom } },
  ];
}

/** rustc takes modules within each other to about this depth; what is deeper is not looked for. */
const MAX_DEPTH = 128;

/** Folders of modules that are written as blocks: code may name thousands of files in one. */
const KNOWN = new WeakMap<InlineModule, { readonly of: ModuleFolder; readonly folder: string | undefined }>();

/** The folder of what such a module names; undefined where that is deeper or longer than any path. */
function folderWithin(inline: InlineModule, modules: ModuleFolder): string | undefined {
  if (inline.depth >= MAX_DEPTH) return undefined;
  const known = KNOWN.get(inline);
  if (known?.of === modules) return known.folder;
  const { around, name, path } = inline;
  const outer = around ? folderWithin(around, modules) : modules.folder;
  const isLong = outer === undefined || outer.length + (path ?? name).length > MAX_PATH_BYTES;
  const folder = isLong ? undefined : folderBelow(outer, inline, around ? undefined : modules.own);
  KNOWN.set(inline, { of: modules, folder });
  return folder;
}

function folderBelow(outer: string, { name, path }: InlineModule, own: string | undefined): string {
  if (path !== undefined) return joined(outer, path).replace(/\/$/, '');
  return below(own === undefined ? outer : below(outer, own), name);
}

/** A file with its modules beside it, as that of a handler has them. */
export function beside(path: string): Candidate {
  return { path, modules: { folder: posix.dirname(path), own: undefined, pathFrom: undefined } };
}

/** A name is no path, so that there is nothing to resolve, which takes long. */
function below(folder: string, name: string): string {
  return folder === '.' ? name : `${folder}/${name}`;
}

function joined(folder: string, path: string): string {
  return path.startsWith('/') ? path : posix.join(folder, path);
}

function isInside(path: string): boolean {
  return !path.startsWith('/') && path !== '..' && !path.startsWith('../');
}
