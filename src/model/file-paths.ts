/**
 * What paths of files of a source may be. The command line and the web UI have copies of this file, which therefore
 * imports nothing, and needs nothing that a browser does not have.
 */

export const MAX_PATH_BYTES = 1_024;
const MAX_NAME_BYTES = 255;
/** Each folder is one more on the disk of a worker. */
const MAX_FOLDERS = 31;
/** What patterns have, and what some file systems do not take. */
const RESERVED = /[<>:"|?*]/;
const UNPRINTABLE = /[\p{Control}\p{Surrogate}]/u;
const ENCODER = new TextEncoder();

/** What is wrong with the path of a file; undefined: nothing. */
export function filePathProblem(path: string): string | undefined {
  if (path === '') return 'must not be empty';
  if (bytesIn(path) > MAX_PATH_BYTES) return `must have at most ${MAX_PATH_BYTES} bytes`;
  if (UNPRINTABLE.test(path)) return 'must not have control characters, nor lone surrogates';
  if (path.includes('\\')) return 'must have "/" between folders, not "\\"';
  if (path.startsWith('/')) return 'must be relative to the folder of the handler';
  if (RESERVED.test(path)) return 'must not have any of < > : " | ? *, which not every file system takes';
  // Archives and file systems change it to that, and then it is another path.
  if (path !== path.normalize('NFC')) return 'must be in Unicode NFC: each letter composed with its accents';
  const names = path.split('/');
  if (names.includes('..')) return 'must not leave the folder: it has ".."';
  if (names.some((name) => name === '' || name === '.')) return 'must not have an empty name, nor "."';
  if (names.some((name) => bytesIn(name) > MAX_NAME_BYTES))
    return `must not have a name of more than ${MAX_NAME_BYTES} bytes`;
  return names.length - 1 > MAX_FOLDERS ? `must be in at most ${MAX_FOLDERS} folders` : undefined;
}

/** What is wrong with the path of the code; undefined: nothing. */
export function entryProblem(entry: string): string | undefined {
  const problem = filePathProblem(entry);
  if (problem !== undefined) return problem;
  // It is an argument of rustc, which would take it for an option, or for a file with options.
  if (/^[-@]/.test(entry)) return 'must not begin with "-" or "@"';
  return isRust(entry) ? undefined : 'must end with ".rs"';
}

/** Whether a file is Rust, as far as its name says. */
export function isRust(path: string): boolean {
  return path.endsWith('.rs');
}

function bytesIn(text: string): number {
  return ENCODER.encode(text).length;
}
