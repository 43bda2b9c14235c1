/**
 * ZIP archives from strangers. An archive is checked as a whole before any of it is unpacked; then single files are
 * unpacked into memory, bytes counted as they come, and nothing is ever written to disk.
 */
import { closeSync, openSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { type CentralDirectory, type File as Entry, Open } from 'unzipper';
import { AppError } from '../../errors.js';
import { checkEntry, checkTogether } from './check-entries.js';
import { refusal } from './entry-path.js';
import { findDirectory } from './zip-directory.js';

declare module 'unzipper' {
  namespace Open {
    /**
     * @param options.tailSize where to look for the end record, bytes from the end of the file
     * @param options.padding how much longer the extra field of a local header may be than in the directory, bytes
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
  /** Most that all files together may unpack to, bytes. */
  readonly unpackedBytes: number;
}

/** A file in an archive, still packed. */
export interface ArchiveFile {
  /** Relative, with slashes, without "." and "..". */
  readonly path: string;
  /** What it unpacks to, bytes. */
  readonly size: number;
  /** @throws AppError invalid_bundle when it is damaged or does not unpack to what the archive says */
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
      throw new AppError(
        'invalid_bundle',
        `The bundle has ${expected.entries} files and folders; at most ${limits.entries} are allowed (BUNDLE_ENTRIES_LIMIT).`,
      );
    }
    const directory = await readDirectory(file, expected.tailBytes);
    const checked = directory.files.map((entry) => ({ entry, ...checkEntry(entry) }));
    checkTogether(checked, descriptor, expected, limits.unpackedBytes);
    return checked
      .filter(({ isFolder }) => !isFolder)
      .map(({ entry, path }) => ({ path, size: entry.uncompressedSize, read: () => unpack(entry, path) }));
  } finally {
    closeSync(descriptor);
  }
}

async function readDirectory(file: string, tailSize: number): Promise<CentralDirectory> {
  try {
    return await Open.file(file, { tailSize, padding: MAX_EXTRA_FIELD_BYTES });
  } catch (cause) {
    throw new AppError(
      'invalid_bundle',
      'The bundle is damaged: the list of its entries cannot be read.',
      {},
      { cause },
    );
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
        throw refusal(path, 'unpacks to more than the archive says; pack it again');
      checksum = crc32(chunk, checksum);
      chunks.push(chunk);
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      'invalid_bundle',
      `${refusal(path, 'is damaged and cannot be unpacked; pack it again').message}`,
      {},
      { cause },
    );
  }
  if (bytes !== entry.uncompressedSize)
    throw refusal(path, 'unpacks to less than the archive says; pack it again');
  if (checksum !== entry.crc32)
    throw refusal(path, 'is damaged: its checksum (CRC-32) is wrong; pack it again');
  return Buffer.concat(chunks, bytes);
}
