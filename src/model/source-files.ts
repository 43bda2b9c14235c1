/**
 * A handler's source is a tree of files: the code, which is the entry, and files beside it. What their paths may be,
 * how they are told apart, and how they travel in JSON.
 */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { AppError } from '../errors.js';
import { isText } from '../util/text.js';
import type { Dependencies } from './crates.js';
import { entryProblem, filePathProblem, isRust } from './file-paths.js';

/** The path of the code, unless the source says another. */
export const DEFAULT_ENTRY = 'handler.rs';

/** Editions of Rust that code may be written in. */
export const EDITIONS = ['2021', '2024'] as const;
export type Edition = (typeof EDITIONS)[number];
/** That of a source which does not say it. */
export const DEFAULT_EDITION: Edition = '2021';

/** A file by its content. */
export interface FileRef {
  /** sha256, in hex. */
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
}

/** The files of a source beside its code, by their paths. */
export type FileRefs = Readonly<Record<string, FileRef>>;

/** What a handler is compiled of. */
export interface HandlerSource {
  readonly code: string;
  readonly dependencies: Dependencies;
  /** Null: 2021. */
  readonly edition: Edition | null;
  /** The path of the code; null: `handler.rs`. */
  readonly entry: string | null;
  /** Null: none. */
  readonly files: FileRefs | null;
  /** The Cargo.lock of its author, to which its crates are held; null: none. */
  readonly lock: FileRef | null;
}

/** A file as JSON has it: its text, or its bytes in base64. */
export type FileContent = string | { readonly base64: string };

/** All that a handler is compiled of. */
export const SOURCE_MEMBERS = [
  'code',
  'entry',
  'files',
  'edition',
  'dependencies',
  'lock',
] as const satisfies readonly (keyof HandlerSource)[];

/** Sources with more characters than this are looked through in threads, milliseconds for each of so many. */
export const LONG_SOURCE = 32 * 1024;

/** A source without its code: where that is, and what is beside it. */
export type SourceFiles = Pick<HandlerSource, 'entry' | 'files'>;

/** What a source has beside its code and its crates. */
export type BesideCode = Omit<HandlerSource, 'code' | 'dependencies'>;

/** Of a source that is one file, and says nothing else. */
export const ONE_FILE: BesideCode = { edition: null, entry: null, files: null, lock: null };

/** Files as JSON has them, by their paths. */
export type FileContents = Readonly<Record<string, FileContent>>;

/** Files that are beside each other, as a file system sees them that ignores case. */
export class FilesTogether {
  readonly #files = new Map<string, string>();
  /** Each with a file in it. */
  readonly #folders = new Map<string, string>();

  add(path: string): void {
    const key = foldedCase(path);
    this.#files.set(key, path);
    for (const folder of foldersOf(key)) {
      if (this.#folders.has(folder)) return;
      this.#folders.set(folder, path);
    }
  }

  /** How many folders they are in, with those around these. */
  get folders(): number {
    return this.#folders.size;
  }

  /** Whether there is a file or a folder at a path. */
  has(path: string): boolean {
    const key = foldedCase(path);
    return this.#files.has(key) || this.#folders.has(key);
  }

  /** Why a file cannot be beside these; undefined: it can. */
  clashOf(path: string): string | undefined {
    const key = foldedCase(path);
    const twin = this.#files.get(key);
    if (twin !== undefined) return `"${twin}" and "${path}" are the same file where case does not count`;
    const below = this.#folders.get(key);
    if (below !== undefined) return `"${path}" is a file, and the folder of "${below}"`;
    for (const folder of foldersOf(key)) {
      const above = this.#files.get(folder);
      if (above !== undefined) return `"${above}" is a file, and the folder of "${path}"`;
      // Those around it are folders, too.
      if (this.#folders.has(folder)) return undefined;
    }
    return undefined;
  }
}

function foldedCase(path: string): string {
  return path.normalize('NFC').toLowerCase();
}

/** The folders that a path is in, the innermost first. */
function* foldersOf(path: string): Generator<string> {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) yield path.slice(0, at);
}

/** What is wrong with code and files together; undefined: nothing. */
function problemTogether(entry: string, files: readonly string[], most = Infinity): string | undefined {
  const together = new FilesTogether();
  together.add(entry);
  for (const path of files) {
    if (path === entry) return `"${path}" is the path of the code: give one of them another ("entry")`;
    const clash = together.clashOf(path);
    if (clash !== undefined) return clash;
    together.add(path);
  }
  return files.length === 0 || files.length + together.folders <= most
    ? undefined
    : `has ${files.length} files in ${together.folders} folders; at most ${most} of both are allowed (SOURCE_FILES_LIMIT)`;
}

/**
 * What is wrong with the paths of a source, after the name of the member; undefined: nothing.
 * @param most files and folders; not counted where it is left out
 */
export function sourceProblem({ entry, files }: SourceFiles, most?: number): string | undefined {
  const wrongEntry = entry === null ? undefined : entryProblem(entry);
  if (wrongEntry !== undefined) return `entry: ${wrongEntry}`;
  const problem = problemTogether(entry ?? DEFAULT_ENTRY, Object.keys(files ?? {}), most);
  return problem === undefined ? undefined : `files: ${problem}`;
}

/** The same source. @throws AppError invalid_input when its paths are wrong */
export function requireSource<S extends SourceFiles>(source: S, most?: number): S {
  const problem = sourceProblem(source, most);
  if (problem === undefined) return source;
  throw new AppError('invalid_input', `body.${problem}`);
}

/** How large the files of a source may be. */
export interface FileLimits {
  /** Of files and folders. */
  readonly files: number;
  /** Of all together. */
  readonly bytes: number;
}

/**
 * What is wrong with the files of a source, from wherever they come; undefined: nothing.
 * @param entry the path of the code
 */
export function filesProblem(
  files: ReadonlyMap<string, Uint8Array>,
  entry: string,
  limits: FileLimits,
): string | undefined {
  if (files.size === 0) return undefined;
  if (files.size > limits.files)
    return `has ${files.size} files; at most ${limits.files} are allowed (SOURCE_FILES_LIMIT)`;
  const bytes = [...files.values()].reduce((sum, { length }) => sum + length, 0);
  if (bytes > limits.bytes)
    return `has ${bytes} bytes; at most ${limits.bytes} are allowed (API_BODY_LIMIT_BYTES)`;
  for (const [path, content] of files) {
    const problem = filePathProblem(path) ?? contentProblem(path, content);
    if (problem !== undefined) return `"${path}" ${problem}`;
  }
  const problem = entryProblem(entry);
  if (problem !== undefined) return `"${entry}" ${problem}`;
  return problemTogether(entry, [...files.keys()], limits.files);
}

function contentProblem(path: string, bytes: Uint8Array): string | undefined {
  return isRust(path) && !isUtf8(bytes) ? 'must be UTF-8, as all Rust is: save it so' : undefined;
}

/** The bytes of a file. */
export function bytesOf(content: FileContent): Buffer {
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content.base64, 'base64');
}

/** A file as JSON has it. */
export function contentOf(bytes: Buffer): FileContent {
  return isText(bytes) ? bytes.toString() : { base64: bytes.toString('base64') };
}

/**
 * The files of a source, as equal sources have them: null for none, in the order of their paths.
 * @param contents gets their contents, by their digests
 */
export function fileRefs(
  files: ReadonlyMap<string, Uint8Array>,
  contents: Map<string, Uint8Array>,
): FileRefs | null {
  if (files.size === 0) return null;
  const refs = [...files].map(([path, content]): [string, FileRef] => [path, fileRef(content, contents)]);
  return Object.fromEntries(refs.sort(([left], [right]) => (left < right ? -1 : 1)));
}

/** The same of one file. */
export function fileRef(content: Uint8Array, contents: Map<string, Uint8Array>): FileRef {
  const digest = digestOf(content);
  contents.set(digest, content);
  return { digest, size: content.length };
}

/** The paths at which two sources have not the same file, in their order. */
export function changedPaths(before: FileRefs | null, after: FileRefs | null): string[] {
  const paths = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort();
  return paths.filter((path) => fileAt(before, path)?.digest !== fileAt(after, path)?.digest);
}

/** The files at some paths, as far as there are any. */
export function filesAt(files: FileRefs | null, paths: readonly string[]): FileRefs {
  return Object.fromEntries(
    paths.flatMap((path) => {
      const file = fileAt(files, path);
      return file ? [[path, file]] : [];
    }),
  );
}

/** A path may be the name of what every object has. */
export function fileAt(files: FileRefs | null, path: string): FileRef | undefined {
  return files && Object.hasOwn(files, path) ? files[path] : undefined;
}

/** Many sources have the same files. */
const DIGESTS = new WeakMap<Uint8Array, string>();

function digestOf(content: Uint8Array): string {
  const digest = DIGESTS.get(content) ?? createHash('sha256').update(content).digest('hex');
  DIGESTS.set(content, digest);
  return digest;
}

/** The one form of the edition. */
export function normalEdition(edition: Edition | null | undefined): Edition | null {
  return edition === DEFAULT_EDITION ? null : (edition ?? null);
}

/** The one form of the path of the code. */
export function normalEntry(entry: string | null | undefined): string | null {
  return entry === DEFAULT_ENTRY ? null : (entry ?? null);
}
