/**
 * Places the sources of an export in its folder: those of several files, whose paths are relative to one folder.
 * Sources that can be beside each other share one, and the files that they have in common.
 */
import { type NamedFiles, namedFiles, type SourceWithContents } from '../../model/named-files.js';
import { type FileRefs, FilesTogether, LONG_SOURCE } from '../../model/source-files.js';
import { readSourceFiles } from '../../store/source-files.js';
import type { ApiDependencies } from '../api-dependencies.js';

/** What is known of sources besides; keeps the contents that it has read. */
export interface SourceReader {
  /** The contents of the files of one. */
  contentsOf(files: FileRefs | null): Promise<ReadonlyMap<string, Uint8Array>>;
  /** What one names. */
  named(source: SourceWithContents): Promise<NamedFiles>;
}

export function sourceReader(
  { store, threads }: Pick<ApiDependencies, 'store' | 'threads'>,
  owner: string,
): SourceReader {
  const known = new Map<string, Buffer>();
  return {
    contentsOf: (files) => readSourceFiles(store, files, known),
    named: (source) => {
      const sizes = [...source.contents.values()].map(({ length }) => length);
      const isLong = sizes.reduce((sum, size) => sum + size, source.code.length) > LONG_SOURCE;
      return isLong ? threads.run(owner, 'namedFiles', source) : namedFiles(source);
    },
  };
}

/** Where a source is, as `edge.yaml` says it. */
export interface PlacedSource {
  readonly handler: string;
  /** Empty: the folder of the export. */
  readonly root: string;
  /** Files that the code does not name. */
  readonly include: readonly string[];
}

/** A folder with sources. */
interface Tree {
  readonly root: string;
  readonly files: Map<string, string | Uint8Array>;
  /** The same files. */
  readonly together: FilesTogether;
  /** What sources would find if it were there, and that is not theirs. */
  readonly absent: Set<string>;
}

export class SourceTrees {
  readonly #trees: Tree[];

  /** @param used paths in the folder of the export that have other files */
  constructor(
    used: Iterable<string>,
    private readonly sources: Pick<SourceReader, 'named'>,
  ) {
    const tree = newTree('');
    for (const path of used) addTo(tree, path, OTHER);
    this.#trees = [tree];
  }

  async place(source: SourceWithContents): Promise<PlacedSource> {
    const { code, entry, contents } = source;
    const { found, absent } = await this.sources.named(source);
    const files = new Map<string, string | Uint8Array>([[entry, code], ...contents]);
    const canBeIn = (one: Tree) =>
      canHave(one, files, absent, contents.size === 0) &&
      (one.root !== '' || !this.#trees.some(({ root }) => isWithin(root, files.keys())));
    const tree = this.#trees.find(canBeIn) ?? this.#added();
    for (const [path, content] of files) addTo(tree, path, content);
    for (const path of absent) tree.absent.add(path);
    const within = tree.root === '' ? '' : `${tree.root}/`;
    return {
      handler: within + entry,
      root: tree.root,
      include: [...contents.keys()].filter((path) => !found.has(path)),
    };
  }

  /** All files of the sources that were placed, by their paths. */
  *files(): Generator<readonly [string, string | Uint8Array]> {
    for (const { root, files } of this.#trees)
      for (const [path, content] of files)
        if (content !== OTHER) yield [root === '' ? path : `${root}/${path}`, content];
  }

  #added(): Tree {
    const [top] = this.#trees;
    let number = this.#trees.length + 1;
    while (top?.together.has(`sources-${number}`)) number++;
    const tree = newTree(`sources-${number}`);
    this.#trees.push(tree);
    return tree;
  }
}

/** Whether some paths are in a folder, or are its own; not for the folder of the export. */
function isWithin(root: string, paths: Iterable<string>): boolean {
  if (root === '') return false;
  for (const path of paths) if (path.split('/', 1)[0]?.toLowerCase() === root) return true;
  return false;
}

/** What an apply reads as a description of the installation. */
const DESCRIBES = /^edge(?:\/|\.[^/]*yaml$)/;
/** The content of files that are of no source. */
const OTHER = Buffer.alloc(0);

function newTree(root: string): Tree {
  return { root, files: new Map(), together: new FilesTogether(), absent: new Set() };
}

function addTo({ files, together }: Tree, path: string, content: string | Uint8Array): void {
  files.set(path, content);
  together.add(path);
}

/** @param isOneFile whether only a root of its own says what its path is relative to */
function canHave(
  { root, files, together, absent }: Tree,
  added: ReadonlyMap<string, string | Uint8Array>,
  addedAbsent: ReadonlySet<string>,
  isOneFile: boolean,
): boolean {
  if (root === '' && (isOneFile || [...added.keys()].some((path) => DESCRIBES.test(path)))) return false;
  for (const [path, content] of added) {
    if (absent.has(path)) return false;
    const known = files.get(path);
    if (known === OTHER) return false;
    if (known === undefined ? together.clashOf(path) !== undefined : !isSame(known, content)) return false;
  }
  return ![...addedAbsent].some((path) => files.has(path));
}

/** Code is text; it may also be a file beside other code. */
function isSame(left: string | Uint8Array, right: string | Uint8Array): boolean {
  if (left === right) return true;
  if (typeof left === 'string' && typeof right === 'string') return false;
  return Buffer.from(left).equals(Buffer.from(right));
}
