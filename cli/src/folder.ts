/** The files of a folder that describe an installation, as the API takes them. */
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CliError, UsageError } from './errors.js';
import { matchesPattern } from './generated/file-patterns.js';
import { findFiles } from './generated/source-finder.js';
import { folderWithProject, PROJECT_FILE } from './project.js';
import { contentOf, type FileContent, pathsBelow, readWithin } from './sources.js';

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
  const isIncluded = (path: string) => isYaml(path) || path.endsWith('.rs');
  const own = [...pathsBelow(given)];
  const root = own.some(isYaml) ? given : folderWithProject(given);
  if (root === undefined)
    throw new UsageError(
      `There is no ${PROJECT_FILE} in ${given}, or above it`,
      '`edge init` makes one; `edge export -o DIR` writes what is defined.',
    );
  const paths = root === given ? own : [...pathsBelow(root)];
  const sent = new Set(paths.filter(isIncluded));
  for (const path of await filesOfSources(root, paths, paths.filter(isYaml))) sent.add(path);
  return Object.fromEntries(
    [...sent].sort().flatMap((path) => {
      // Rust that no handler names may be a link to anywhere.
      const content = isYaml(path) || !isElsewhere(root, path) ? readWithin(root, path, path) : undefined;
      return content ? [[path, path.endsWith('.yaml') ? textOf(content, path) : contentOf(content)]] : [];
    }),
  );
}

function isElsewhere(root: string, path: string): boolean {
  try {
    readWithin(root, path, path);
    return false;
  } catch (thrown) {
    if (thrown instanceof CliError) return true;
    throw thrown;
  }
}

/** What endpoints of YAML files name as their source; what is wrong there, the server says. */
async function filesOfSources(
  root: string,
  paths: readonly string[],
  files: readonly string[],
): Promise<ReadonlySet<string>> {
  const { parse } = await import('yaml');
  const named = new Set<string>();
  for (const file of files)
    for (const endpoint of endpointsOf(
      parse,
      textOf(readWithin(root, file, file) ?? Buffer.alloc(0), file),
    )) {
      const { handler, root: given, include } = endpoint as Readonly<Record<string, unknown>>;
      const within = typeof given === 'string' && given !== '' ? `${given.replace(/\/+$/, '')}/` : '';
      const patterns = Array.isArray(include) ? include.filter((one) => typeof one === 'string') : [];
      for (const path of paths)
        if (path.startsWith(within) && patterns.some((one) => matchesPattern(path.slice(within.length), one)))
          named.add(path);
      if (typeof handler !== 'string' || !handler.startsWith(within)) continue;
      const code = readWithin(root, handler, handler);
      if (!code) continue;
      const found = await findFiles(handler.slice(within.length), code.toString(), async (path) =>
        readWithin(join(root, within), path, within + path),
      );
      for (const path of found.files.keys()) named.add(within + path);
    }
  return named;
}

function endpointsOf(parse: (text: string) => unknown, text: string): readonly object[] {
  try {
    const { endpoints } = (parse(text) ?? {}) as { readonly endpoints?: unknown };
    return Array.isArray(endpoints) ? endpoints.filter((one) => typeof one === 'object' && one !== null) : [];
  } catch {
    return []; // not YAML: the server says where
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOf(bytes: Buffer, shown: string): string {
  try {
    return utf8.decode(bytes);
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new CliError(`${shown} cannot be read: it is not UTF-8`, { code: 'invalid_project' });
  }
}
