/** Validates the entries of an archive: each by itself, and all against each other. */
import type { File as Entry } from 'unzipper';
import { AppError } from '../../errors.js';
import { type EntryPath, entryPath } from './entry-path.js';
import { bundleError, entryError } from './errors.js';
import { readAt, type ZipDirectory } from './zip-directory.js';

/** An entry with its validated path. */
export interface CheckedEntry extends EntryPath {
  readonly entry: Entry;
}

const DIRECTORY_ENTRY = { signature: 0x02014b50, bytes: 46 };
const LOCAL_HEADER = { signature: 0x04034b50, bytes: 30 };
const ENCRYPTED = 0x0001;
const STORED = 0;
const DEFLATED = 8;
const FILE_TYPE_MASK = 0o170000;
const SYMLINK = 0o120000;

/**
 * Validates one entry by itself.
 * @throws AppError invalid_bundle naming it
 */
export function checkEntry(entry: Entry): EntryPath {
  if (entry.signature !== DIRECTORY_ENTRY.signature) throw damagedDirectory();
  const checked = entryPath(Buffer.from(entry.pathBuffer));
  const { path } = checked;
  if ((entry.flags & ENCRYPTED) !== 0)
    throw entryError(path, 'is encrypted; pack the bundle without a password');
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) {
    throw entryError(
      path,
      `is packed by a method that is not supported (${entry.compressionMethod}); use "deflate" or "store"`,
    );
  }
  // The upper half is the Unix file mode, whatever system the archive declares.
  if (((entry.externalFileAttributes >>> 16) & FILE_TYPE_MASK) === SYMLINK) {
    throw entryError(path, 'is a symbolic link; put the file itself into the bundle');
  }
  const numbers = [entry.compressedSize, entry.uncompressedSize, entry.offsetToLocalFileHeader];
  if (!numbers.every((number) => Number.isSafeInteger(number)))
    throw entryError(path, 'has an invalid size or offset');
  return checked;
}

/**
 * Validates the entries against each other and against the file.
 * @param descriptor of the open archive
 * @throws AppError invalid_bundle, body_too_large
 */
export function checkEntries(
  entries: readonly CheckedEntry[],
  descriptor: number,
  directory: ZipDirectory,
  unpackedLimit: number,
): void {
  checkDirectory(entries, directory);
  checkNames(entries);
  checkTotal(entries, unpackedLimit);
  checkOffsets(entries, descriptor, directory.offset);
}

/** The entries have to fill the directory: other ZIP readers would see further entries after the counted ones. */
function checkDirectory(entries: readonly CheckedEntry[], directory: ZipDirectory): void {
  const bytes = entries.map(
    ({ entry }) =>
      DIRECTORY_ENTRY.bytes + entry.fileNameLength + entry.extraFieldLength + entry.fileCommentLength,
  );
  if (sum(bytes) !== directory.bytes || entries.length !== directory.entries) throw damagedDirectory();
}

function checkNames(entries: readonly CheckedEntry[]): void {
  const seen = new Set<string>();
  for (const { path } of entries) {
    if (seen.has(path)) throw entryError(path, 'occurs twice; remove one of them');
    seen.add(path);
  }
}

function checkTotal(entries: readonly CheckedEntry[], limit: number): void {
  const total = sum(entries.map(({ entry }) => entry.uncompressedSize));
  if (total <= limit) return;
  throw new AppError(
    'body_too_large',
    `The bundle unpacks to ${total} bytes; at most ${limit} are allowed (BUNDLE_UNPACKED_LIMIT_BYTES).`,
  );
}

/** Overlapping entries would let a small archive unpack to a huge one. */
function checkOffsets(entries: readonly CheckedEntry[], descriptor: number, directoryOffset: number): void {
  const inOrder = entries.toSorted(
    (left, right) => left.entry.offsetToLocalFileHeader - right.entry.offsetToLocalFileHeader,
  );
  let end = 0;
  for (const { entry, path } of inOrder) {
    const begin = entry.offsetToLocalFileHeader;
    if (end === 0 && begin > 0) {
      throw bundleError(
        'The bundle has other data before its first entry (is it self-extracting?); send a plain ZIP.',
      );
    }
    if (begin < end) throw entryError(path, 'overlaps with another entry; pack the bundle again');
    end = begin + localHeaderBytes(entry, path, descriptor) + entry.compressedSize;
    if (end > directoryOffset) throw entryError(path, 'is truncated or overlaps with the directory');
  }
}

/** Length of an entry's local header, which must agree with the directory. */
function localHeaderBytes(entry: Entry, path: string, descriptor: number): number {
  const differs = () =>
    entryError(path, 'has a local header that differs from the directory; pack the bundle again');
  const header = readAt(descriptor, entry.offsetToLocalFileHeader, LOCAL_HEADER.bytes);
  if (header.readUInt32LE(0) !== LOCAL_HEADER.signature) throw differs();
  const encrypted = (header.readUInt16LE(6) & ENCRYPTED) !== 0;
  if (encrypted || header.readUInt16LE(8) !== entry.compressionMethod) throw differs();
  const nameBytes = header.readUInt16LE(26);
  const name = readAt(descriptor, entry.offsetToLocalFileHeader + LOCAL_HEADER.bytes, nameBytes);
  if (!name.equals(Buffer.from(entry.pathBuffer))) throw differs();
  return LOCAL_HEADER.bytes + nameBytes + header.readUInt16LE(28);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function damagedDirectory(): AppError {
  return bundleError('The bundle is damaged: its directory is incomplete; pack it again.');
}
