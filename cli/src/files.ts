/** Files that arguments name. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { CliError, UsageError } from './errors.js';
import type { FileContent } from './sources.js';
import { safeLine } from './text.js';

/** The content of a file; `-` is stdin. @throws UsageError when it cannot be read */
export function readInput(file: string): Buffer {
  try {
    return readFileSync(file === '-' ? 0 : file);
  } catch (thrown) {
    throw new UsageError(`${file === '-' ? 'stdin' : file} cannot be read: ${(thrown as Error).message}`);
  }
}

/**
 * Writes files into a folder: all or, when one is there already, none.
 * @returns their paths in the folder
 * @throws UsageError
 */
export function writeFiles(
  folder: string,
  files: Readonly<Record<string, FileContent>>,
  mayReplace: boolean,
): string[] {
  const root = resolve(folder);
  const paths = Object.keys(files);
  for (const path of paths) {
    const file = join(root, path);
    if (relative(root, file).split(sep)[0] === '..')
      throw new CliError(`The gateway names the file ${safeLine(path)}, which is outside of the folder`, {
        code: 'not_the_api',
      });
    const above = nearestExisting(dirname(file));
    if (!statSync(above).isDirectory())
      throw new UsageError(`${above} is no folder; nothing was written`, 'Name another folder.');
    if (existsSync(file) && !mayReplace)
      throw new UsageError(`${file} exists already; nothing was written`, 'Add --force to replace files.');
  }
  for (const [path, content] of Object.entries(files)) {
    const file = join(root, path);
    makeFolder(dirname(file));
    writeFileSync(file, typeof content === 'string' ? content : Buffer.from(content.base64, 'base64'));
  }
  return paths;
}

/** Makes a folder and those above it. Not as one call: below /proc, Node tries that for ever. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path);
}

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path));
}
