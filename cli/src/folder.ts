/** The files of a folder that describe an installation, as the API takes them. */
import { statSync } from 'node:fs';
import { posix, resolve } from 'node:path';
import { CONFIG_FILE, packageIn, registriesOf } from './cargo.js';
import type { CompiledSource } from './deploying.js';
import { CliError, UsageError } from './errors.js';
import { tripleOf } from './generated/cargo-cfg.js';
import { packageOf, usesAsync } from './generated/cargo-package.js';
import { filePathProblem } from './generated/file-paths.js';
import { filePatternProblem } from './generated/file-patterns.js';
import { findFiles } from './generated/source-finder.js';
import { folderWithProject, PROJECT_FILE, type ProjectEndpoint } from './project.js';
import { NOT_THERE, pathsBelow, readWithin, SourceReads } from './source-reads.js';
import { contentOf, type FileContent, filesOfSource } from './sources.js';

/** What is sent of a folder. */
export interface FolderFiles {
  /** Where edge.yaml is. */
  readonly folder: string;
  /** By their paths. */
  readonly files: Readonly<Record<string, FileContent>>;
}

/**
 * Files by their paths: `edge.yaml`, `edge/*.yaml`, the overlay of an environment, all Rust, and what handlers name or
 * include besides. They are those of the folder, or of the nearest one above that has an edge.yaml.
 * @throws UsageError when there is none; CliError for a file that cannot be read, or is elsewhere
 */
export async function filesOf(
  folder: string,
  environment: string | undefined,
  target: () => Promise<string>,
): Promise<FolderFiles> {
  const given = resolve(folder);
  if (!statSync(given, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`There is no folder ${folder}`);
  const overlay = environment === undefined ? undefined : `edge.${environment}.yaml`;
  const isYaml = (path: string) =>
    path === PROJECT_FILE || path === overlay || /^edge\/[^/]+\.yaml$/.test(path);
  const own = allPaths(given);
  const root = own.some(isYaml) ? given : folderWithProject(given);
  if (root === undefined)
    throw new UsageError(
      `There is no ${PROJECT_FILE} in ${given}, or above it`,
      '`edge init` makes one; `edge export -o DIR` writes what is defined.',
    );
  const paths = root === given ? own : allPaths(root);
  const yaml = paths.filter(isYaml).map((path) => [path, textOf(root, path)] as const);
  const rust = paths.filter((path) => path.endsWith('.rs'));
  const reads = new SourceReads(target);
  const others = new Set([...rust, ...(await filesOfSources(root, yaml, reads))]);
  const contents: (readonly [path: string, content: FileContent])[] = [];
  for (const path of others) {
    const content = reads.file(root, path);
    // Rust that no handler names may be a link to anywhere.
    if (!content || 'problem' in content) continue;
    const sent = CONFIG_FILE.test(path) ? await registriesOf(content.toString()) : contentOf(content);
    contents.push([path, sent]);
  }
  const files = [...yaml, ...contents].sort(([left], [right]) => (left < right ? -1 : 1));
  return { folder: root, files: Object.fromEntries(files) };
}

/** @throws CliError where a folder cannot be read: it may have YAML, whose objects would be missing */
function allPaths(root: string): readonly string[] {
  const { files, problems } = pathsBelow(root);
  if (problems.length > 0) throw new CliError(problems.join('\n'), { code: 'invalid_project' });
  return files;
}

/**
 * What endpoints of YAML files name as their source. What else is wrong there, the server says.
 * @throws CliError for files that are there, and cannot be read or are elsewhere
 */
async function filesOfSources(
  root: string,
  yaml: readonly (readonly [path: string, text: string])[],
  reads: SourceReads,
): Promise<ReadonlySet<string>> {
  const { parse } = await import('yaml');
  const named = new Set<string>();
  const problems = new Set<string>();
  for (const [file, text] of yaml)
    for (const { handler, root: given = '', include, dependencies, lock } of endpointsOf(parse, text)) {
      if (typeof lock === 'string') named.add(posix.normalize(lock));
      if (typeof handler !== 'string' || typeof given !== 'string') continue;
      if (given !== '' && filePathProblem(given) !== undefined) continue;
      const within = given === '' ? '' : `${given}/`;
      const path = posix.normalize(handler);
      const code = path.startsWith(within) ? reads.file(root, path) : undefined;
      if (!code) continue;
      if ('problem' in code) {
        problems.add(`${file}: the handler ${path} ${code.problem}`);
        continue;
      }
      const source = {
        ...{ project: root, within, entry: path.slice(within.length), file },
        include: Array.isArray(include) ? include.filter(isPattern) : [],
      };
      const { files, unreadable } = await filesOfSource(source, code.toString(), reads);
      if (dependencies === undefined) {
        const isAsync = usesAsync([code, ...files.values()]);
        const { paths } = await packageIn(root, { path, within, isAsync }, reads);
        for (const one of paths) named.add(one);
      }
      for (const other of [source.entry, ...files.keys()]) named.add(within + other);
      for (const problem of unreadable) problems.add(problem);
    }
  if (problems.size > 0) throw new CliError([...problems].join('\n'), { code: 'invalid_project' });
  return named;
}

function isPattern(value: unknown): value is string {
  return typeof value === 'string' && filePatternProblem(value) === undefined;
}

/** The source of a handler as it was sent, for messages about it. */
export async function sentSource(
  { shown, root, include, dependencies }: ProjectEndpoint,
  files: FolderFiles['files'],
): Promise<CompiledSource> {
  const within = root === '' ? '' : `${root}/`;
  const path = posix.normalize(shown);
  const read = (one: string) => bytesOf(files[one]);
  const isAlone = async () => {
    const code = String(read(path) ?? '');
    const beside = await findFiles(path, code, async (other) => read(other));
    return beside.files.size === 0 && (dependencies !== undefined || !(await hasLocalCrates(path, files)));
  };
  return {
    ...{ shown, root, has: (other) => Object.hasOwn(files, within + other) },
    isOneFile: root === '' && include.length === 0 && (await isAlone()),
  };
}

async function hasLocalCrates(path: string, files: FolderFiles['files']): Promise<boolean> {
  const target = async () => tripleOf('x64');
  const reads = new SourceReads(target);
  const { found } = await packageOf(
    { path, within: '', isAsync: false },
    {
      read: async (other) => bytesOf(files[other]),
      pathsBelow: (folder) => Object.keys(files).filter((other) => other.startsWith(folder)),
      parseToml: await reads.parseToml(),
      look: reads.rust,
      target,
    },
  );
  return found !== undefined && found.files.size > 0;
}

function bytesOf(content: FileContent | undefined): Buffer | undefined {
  if (content === undefined) return undefined;
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content.base64, 'base64');
}

interface NamedSource {
  readonly handler?: unknown;
  readonly root?: unknown;
  readonly include?: unknown;
  readonly lock?: unknown;
  readonly dependencies?: unknown;
}

function endpointsOf(parse: (text: string) => unknown, text: string): readonly NamedSource[] {
  try {
    const { endpoints } = (parse(text) ?? {}) as { readonly endpoints?: unknown };
    return Array.isArray(endpoints) ? endpoints.filter((one) => typeof one === 'object' && one !== null) : [];
  } catch {
    return []; // not YAML: the server says where
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOf(root: string, path: string): string {
  const content = readWithin(root, path) ?? NOT_THERE;
  const failed = (problem: string) => new CliError(`${path} ${problem}`, { code: 'invalid_project' });
  if ('problem' in content) throw failed(content.problem);
  try {
    return utf8.decode(content);
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw failed('cannot be read: it is not UTF-8');
  }
}
