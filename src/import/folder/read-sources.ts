/** The sources of a folder: the code that endpoints name, and the files beside it that belong to it. */
import { isUtf8 } from 'node:buffer';
import { parse } from 'smol-toml';
import { AppError } from '../../errors.js';
import { tripleOf } from '../../model/cargo-cfg.js';
import { lockProblem } from '../../model/cargo-lock.js';
import { type ParseToml, remembering } from '../../model/cargo-manifest.js';
import { type CargoProject, type FoundPackage, packageOf, usesAsync } from '../../model/cargo-package.js';
import { matchingPaths } from '../../model/file-patterns.js';
import { type FileLimits, fileRef, fileRefs, filesProblem } from '../../model/source-files.js';
import { findFiles } from '../../model/source-finder.js';
import { isObject } from '../../util/json-object.js';
import { entryPath } from '../bundle/entry-path.js';
import { KnownReferences } from '../bundle/known-references.js';
import { type Folder, type FolderSource, type NamedSource, sourceName } from './folder.js';

/** The files of a folder, by their paths. */
export interface FolderFiles {
  readonly paths: readonly string[];
  /** Undefined: there is none. */
  read(path: string): Promise<Buffer | undefined>;
  /** @throws AppError invalid_folder when it is not UTF-8; body_too_large */
  readCode(path: string): Promise<string | undefined>;
}

/** What handlers share is read once. */
interface Known {
  readonly parseToml: ParseToml;
  readonly references: KnownReferences;
  /** The paths in folders of crates. */
  readonly below: Map<string, readonly string[]>;
}

/** All sources that endpoints name, and whose code is there. */
export async function readSources(
  endpoints: readonly { readonly value: unknown }[],
  files: FolderFiles,
  limits: FileLimits,
): Promise<Pick<Folder, 'sources' | 'contents'>> {
  const sources = new Map<string, FolderSource>();
  const contents = new Map<string, Uint8Array>();
  const known = { parseToml: remembering(parse), references: new KnownReferences(), below: new Map() };
  for (const { value } of endpoints) {
    const named = namedSource(value);
    if (!named || sources.has(sourceName(named))) continue;
    const code = await files.readCode(named.handler);
    if (code === undefined) continue;
    const { entry, beside, problems } = await filesOf(named, code, files, known);
    const texts = [code, ...beside.values()];
    const { found, problems: cargoProblems } = await packageOfSource(named, texts, files, known);
    for (const [path, content] of found?.files ?? []) beside.set(path, content);
    const problem = filesProblem(beside, entry, limits);
    if (problem !== undefined) problems.push(`${named.handler}: ${problem}`);
    const lockPath = named.lock ?? found?.lock ?? null;
    const lock = lockPath === null ? null : await lockAt(lockPath, named.handler, files);
    if (typeof lock === 'string') problems.push(lock);
    const refs = {
      files: fileRefs(beside, contents),
      lock: lock instanceof Uint8Array ? fileRef(lock, contents) : null,
    };
    const cargo = found ? { dependencies: found.dependencies, edition: found.edition } : null;
    sources.set(sourceName(named), { code, entry, ...refs, cargo, cargoProblems, problems });
  }
  return { sources, contents };
}

/** What an endpoint of a document says of its source; undefined: nothing, or something that is not valid. */
export function namedSource(endpoint: unknown): NamedSource | undefined {
  if (!isObject(endpoint)) return undefined;
  const { handler, root = '', include = [], lock = null, dependencies } = endpoint;
  if (typeof handler !== 'string' || typeof root !== 'string' || !Array.isArray(include)) return undefined;
  if (lock !== null && typeof lock !== 'string') return undefined;
  const patterns = include.filter((pattern): pattern is string => typeof pattern === 'string');
  const folder = root === '' ? '' : folderPath(root);
  return {
    ...{ handler: folderPath(handler), root: folder, include: patterns },
    lock: lock === null ? null : folderPath(lock),
    isOfPackage: dependencies === undefined,
  };
}

/** The lock of a source, or what is wrong with it. */
async function lockAt(path: string, handler: string, files: FolderFiles): Promise<Uint8Array | string> {
  const content = await files.read(path);
  if (!content) return `${handler}: there is no file ${path} in the folder, which is to be its lock`;
  const problem = isUtf8(content) ? lockProblem(content.toString()) : 'must be UTF-8';
  return problem === undefined ? content : `${path} ${problem}`;
}

const NO_PACKAGE: FoundPackage = { found: undefined, problems: [], paths: new Set() };

async function packageOfSource(
  { handler, root, isOfPackage }: NamedSource,
  texts: readonly (string | Buffer)[],
  { paths, read }: FolderFiles,
  { parseToml, references, below }: Known,
): Promise<FoundPackage> {
  if (!isOfPackage) return NO_PACKAGE;
  const project: CargoProject = {
    read,
    pathsBelow: (folder) => {
      const known =
        below.get(folder) ??
        paths.filter((path) => path.startsWith(folder) && !isLeftOut(path.slice(folder.length)));
      below.set(folder, known);
      return known;
    },
    parseToml,
    look: references.of,
    // Workers are machines of the same kind.
    target: async () => tripleOf(process.arch),
  };
  const within = root === '' ? '' : `${root}/`;
  return packageOf({ path: handler, within, isAsync: usesAsync(texts) }, project);
}

/** What is hidden, and what cargo and npm make, is no part of a crate. */
function isLeftOut(path: string): boolean {
  return path.split('/').some((name) => name.startsWith('.') || name === 'target' || name === 'node_modules');
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
  { references }: Known,
): Promise<{
  readonly entry: string;
  readonly beside: Map<string, Buffer>;
  readonly problems: string[];
}> {
  const within = root === '' ? '' : `${root}/`;
  if (!handler.startsWith(within)) {
    const problem = `the handler ${handler} is outside of its root ${root}`;
    return { entry: handler, beside: new Map(), problems: [problem] };
  }
  const entry = handler.slice(within.length);
  const found = await findFiles(
    entry,
    code,
    (path) => files.read(within + path),
    (path, text) => references.of(within + path, text),
  );
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
