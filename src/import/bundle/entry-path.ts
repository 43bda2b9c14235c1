/** Names of ZIP entries as paths that are safe to speak of: relative, with slashes, within the bundle. */
import { AppError } from '../../errors.js';

export interface EntryPath {
  /** Segments joined by single slashes, composed as Unicode NFC: macOS writes names decomposed. */
  readonly path: string;
  readonly isFolder: boolean;
}

const MAX_NAME_BYTES = 1024;
const DRIVE_LETTER = /^[A-Za-z]:/;
const CONTROL_CHARACTER = /\p{Cc}/u;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a name as it stands in the archive. Backslashes, which tools of Windows write, are slashes.
 * @throws AppError invalid_bundle naming the entry
 */
export function entryPath(raw: Uint8Array): EntryPath {
  const name = decode(raw).replaceAll('\\', '/');
  if (name === '') throw refusal(name, 'has no name');
  if (CONTROL_CHARACTER.test(name)) throw refusal(name, 'has a control character in its name; rename it');
  if (name.startsWith('/') || DRIVE_LETTER.test(name)) {
    throw refusal(name, 'has an absolute path; pack the files with paths relative to the bundle');
  }
  const segments = name.split('/').filter((segment) => segment !== '' && segment !== '.');
  if (segments.includes('..')) {
    throw refusal(name, 'has ".." in its path; pack the files from within their folder');
  }
  return { path: segments.join('/').normalize('NFC'), isFolder: name.endsWith('/') || segments.length === 0 };
}

/** Says what is wrong with an entry; whatever its name is made of, the message is one line of moderate length. */
export function refusal(name: string, reason: string): AppError {
  return new AppError('invalid_bundle', `The bundle's entry ${quoted(name)} ${reason}.`);
}

/** A name from the archive, fit for a message. */
function quoted(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}...` : name);
}

function decode(raw: Uint8Array): string {
  const escaped = () => Buffer.from(raw).toString('latin1');
  if (raw.length > MAX_NAME_BYTES) {
    throw refusal(escaped(), `has a name of more than ${MAX_NAME_BYTES} bytes; shorten it`);
  }
  try {
    return utf8.decode(raw);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw refusal(
      escaped(),
      'has a name that is not UTF-8; rename it, or pack it with a tool that writes UTF-8',
    );
  }
}
