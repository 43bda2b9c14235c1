/** The sources of a folder: the code that endpoints name, and the files beside it that belong to it. */
import { AppError } from '../../errors.js';
import { matchingPaths } from '../../model/file-patterns.js';
import { type FileLimits, fileRefs, filesProblem } from '../../model/source-files.js';
import { findFiles } from '../../model/source-finder.js';
import { isObject } from '../../util/json-object.js';
import { entryPath } from '../bundle/entry-path.js';
import { type Folder, type FolderSource, type NamedSource, sourceName } from './folder.js';

/** The files of a folder, by their paths. */
export interface FolderFiles {
  readonly paths: readonly string[];
  /** Undefined: there is none. */
  read(path: string): Promise<Buffer | undefined>;
  /** @throws AppError invalid_folder when it is not UTF-8; body_too_large */
  readCode(path: string): Promise<string | undefined>;
}

/** All sources that endpoints name, and whose code is there. */
export async function readSources(
  endpoints: readonly { readonly value: unknown }[],
  files: FolderFiles,
  limits: FileLimits,
): Promise<Pick<Folder, 'sources' | 'contents'>> {
  const sources = new Map<string, FolderSource>();
  const contents = new Map<string, Uint8Array>();
  for (const { value } of endpoints) {
    const named = namedSource(value);
    if (!named || sources.has(sourceName(named))) continue;
    const code = await files.readCode(named.handler);
    if (code === undefined) continue;
    const { entry, beside, problems } = await filesOf(named, code, files);
    const problem = filesProblem(beside, entry, limits);
    if (problem !== undefined) problems.push(`${named.handler}: ${problem}`);
    sources.set(sourceName(named), { code, entry, files: fileRefs(beside, contents), problems });
  }
  return { sources, contents };
}

/** What an endpoint of a document says of its source; undefined: nothing, or something that is not valid. */
export function namedSource(endpoint: unknown): NamedSource | undefined {
  if (!isObject(endpoint)) return undefined;
  const { handler, root = '', include = [] } = endpoint;
  if (typeof handler !== 'string' || typeof root !== 'string' || !Array.isArray(include)) return undefined;
  const patterns = include.filter((pattern): pattern is string => typeof pattern === 'string');
  const folder = root === '' ? '' : folderPath(root);
  return { handler: folderPath(handler), root: folder, include: patterns };
}

/** A path as the files of a folder have it; as it is given where it cannot be one. */
function folderPath(path: string): string {
  try {
    return entryPath(Buffer.from(path)).path;
  } catch (thrown) {
    if (thrown instanceof AppError) return path;
    throw thrown;
  }
}

async function filesOf(
  { handler, root, include }: NamedSource,
  code: string,
  files: FolderFiles,
): Promise<{
  readonly entry: string;
  readonly beside: ReadonlyMap<string, Buffer>;
  readonly problems: string[];
}> {
  const within = root === '' ? '' : `${root}/`;
  if (!handler.startsWith(within)) {
    const problem = `the handler ${handler} is outside of its root ${root}`;
    return { entry: handler, beside: new Map(), problems: [problem] };
  }
  const entry = handler.slice(within.length);
  const found = await findFiles(entry, code, (path) => files.read(within + path));
  const beside = new Map(found.files);
  const problems = found.problems.map((problem) => within + problem);
  for (const pattern of include) {
    const others = files.paths.filter((path) => path.startsWith(within) && path !== handler);
    const included = matchingPaths(
      others.map((path) => path.slice(within.length)),
      pattern,
    );
    if (included.length === 0) problems.push(`${handler}: no file matches "${pattern}", which it includes`);
    for (const path of included) beside.set(path, (await files.read(within + path)) ?? Buffer.alloc(0));
  }
  return { entry, beside, problems };
}
