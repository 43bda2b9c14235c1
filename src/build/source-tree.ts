/** The files of one handler, as rustc gets them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DEFAULT_ENTRY, type Edition } from '../model/source-files.js';

export interface SourceTree {
  readonly code: string;
  /** Null: 2021. */
  readonly edition: Edition | null;
  /** The path of the code; null: `handler.rs`. */
  readonly entry: string | null;
  /** The contents of the files beside it, by their paths: relative, and within their folder. */
  readonly contents: ReadonlyMap<string, Buffer>;
}

/** The path of the code, which is also its name in diagnostics and panics. */
export function entryOf({ entry }: SourceTree): string {
  return entry ?? DEFAULT_ENTRY;
}

/** Writes all files below a new folder. Whoever may enter the folder above can read them. */
export async function writeTree(folder: string, source: SourceTree): Promise<void> {
  for (const [path, content] of [[entryOf(source), source.code] as const, ...source.contents]) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    // Never over another one: what is compiled is what the source says.
    await writeFile(file, content, { flag: 'wx' });
  }
}

/** Whether one of its files has text that matches: Rust that is included may have any name. */
export function hasText({ code, contents }: SourceTree, pattern: RegExp): boolean {
  return (
    pattern.test(code) || [...contents.values()].some((content) => pattern.test(content.toString('latin1')))
  );
}
