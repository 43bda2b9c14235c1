/** Reads the files of a folder that sources have, each once, however many sources have it. */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { type ParseToml, remembering } from './generated/cargo-manifest.js';
import { canMatchBelow } from './generated/file-patterns.js';
import { fileReferences, type RustFile } from './generated/rust-references.js';

/** The content of a file; undefined: there is none; or why it cannot be read. */
export type FileRead = Buffer | { readonly problem: string } | undefined;

/** Why a file is not sent: a folder of others must not name one's own files. */
const ELSEWHERE = 'cannot be read: it is outside of the folder, or a link that leads out of it';
/** Why a file is not sent that has to be there. */
export const NOT_THERE = { problem: 'cannot be read: there is no such file' };
/** What says that there is no such file, whatever the name is. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ERR_INVALID_ARG_VALUE']);
/** What cargo and npm make; hidden folders are left out, too. */
const LEFT_OUT = new Set(['target', 'node_modules']);

/** What is in a folder and below it; paths are relative to it, with `/`. */
export interface FolderPaths {
  readonly files: readonly string[];
  /** Folders that were looked into, as the system has them. */
  readonly folders: readonly string[];
  /** Links to folders, which are not followed: they may lead in a circle. */
  readonly links: readonly string[];
  /** Folders that cannot be read, with the reason. */
  readonly problems: readonly string[];
}

/** What was read at one time: nothing is read twice. */
export class SourceReads {
  readonly #files = new Map<string, FileRead>();
  readonly #rust = new Map<string, RustFile>();
  readonly #paths = new Map<string, FolderPaths>();
  #parseToml: Promise<ParseToml> | undefined;

  /** @param target the target triple of handlers */
  constructor(readonly target: () => Promise<string>) {}

  /** Reads TOML. */
  parseToml(): Promise<ParseToml> {
    this.#parseToml ??= import('smol-toml').then(({ parse }) => remembering(parse));
    return this.#parseToml;
  }

  /** A file of a folder. */
  file(folder: string, path: string): FileRead {
    return once(this.#files, JSON.stringify([folder, path]), () => readWithin(folder, path));
  }

  /** What a file of Rust names. */
  readonly rust = (_: string, code: string): RustFile => once(this.#rust, code, () => fileReferences(code));

  /** Paths that patterns may mean; without patterns, all. */
  paths(folder: string, patterns?: readonly string[]): FolderPaths {
    return once(this.#paths, JSON.stringify([folder, patterns]), () => pathsBelow(folder, patterns));
  }
}

function once<T>(known: Map<string, T>, key: string, make: () => T): T {
  const found = known.get(key);
  if (found !== undefined || known.has(key)) return found as T;
  const made = make();
  known.set(key, made);
  return made;
}

/** A file of a folder, which does not lead out of it. */
export function readWithin(folder: string, path: string): FileRead {
  const file = join(folder, path);
  try {
    if (!statSync(file).isFile()) return undefined;
    const [within] = relative(realpathSync(folder), realpathSync(file)).split(sep);
    return within === '..' ? { problem: ELSEWHERE } : readFileSync(file);
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    return ABSENT.has(code ?? '') ? undefined : { problem: `cannot be read: ${message}` };
  }
}

/**
 * All files in a folder and those below it, without hidden folders, and those of cargo and npm.
 * @param patterns only what they may mean is looked for; they also name what is left out otherwise
 */
export function pathsBelow(root: string, patterns?: readonly string[]): FolderPaths {
  const found = { files: [], folders: [], links: [], problems: [] } as Record<keyof FolderPaths, string[]>;
  const isNamed = (path: string) =>
    patterns?.some((one) => one === path || one.startsWith(`${path}/`) || path.startsWith(`${one}/`));
  const look = (folder: string, within: string) => {
    found.folders.push(folder);
    for (const entry of entriesOf(folder, found.problems)) {
      const path = `${within}${entry.name}`;
      if ((entry.name.startsWith('.') || LEFT_OUT.has(entry.name)) && !isNamed(path)) continue;
      if (entry.isDirectory()) {
        const isWanted = patterns?.some((pattern) => canMatchBelow(path, pattern)) ?? true;
        if (isWanted) look(join(folder, entry.name), `${path}/`);
      } else if (entry.isSymbolicLink() && isFolder(join(folder, entry.name))) found.links.push(path);
      else if (entry.isFile() || entry.isSymbolicLink()) found.files.push(path);
    }
  };
  look(root, '');
  return found;
}

function entriesOf(folder: string, problems: string[]) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    // It may have been removed since its name was read.
    if (!ABSENT.has(code ?? '')) problems.push(`a folder cannot be read: ${message}`);
    return [];
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // reading it says why
  }
}
