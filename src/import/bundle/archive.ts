/**
 * Reads untrusted ZIP archives. The whole archive is validated before any of it is unpacked; then single files are
 * unpacked into memory with a limit on their size, and nothing is written to disk.
 */
import { closeSync, openSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { type CentralDirectory, type File as Entry, Open } from 'unzipper';
import { AppError } from '../../errors.js';
import { utf8Text } from '../../util/text.js';
import { checkEntries, checkEntry } from './check-entries.js';
import { bundleError, entryError } from './errors.js';
import { findDirectory } from './zip-directory.js';

declare module 'unzipper' {
  namespace Open {
    /**
     * @param options.tailSize offset of the end record from the end of the file, bytes
     * @param options.padding how many bytes longer the extra field of a local header may be than in the directory
     */
    function file(
      filename: string,
      options: { readonly tailSize: number; readonly padding: number },
    ): Promise<CentralDirectory>;
  }
}

export interface ArchiveLimits {
  /** Most files and folders. */
  readonly entries: number;
  /** Most bytes that all files together may unpack to. */
  readonly unpackedBytes: number;
}

/** A packed file in an archive. */
export interface ArchiveFile {
  /** Relative, with slashes, without "." and "..". */
  readonly path: string;
  /** Unpacked size, bytes. */
  readonly size: number;
  /** @throws AppError invalid_bundle when it is damaged or its unpacked size is not the declared one */
  read(): Promise<Buffer>;
}

const MAX_EXTRA_FIELD_BYTES = 0xffff;

/**
 * Lists the files of an archive; folders are left out.
 * @throws AppError invalid_bundle, body_too_large
 */
export async function openArchive(file: string, limits: ArchiveLimits): Promise<ArchiveFile[]> {
  const descriptor = openSync(file, 'r');
  try {
    const expected = findDirectory(descriptor);
    if (expected.entries > limits.entries) {
      throw bundleError(
        `The bundle has ${expected.entries} files and folders; at most ${limits.entries} are allowed (BUNDLE_ENTRIES_LIMIT).`,
      );
    }
    const directory = await readDirectory(file, expected.tailBytes);
    const checked = directory.files.map((entry) => ({ entry, ...checkEntry(entry) }));
    checkEntries(checked, descriptor, expected, limits.unpackedBytes);
    return checked
      .filter(({ isFolder }) => !isFolder)
      .map(({ entry, path }) => ({ path, size: entry.uncompressedSize, read: () => unpack(entry, path) }));
  } finally {
    closeSync(descriptor);
  }
}

/** Reads files by their paths, each once: handlers share files. Undefined: there is none. */
export function readOnce(
  read: (path: string) => Promise<Buffer> | undefined,
): (path: string) => Promise<Buffer | undefined> {
  const known = new Map<string, Promise<Buffer> | undefined>();
  return async (path) => {
    if (!known.has(path)) known.set(path, read(path));
    return known.get(path);
  };
}

async function readDirectory(file: string, tailSize: number): Promise<CentralDirectory> {
  try {
    return await Open.file(file, { tailSize, padding: MAX_EXTRA_FIELD_BYTES });
  } catch (cause) {
    throw bundleError('The bundle is damaged: its directory cannot be read.', { cause });
  }
}

async function unpack(entry: Entry, path: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let checksum = 0;
  try {
    for await (const chunk of entry.compressedSize === 0 ? [] : (entry.stream() as AsyncIterable<Buffer>)) {
      bytes += chunk.length;
      if (bytes > entry.uncompressedSize)
        throw entryError(path, 'unpacks to more than its declared size; pack it again');
      checksum = crc32(chunk, checksum);
      chunks.push(chunk);
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw entryError(path, 'is damaged and cannot be unpacked; pack it again', { cause });
  }
  if (bytes !== entry.uncompressedSize)
    throw entryError(path, 'unpacks to less than its declared size; pack it again');
  if (checksum !== entry.crc32)
    throw entryError(path, 'is damaged: its checksum (CRC-32) is wrong; pack it again');
  return Buffer.concat(chunks, bytes);
}

/**
 * Reads a file as UTF-8 text without a byte order mark.
 * @param limit largest size, bytes
 * @param setting name of the setting of the limit
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
    throw bundleError(`${file.path} has NUL characters; it is not a text file.`);
  }
  return text;
}

function decode(path: string, bytes: Buffer): string {
  try {
    return utf8Text(bytes);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw bundleError(`${path} is not UTF-8; save it as UTF-8.`, { cause });
  }
}
