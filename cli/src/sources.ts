/** The source of a handler: its code, and the files beside it as rustc finds them. */
import { isUtf8 } from 'node:buffer';
import { dirname, join, relative, sep } from 'node:path';
import { packageIn } from './cargo.js';
import { CliError } from './errors.js';
import { type PackagedHandler, type SentDependency, usesAsync } from './generated/cargo-package.js';
import { isAbout, matchingPaths } from './generated/file-patterns.js';
import { findFiles } from './generated/source-finder.js';
import type { Crate, ProjectEndpoint } from './project.js';
import { NOT_THERE, type SourceReads } from './source-reads.js';

/** A file as the API takes it: its text, or its bytes. */
export type FileContent = string | { readonly base64: string };

/** What is sent of a source. */
export interface Source {
  readonly code: string;
  /** The path of the code among the files; null: there are none. */
  readonly entry: string | null;
  readonly files: Readonly<Record<string, FileContent>> | null;
  readonly dependencies: Readonly<Record<string, Crate | SentDependency>>;
  /** Null: the usual one. */
  readonly edition: string | null;
  /** The text of a Cargo.lock; null: none. */
  readonly lock: string | null;
}

/** A source, or why there is none, and where its files are. */
export interface FoundSource {
  readonly source: Source | CliError;
  /** Folders in which a change may change it. */
  readonly folders: ReadonlySet<string>;
}

/** @param file edge.yaml @throws CliError that names the file and the line that are wrong */
export async function readSource(
  endpoint: ProjectEndpoint,
  file: string,
  reads: SourceReads,
): Promise<Source> {
  const { source } = await findSource(endpoint, file, reads);
  if (source instanceof CliError) throw source;
  return source;
}

/** The same, also where something is wrong. */
export async function findSource(
  endpoint: ProjectEndpoint,
  file: string,
  reads: SourceReads,
): Promise<FoundSource> {
  const { handler, shown, root, include } = endpoint;
  const project = dirname(file);
  const within = root === '' ? '' : `${root}/`;
  const failed = (message: string, folders: ReadonlySet<string> = new Set([dirname(handler)])) => ({
    source: new CliError(message, { code: 'invalid_project' }),
    folders,
  });
  const path = relative(project, handler).split(sep).join('/');
  if (!path.startsWith(within)) return failed(`${file}: the handler ${shown} is outside of its root ${root}`);
  const entry = path.slice(within.length);
  const code = reads.file(project, path) ?? NOT_THERE;
  if ('problem' in code) return failed(`${file}: the handler ${shown} ${code.problem}`);
  const named = { project, within, entry, include, file };
  const { files, folders, unreadable, missing, unmatched } = await filesOfSource(
    named,
    code.toString(),
    reads,
  );
  const problems = [
    ...[...unreadable, ...missing],
    ...unmatched.map((pattern) => `${file}: no file matches "${pattern}", which ${shown} includes`),
  ];
  if (problems.length > 0) return failed(problems.join('\n'), folders);
  const isAsync = usesAsync([code, ...files.values()]);
  const said = await cratesOf(endpoint, file, { path, within, isAsync }, reads);
  const all = new Set([...folders, ...said.folders]);
  if ('problem' in said) return failed(said.problem, all);
  const { dependencies, edition, lock } = said;
  const given = { code: code.toString(), entry, isPlaced: root !== '' };
  const source = sourceOf(given, new Map([...files, ...said.files]));
  return { source: { ...source, dependencies, edition, lock }, folders: all };
}

interface Crates extends Pick<Source, 'dependencies' | 'edition' | 'lock'> {
  /** The files of local crates. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/** What an endpoint says of its crates, or else its Cargo.toml; or what is wrong; and where that is. */
async function cratesOf(
  endpoint: ProjectEndpoint,
  file: string,
  handler: PackagedHandler,
  reads: SourceReads,
): Promise<(Crates | { readonly problem: string }) & Pick<FoundSource, 'folders'>> {
  const project = dirname(file);
  const isOfPackage = endpoint.dependencies === undefined;
  const cargo = isOfPackage ? await packageIn(project, handler, reads) : undefined;
  const folders = cargo?.folders ?? new Set();
  if (cargo && cargo.problems.length > 0) return { problem: cargo.problems.join('\n'), folders };
  const { dependencies = {}, edition = null, lock = null, files = new Map() } = cargo?.found ?? {};
  const locked = endpoint.lock === null ? lock : relative(project, endpoint.lock);
  const content = locked === null ? null : (reads.file(project, locked) ?? NOT_THERE);
  if (content !== null && 'problem' in content)
    return { problem: `${file}: the lock ${locked} ${content.problem}`, folders };
  return {
    ...{ dependencies: endpoint.dependencies ?? dependencies, edition: endpoint.edition ?? edition },
    ...{ lock: content === null ? null : content.toString(), files },
    folders: locked === null ? folders : new Set([...folders, dirname(join(project, locked))]),
  };
}

/** What is known of a source before its files are looked for. */
export interface NamedSource {
  /** The folder of edge.yaml, out of which nothing leads. */
  readonly project: string;
  /** The folder in it that paths are relative to: empty, or with `/` at its end. */
  readonly within: string;
  /** The path of its code. */
  readonly entry: string;
  /** Patterns of further files. */
  readonly include: readonly string[];
  /** The file that includes them. */
  readonly file: string;
}

export interface FilesOfSource {
  /** The files beside the code. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Folders in which files are, or were looked for. */
  readonly folders: ReadonlySet<string>;
  /** What is there, and cannot be sent, with its place and the reason. */
  readonly unreadable: readonly string[];
  /** What else is wrong with what the code names, with its place. */
  readonly missing: readonly string[];
  /** Patterns that mean nothing. */
  readonly unmatched: readonly string[];
}

/** The files of a source: those that its code names, and those that it includes. */
export async function filesOfSource(
  { project, within, entry, include, file }: NamedSource,
  code: string,
  reads: SourceReads,
): Promise<FilesOfSource> {
  const folder = join(project, within);
  const folders = new Set([dirname(join(folder, entry))]);
  const refused = new Set<string>();
  const read = async (path: string) => {
    folders.add(dirname(join(folder, path)));
    const content = reads.file(project, within + path);
    if (content && 'problem' in content) refused.add(`${path} ${content.problem}`);
    return content;
  };
  const found = await findFiles(entry, code, read, reads.rust);
  const files = new Map(found.files);
  const isRefused = (problem: string) => [...refused].some((one) => problem.endsWith(one));
  const unreadable = found.problems.filter(isRefused).map((problem) => within + problem);
  const missing = found.problems.filter((problem) => !isRefused(problem)).map((problem) => within + problem);
  const unmatched: string[] = [];
  const below = include.length === 0 ? undefined : reads.paths(folder, include);
  for (const one of below?.folders ?? []) folders.add(one);
  for (const problem of below?.problems ?? []) unreadable.push(`${file}: ${problem}`);
  for (const pattern of below ? include : []) {
    const matching = matchingPaths(below?.files ?? [], pattern).filter((path) => path !== entry);
    const links = below?.links.filter((path) => isAbout(pattern, path)) ?? [];
    if (matching.length + links.length === 0) unmatched.push(pattern);
    for (const path of links)
      unreadable.push(
        `${file}: "${pattern}" includes ${within}${path}, which is a link to a folder; these are not followed`,
      );
    for (const path of matching) {
      const content = reads.file(project, within + path) ?? NOT_THERE;
      if ('problem' in content) unreadable.push(`${file}: ${within}${path} ${content.problem}`);
      else files.set(path, content);
    }
  }
  return { files, folders, unreadable, missing, unmatched };
}

/** @param isPlaced whether the path of the code counts also without files */
function sourceOf(
  { code, entry, isPlaced }: { readonly code: string; readonly entry: string; readonly isPlaced: boolean },
  files: ReadonlyMap<string, Buffer>,
): Pick<Source, 'code' | 'entry' | 'files'> {
  if (files.size === 0) return { code, entry: isPlaced ? entry : null, files: null };
  const contents = [...files].map(([path, content]) => [path, contentOf(content)] as const);
  return { code, entry, files: Object.fromEntries(contents) };
}

/** A file as JSON has it. */
export function contentOf(bytes: Buffer): FileContent {
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : { base64: bytes.toString('base64') };
}
