/** The source of a handler: its code, and the files beside it as rustc finds them. */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { CliError } from './errors.js';
import { matchesPattern } from './generated/file-patterns.js';
import { findFiles } from './generated/source-finder.js';
import type { ProjectEndpoint } from './project.js';

/** A file as the API takes it: its text, or its bytes. */
export type FileContent = string | { readonly base64: string };

/** What is sent of a source. */
export interface Source {
  readonly code: string;
  /** The path of the code among the files; null: there are none. */
  readonly entry: string | null;
  readonly files: Readonly<Record<string, FileContent>> | null;
}

/** A source, or why there is none, and where its files are. */
export interface FoundSource {
  readonly source: Source | CliError;
  /** Folders in which a change may change it. */
  readonly folders: ReadonlySet<string>;
}

/** What cargo and npm make; hidden folders are left out, too. */
const LEFT_OUT = new Set(['target', 'node_modules']);

/** @param file edge.yaml @throws CliError that names the file and the line that are wrong */
export async function readSource(endpoint: ProjectEndpoint, file: string): Promise<Source> {
  const { source } = await findSource(endpoint, file);
  if (source instanceof CliError) throw source;
  return source;
}

/** The same, also where something is wrong. */
export async function findSource(endpoint: ProjectEndpoint, file: string): Promise<FoundSource> {
  const { handler, shown, root, include } = endpoint;
  const folder = join(dirname(file), root);
  const folders = new Set([dirname(handler)]);
  const within = root === '' ? '' : `${slashed(root)}/`;
  const failed = (message: string) => new CliError(`${file}: ${message}`, { code: 'invalid_project' });
  try {
    const entry = slashed(relative(folder, handler));
    const code = readWithin(folder, entry, `the handler ${shown}`)?.toString();
    if (code === undefined) throw failed(`the handler ${shown} cannot be read: there is no such file`);
    const found = await findFiles(entry, code, async (path) => {
      folders.add(dirname(join(folder, path)));
      return readWithin(folder, path, within + path);
    });
    const problems = found.problems.map((problem) => within + problem);
    const files = new Map(found.files);
    for (const pattern of include) {
      const matching = [...pathsBelow(folder)].filter(
        (path) => path !== entry && matchesPattern(path, pattern),
      );
      if (matching.length === 0)
        problems.push(`${file}: no file matches "${pattern}", which ${shown} includes`);
      for (const path of matching) {
        folders.add(dirname(join(folder, path)));
        const content = readWithin(folder, path, within + path);
        if (content) files.set(path, content);
      }
    }
    if (problems.length > 0) throw new CliError(problems.join('\n'), { code: 'invalid_project' });
    return { source: sourceOf(code, root === '' ? null : entry, entry, files), folders };
  } catch (thrown) {
    if (thrown instanceof CliError) return { source: thrown, folders };
    throw thrown;
  }
}

/** @param given the path of the code, where it counts also without files */
function sourceOf(
  code: string,
  given: string | null,
  entry: string,
  files: ReadonlyMap<string, Buffer>,
): Source {
  if (files.size === 0) return { code, entry: given, files: null };
  const contents = [...files].map(([path, content]) => [path, contentOf(content)] as const);
  return { code, entry, files: Object.fromEntries(contents) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A file as JSON has it. */
export function contentOf(bytes: Buffer): FileContent {
  try {
    const text = utf8.decode(bytes);
    if (!text.includes('\0')) return text;
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
  }
  return { base64: bytes.toString('base64') };
}

/**
 * A file of a folder; undefined: there is none.
 * @throws CliError for one that is elsewhere: a folder of others must not name one's own files
 */
export function readWithin(folder: string, path: string, shown: string): Buffer | undefined {
  const file = join(folder, path);
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return undefined;
  try {
    const [within] = relative(realpathSync(folder), realpathSync(file)).split(sep);
    if (within === '..') throw new Error('it is outside of the folder, or a link that leads out of it');
    return readFileSync(file);
  } catch (thrown) {
    throw new CliError(`${shown} cannot be read: ${(thrown as Error).message}`, { code: 'invalid_project' });
  }
}

/** All files in a folder and those below it, relative to it, with `/`. */
export function* pathsBelow(root: string, folder = root): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || LEFT_OUT.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* pathsBelow(root, path);
    else if (entry.isFile() || isLinkToFile(path)) yield slashed(relative(root, path));
  }
}

function isLinkToFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function slashed(path: string): string {
  return path.split(sep).join('/');
}
