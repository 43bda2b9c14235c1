/** Which files of Rust of a bundle may be handlers, by where they are. No I/O. */
import type { ArchiveFile } from './archive.js';

export interface HandlerFile extends ArchiveFile {
  /** File name without folder and `.rs`; unique. */
  readonly base: string;
}

export interface HandlerFiles {
  readonly handlers: readonly HandlerFile[];
  /** Why other files of Rust are not read, by their paths, unless handlers have them as modules. */
  readonly unread: ReadonlyMap<string, string>;
}

/** Folders of handlers, by priority for handlers with the same base name. */
const HANDLER_FOLDERS: readonly string[] = ['handlers/', '', 'src/'];
const HANDLER_SUFFIX = '.rs';

export function handlerFiles(sources: readonly ArchiveFile[]): HandlerFiles {
  const folders = handlerFolders(sources);
  const handlers = new Map<string, HandlerFile>();
  const unread = new Map<string, string>();
  for (const folder of folders) {
    for (const file of sources.filter(({ path }) => folderOf(path) === folder)) {
      const base = baseOf(file);
      const earlier = handlers.get(base);
      if (earlier) unread.set(file.path, `${earlier.path} has the same name and takes precedence`);
      else handlers.set(base, { ...file, base });
    }
  }
  for (const { path } of sources)
    if (!folders.includes(folderOf(path)))
      unread.set(path, 'handlers must be in handlers/, in src/ or at the root, or all in one folder');
  return { handlers: [...handlers.values()], unread };
}

/** The name of a file of Rust without folder and `.rs`. */
export function baseOf({ path }: ArchiveFile): string {
  return path.slice(folderOf(path).length, -HANDLER_SUFFIX.length);
}

/** The known folders; where these have no handlers, the only one that has, besides those in it. */
function handlerFolders(sources: readonly ArchiveFile[]): readonly string[] {
  const folders = [...new Set(sources.map(({ path }) => folderOf(path)))];
  const [folder, ...others] = folders.sort((left, right) => left.length - right.length);
  const isOnly = folder !== undefined && others.every((other) => other.startsWith(folder));
  return isOnly && !HANDLER_FOLDERS.includes(folder) ? [folder] : HANDLER_FOLDERS;
}

/** The folder of a path, with a trailing slash; empty for the root. */
function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}
