/** Files of an archive as text. */
import { AppError } from '../../errors.js';
import type { ArchiveFile } from './archive.js';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a file that has to be UTF-8; a byte order mark is dropped.
 * @param limit largest accepted, bytes
 * @param setting name of the setting that the limit comes from
 * @throws AppError invalid_bundle, body_too_large naming the file
 */
export async function readText(file: ArchiveFile, limit: number, setting?: string): Promise<string> {
  if (file.size > limit) {
    const source = setting ? ` (${setting})` : '';
    throw new AppError(
      'body_too_large',
      `${file.path} has ${file.size} bytes; at most ${limit} are allowed${source}.`,
    );
  }
  const text = decode(file.path, await file.read());
  if (text.includes('\u0000')) {
    throw new AppError('invalid_bundle', `${file.path} has NUL characters; it is not a text file.`);
  }
  return text;
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new AppError('invalid_bundle', `${path} is not UTF-8; save it as UTF-8.`, {}, { cause });
  }
}
