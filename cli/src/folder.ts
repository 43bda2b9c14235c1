/** The files of a folder that describe an installation, as the API takes them. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { CliError, UsageError } from './errors.js';
import { PROJECT_FILE } from './project.js';

/** What cargo and npm make; hidden folders are left out, too. */
const LEFT_OUT = new Set(['target', 'node_modules']);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The texts of files by their paths: `edge.yaml`, `edge/*.yaml`, the overlay of an environment, and all Rust sources.
 * @throws UsageError when it is no such folder
 */
export function filesOf(folder: string, environment: string | undefined): Readonly<Record<string, string>> {
  const root = resolve(folder);
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`There is no folder ${folder}`);
  const overlay = environment === undefined ? undefined : `edge.${environment}.yaml`;
  const isWanted = (path: string) =>
    path === PROJECT_FILE || path === overlay || /^edge\/[^/]+\.yaml$/.test(path) || path.endsWith('.rs');
  const paths = [...pathsBelow(root, root)].filter(isWanted).sort();
  if (!paths.some((path) => path.endsWith('.yaml')))
    throw new UsageError(
      `There is no ${PROJECT_FILE} in ${root}`,
      '`edge init` makes one; `edge export -o DIR` writes what is defined.',
    );
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
