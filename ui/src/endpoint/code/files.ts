/** The files of a source: read, written, and moved. The code is one of them. */
import { entryProblem, filePathProblem, isRust } from '../../generated/file-paths.js';
import { type FileContent, fileOf, type Source } from './source.js';

/** The paths of all files. */
export function pathsOf({ entry, files }: Source): readonly string[] {
  return [entry, ...Object.keys(files)];
}

export function contentAt({ code, entry, files }: Source, path: string): FileContent | undefined {
  return path === entry ? code : fileOf(files, path);
}

/** The text of a file, with LF at the ends of lines; undefined where there is no such file, or no text in it. */
export function textAt(source: Source, path: string): string | undefined {
  const content = contentAt(source, path);
  return typeof content === 'string' ? withLineFeeds(content) : undefined;
}

/** The source with another text of a file. A file that had CRLF keeps it: what includes it would change. */
export function withText(source: Source, path: string, text: string): Source {
  const before = contentAt(source, path);
  if (typeof before !== 'string' || withLineFeeds(before) === text) return source;
  return withFile(source, path, before.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text);
}

export function withFile(source: Source, path: string, content: FileContent): Source {
  if (path !== source.entry) return { ...source, files: { ...source.files, [path]: content } };
  return typeof content === 'string' ? { ...source, code: content } : source;
}

export function withoutFile(source: Source, path: string): Source {
  return { ...source, files: without(source.files, path) };
}

export function withRenamed(source: Source, from: string, to: string): Source {
  if (from === source.entry) return { ...source, entry: to };
  const content = fileOf(source.files, from);
  return content === undefined ? source : withFile(withoutFile(source, from), to, content);
}

function without<T>(members: Readonly<Record<string, T>>, name: string): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(members).filter(([other]) => other !== name));
}

function withLineFeeds(text: string): string {
  return text.replace(/\r\n?/g, '\n');
}

/**
 * What is wrong with the path of a file, as the API would say it; undefined: nothing.
 * @param others paths of the other files
 * @param isEntry whether it is the path of the code
 */
export function pathProblem(path: string, others: readonly string[], isEntry = false): string | undefined {
  return (isEntry ? entryProblem(path) : filePathProblem(path)) ?? clashProblem(path, others);
}

/** As a file system sees it that ignores case. */
function clashProblem(path: string, others: readonly string[]): string | undefined {
  const key = foldedCase(path);
  for (const other of others) {
    const otherKey = foldedCase(other);
    if (other === path) return 'is the path of another file';
    if (otherKey === key) return `is the same file as "${other}" where case does not count`;
    if (otherKey.startsWith(`${key}/`)) return `is the folder of "${other}"`;
    if (key.startsWith(`${otherKey}/`)) return `is in "${other}", which is a file`;
  }
  return undefined;
}

function foldedCase(path: string): string {
  return path.normalize('NFC').toLowerCase();
}

/** What is wrong with the content of a file, as the API would say it; undefined: nothing. */
export function contentProblem(path: string, content: FileContent): string | undefined {
  const isText = typeof content === 'string';
  return isRust(path) && !isText ? 'must be UTF-8, as all Rust is: save it so' : undefined;
}

/** A folder, with what is in it in the order of names. */
export interface Folder {
  readonly name: string;
  readonly folders: readonly Folder[];
  /** Paths of its files. */
  readonly files: readonly string[];
}

/** @param name of the folder that all paths are in. @param depth how many names lead to it */
export function folderOf(paths: readonly string[], name = '', depth = 0): Folder {
  const files: string[] = [];
  const folders = new Map<string, string[]>();
  for (const path of [...paths].sort()) {
    const names = path.split('/');
    const [first = ''] = names.slice(depth);
    if (names.length === depth + 1) files.push(path);
    else folders.set(first, [...(folders.get(first) ?? []), path]);
  }
  return { name, files, folders: [...folders].map(([inner, below]) => folderOf(below, inner, depth + 1)) };
}

/** The name of a file in its folder. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
