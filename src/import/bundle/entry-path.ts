/** Validates the untrusted names of ZIP entries as relative paths within the bundle. */
import { entryError } from './errors.js';

export interface EntryPath {
  /** Segments joined by single slashes, in Unicode NFC: macOS writes decomposed names. */
  readonly path: string;
  readonly isFolder: boolean;
}

const MAX_NAME_BYTES = 1024;
const DRIVE_LETTER = /^[A-Za-z]:/;
const CONTROL_CHARACTER = /\p{Cc}/u;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses a raw name. Backslashes, which some Windows tools write, are treated as slashes.
 * @throws AppError invalid_bundle naming the entry
 */
export function entryPath(raw: Uint8Array): EntryPath {
  const name = decode(raw).replaceAll('\\', '/');
  if (name === '') throw entryError(name, 'has no name');
  if (CONTROL_CHARACTER.test(name)) throw entryError(name, 'has a control character in its name; rename it');
  if (name.startsWith('/') || DRIVE_LETTER.test(name)) {
    throw entryError(name, 'has an absolute path; pack the files with paths relative to the bundle');
  }
  const segments = name.split('/').filter((segment) => segment !== '' && segment !== '.');
  if (segments.includes('..')) {
    throw entryError(name, 'has ".." in its path; pack the files from within their folder');
  }
  return { path: segments.join('/').normalize('NFC'), isFolder: name.endsWith('/') || segments.length === 0 };
}

function decode(raw: Uint8Array): string {
  const escaped = () => Buffer.from(raw).toString('latin1');
  if (raw.length > MAX_NAME_BYTES) {
    throw entryError(escaped(), `has a name of more than ${MAX_NAME_BYTES} bytes; shorten it`);
  }
  try {
    return utf8.decode(raw);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw entryError(
      escaped(),
      'has a name that is not UTF-8; rename it, or pack it with a tool that writes UTF-8',
    );
  }
}
