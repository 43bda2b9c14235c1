/**
 * Finds the files of a handler as rustc finds them, beginning with its code: what it names as modules or includes, what
 * these name, and so on. Where modules are: https://doc.rust-lang.org/reference/items/modules.html. The command line has
 * a copy of this file, which therefore imports nothing of ours but the other copy.
 */
import { isUtf8 } from 'node:buffer';
import { posix } from 'node:path';
import { type FileReference, fileReferences } from './rust-references.js';

/** Reads a file of a folder by its path; undefined: there is none; or why it must not be read. */
export type ReadSourceFile = (path: string) => Promise<Buffer | { readonly problem: string } | undefined>;

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
}

/**
 * @param entry the path of the code
 * @param read files of the folder; it gets no path that leaves the folder
 * @param references what code names: who looks through many sources may keep it
 */
export async function findFiles(
  entry: string,
  code: string,
  read: ReadSourceFile,
  references: typeof fileReferences = fileReferences,
): Promise<FoundFiles> {
  const search = new Search(read, references);
  await search.file(entry, code, { folder: posix.dirname(entry), own: undefined }, [entry]);
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
    private readonly references: typeof fileReferences,
  ) {}

  /** @param chain the files that lead to it, and itself */
  async file(path: string, code: string, modules: ModuleFolder, chain: readonly string[]): Promise<void> {
    const visit = JSON.stringify([path, modules]);
    if (this.#seen.has(visit)) return;
    this.#seen.add(visit);
    for (const reference of this.references(code)) {
      if (this.problems.length >= MAX_PROBLEMS) return;
      await this.#follow(path, reference, modules, chain);
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
    const candidates =
      reference.kind === 'module' ? placesOf(reference, modules) : [included(from, reference.path)];
    const inside = candidates.filter(({ path }) => isInside(path));
    if (inside.length === 0) return problem(`${candidates[0]?.path} is outside of the folder of the project`);
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

interface Candidate {
  readonly path: string;
  readonly modules: ModuleFolder;
}

/** Where a module may be. */
function placesOf(
  { name, path, within }: Extract<FileReference, { kind: 'module' }>,
  modules: ModuleFolder,
): Candidate[] {
  let { folder, own } = modules;
  for (const inline of within) {
    if (inline.path !== undefined) {
      folder = posix.join(folder, inline.path);
      own = undefined;
      continue;
    }
    folder = posix.join(folder, own ?? '', inline.name);
    own = undefined;
  }
  // A file that `path` names has its modules beside it, as a mod.rs has.
  if (path !== undefined) return [beside(joined(folder, path))];
  const base = posix.join(folder, own ?? '', name);
  const file = { path: `${base}.rs`, modules: { folder: posix.dirname(base), own: name } };
  return [file, beside(posix.join(base, 'mod.rs'))];
}

function included(from: string, path: string): Candidate {
  return beside(joined(posix.dirname(from), path));
}

function beside(path: string): Candidate {
  return { path, modules: { folder: posix.dirname(path), own: undefined } };
}

function joined(folder: string, path: string): string {
  return path.startsWith('/') ? path : posix.join(folder, path);
}

function isInside(path: string): boolean {
  return !path.startsWith('/') && path !== '..' && !path.startsWith('../');
}
