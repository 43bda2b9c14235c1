/** The files of a folder that describe an installation, as the API takes them. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { CliError, UsageError } from './errors.js';
import { folderWithProject, PROJECT_FILE } from './project.js';

/** What cargo and npm make; hidden folders are left out, too. */
const LEFT_OUT = new Set(['target', 'node_modules']);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The texts of files by their paths: `edge.yaml`, `edge/*.yaml`, the overlay of an environment, and all Rust sources.
 * They are those of the folder, or of the nearest one above that has an edge.yaml.
 * @throws UsageError when there is none
 */
export function filesOf(folder: string, environment: string | undefined): Readonly<Record<string, string>> {
  const given = resolve(folder);
  if (!statSync(given, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`There is no folder ${folder}`);
  const overlay = environment === undefined ? undefined : `edge.${environment}.yaml`;
  const isIncluded = (path: string) =>
    path === PROJECT_FILE || path === overlay || /^edge\/[^/]+\.yaml$/.test(path) || path.endsWith('.rs');
  const pathsOf = (root: string) => [...pathsBelow(root, root)].filter(isIncluded).sort();
  const own = pathsOf(given);
  const root = own.some((path) => path.endsWith('.yaml')) ? given : folderWithProject(given);
  if (root === undefined)
    throw new UsageError(
      `There is no ${PROJECT_FILE} in ${given}, or above it`,
      '`edge init` makes one; `edge export -o DIR` writes what is defined.',
    );
  const paths = root === given ? own : pathsOf(root);
  return Object.fromEntries(paths.map((path) => [path, textOf(join(root, path), path)]));
}

function* pathsBelow(root: string, folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || LEFT_OUT.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* pathsBelow(root, path);
    else if (entry.isFile()) yield relative(root, path).split('\\').join('/');
  }
}

function textOf(file: string, shown: string): string {
  try {
    return utf8.decode(readFileSync(file));
  } catch (thrown) {
    const reason = thrown instanceof TypeError ? 'it is not UTF-8' : (thrown as Error).message;
    throw new CliError(`${shown} cannot be read: ${reason}`, { code: 'invalid_project' });
  }
}
