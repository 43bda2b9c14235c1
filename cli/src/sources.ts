/** The source of a handler: its code, and the files beside it as rustc finds them. */
import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { CliError } from './errors.js';
import { matchingPaths } from './generated/file-patterns.js';
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
  const within = root === '' ? '' : `${root}/`;
  const failed = (message: string) => ({
    source: new CliError(message, { code: 'invalid_project' }),
    folders,
  });
  const entry = slashed(relative(folder, handler));
  const code = readWithin(folder, entry) ?? { problem: 'cannot be read: there is no such file' };
  if ('problem' in code) return failed(`${file}: the handler ${shown} ${code.problem}`);
  const { files: named, problems: wrong } = await findFiles(entry, code.toString(), async (path) => {
    folders.add(dirname(join(folder, path)));
    return readWithin(folder, path);
  });
  const files = new Map(named);
  const problems = wrong.map((problem) => within + problem);
  const below = include.length === 0 ? [] : [...pathsBelow(folder, include, (one) => folders.add(one))];
  for (const pattern of include) {
    const matching = matchingPaths(below, pattern).filter((path) => path !== entry);
    if (matching.length === 0)
      problems.push(`${file}: no file matches "${pattern}", which ${shown} includes`);
    for (const path of matching) {
      const content = readWithin(folder, path);
      if (content && 'problem' in content) problems.push(`${file}: ${within}${path} ${content.problem}`);
      else if (content) files.set(path, content);
    }
  }
  if (problems.length > 0) return failed(problems.join('\n'));
  return { source: sourceOf(code.toString(), root === '' ? null : entry, entry, files), folders };
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

/** A file as JSON has it. */
export function contentOf(bytes: Buffer): FileContent {
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : { base64: bytes.toString('base64') };
}

/** Why a file is not sent: a folder of others must not name one's own files. */
export const ELSEWHERE = 'cannot be read: it is outside of the folder, or a link that leads out of it';
/** What says that there is no such file, whatever the name is. */
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ERR_INVALID_ARG_VALUE']);

/** A file of a folder; undefined: there is none; or why it cannot be read. */
export function readWithin(folder: string, path: string): Buffer | { readonly problem: string } | undefined {
  const file = join(folder, path);
  try {
    if (!statSync(file).isFile()) return undefined;
    const [within] = relative(realpathSync(folder), realpathSync(file)).split(sep);
    return within === '..' ? { problem: ELSEWHERE } : readFileSync(file);
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    return NOT_THERE.has(code ?? '') ? undefined : { problem: `cannot be read: ${message}` };
  }
}

/**
 * All files in a folder and those below it, relative to it, with `/`.
 * @param named paths and patterns: hidden folders, and those of cargo and npm, have to be named
 * @param entered is called with each folder
 */
export function* pathsBelow(
  root: string,
  named: readonly string[] = [],
  entered: (folder: string) => void = () => undefined,
  folder = root,
): Generator<string> {
  entered(folder);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const shown = slashed(relative(root, path));
    const isNamed = named.some(
      (one) => one === shown || one.startsWith(`${shown}/`) || shown.startsWith(`${one}/`),
    );
    if ((entry.name.startsWith('.') || LEFT_OUT.has(entry.name)) && !isNamed) continue;
    if (entry.isDirectory()) yield* pathsBelow(root, named, entered, path);
    else if (entry.isFile() || entry.isSymbolicLink()) yield shown;
  }
}

function slashed(path: string): string {
  return path.split(sep).join('/');
}
