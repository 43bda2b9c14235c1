/** What the files of a source name of each other, without a folder that they are in. */
import { findFiles } from './source-finder.js';

/** A source with the contents of its files. */
export interface SourceWithContents {
  readonly code: string;
  readonly entry: string;
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

/** Paths of files. */
export interface NamedFiles {
  /** Files of the source that it names. */
  readonly found: ReadonlySet<string>;
  /** What it would find if it were there. */
  readonly absent: ReadonlySet<string>;
}

export async function namedFiles({ code, entry, contents }: SourceWithContents): Promise<NamedFiles> {
  const absent = new Set<string>();
  const { files } = await findFiles(entry, code, async (path) => {
    const content = contents.get(path);
    if (content) return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    absent.add(path);
    return undefined;
  });
  return { found: new Set(files.keys()), absent };
}
