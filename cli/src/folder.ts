/** The files of a folder that describe an installation, as the API takes them. */
import { existsSync, statSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { CliError, UsageError } from './errors.js';
import { matchingPaths } from './generated/file-patterns.js';
import { findFiles } from './generated/source-finder.js';
import { folderWithProject, PROJECT_FILE } from './project.js';
import { contentOf, ELSEWHERE, type FileContent, pathsBelow, readWithin } from './sources.js';

/**
 * Files by their paths: `edge.yaml`, `edge/*.yaml`, the overlay of an environment, all Rust, and what handlers name or
 * include besides. They are those of the folder, or of the nearest one above that has an edge.yaml.
 * @throws UsageError when there is none; CliError for a file that cannot be read, or is elsewhere
 */
export async function filesOf(
  folder: string,
  environment: string | undefined,
): Promise<Readonly<Record<string, FileContent>>> {
  const given = resolve(folder);
  if (!statSync(given, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`There is no folder ${folder}`);
  const overlay = environment === undefined ? undefined : `edge.${environment}.yaml`;
  const isYaml = (path: string) =>
    path === PROJECT_FILE || path === overlay || /^edge\/[^/]+\.yaml$/.test(path);
  const own = [...pathsBelow(given)];
  const root = own.some(isYaml) ? given : folderWithProject(given);
  if (root === undefined)
    throw new UsageError(
      `There is no ${PROJECT_FILE} in ${given}, or above it`,
      '`edge init` makes one; `edge export -o DIR` writes what is defined.',
    );
  const paths = root === given ? own : [...pathsBelow(root)];
  const yaml = paths.filter(isYaml).map((path) => [path, textOf(root, path)] as const);
  const rust = paths.filter((path) => path.endsWith('.rs'));
  const others = new Set([...rust, ...(await filesOfSources(root, yaml))]);
  const contents = [...others].flatMap((path) => {
    const content = readWithin(root, path);
    // Rust that no handler names may be a link to anywhere.
    return content && !('problem' in content) ? [[path, contentOf(content)] as const] : [];
  });
  return Object.fromEntries([...yaml, ...contents].sort(([left], [right]) => (left < right ? -1 : 1)));
}

/**
 * What endpoints of YAML files name as their source. What else is wrong there, the server says.
 * @throws CliError for files that are elsewhere
 */
async function filesOfSources(
  root: string,
  yaml: readonly (readonly [path: string, text: string])[],
): Promise<ReadonlySet<string>> {
  const { parse } = await import('yaml');
  const named = new Set<string>();
  const problems: string[] = [];
  for (const [, text] of yaml)
    for (const { handler, root: given, include } of endpointsOf(parse, text)) {
      const within = typeof given === 'string' && given !== '' ? `${given.replace(/\/+$/, '')}/` : '';
      const folder = join(root, within);
      const patterns = Array.isArray(include) ? include.filter((one) => typeof one === 'string') : [];
      if (patterns.length > 0 && existsSync(folder)) {
        const below = [...pathsBelow(folder, patterns)];
        for (const pattern of patterns)
          for (const path of matchingPaths(below, pattern)) named.add(within + path);
      }
      const path = typeof handler === 'string' ? posix.normalize(handler) : '';
      const code = path.startsWith(within) ? readWithin(root, path) : undefined;
      if (!code) continue;
      if ('problem' in code) {
        problems.push(`the handler ${path} ${code.problem}`);
        continue;
      }
      named.add(path);
      const entry = path.slice(within.length);
      const found = await findFiles(entry, code.toString(), async (other) => readWithin(folder, other));
      for (const other of found.files.keys()) named.add(within + other);
      problems.push(
        ...found.problems.filter((text) => text.endsWith(ELSEWHERE)).map((text) => within + text),
      );
    }
  if (problems.length > 0) throw new CliError(problems.join('\n'), { code: 'invalid_project' });
  return named;
}

interface NamedSource {
  readonly handler?: unknown;
  readonly root?: unknown;
  readonly include?: unknown;
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
  const content = readWithin(root, path) ?? { problem: 'cannot be read: there is no such file' };
  const failed = (problem: string) => new CliError(`${path} ${problem}`, { code: 'invalid_project' });
  if ('problem' in content) throw failed(content.problem);
  try {
    return utf8.decode(content);
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw failed('cannot be read: it is not UTF-8');
  }
}
