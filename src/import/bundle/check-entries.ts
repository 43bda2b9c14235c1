/** What the entries of an archive have to be like: one by one, and together. */
import type { File as Entry } from 'unzipper';
import { AppError } from '../../errors.js';
import { type EntryPath, entryPath, refusal } from './entry-path.js';
import { readAt, type ZipDirectory } from './zip-directory.js';

/** An entry with the path it was found to have. */
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
 * Checks what can be said of one entry alone.
 * @throws AppError invalid_bundle naming it
 */
export function checkEntry(entry: Entry): EntryPath {
  if (entry.signature !== DIRECTORY_ENTRY.signature) throw damagedList();
  const checked = entryPath(Buffer.from(entry.pathBuffer));
  const { path } = checked;
  if ((entry.flags & ENCRYPTED) !== 0)
    throw refusal(path, 'is encrypted; pack the bundle without a password');
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) {
    throw refusal(
      path,
      `is packed by a method that is not supported (${entry.compressionMethod}); use "deflate" or "store"`,
    );
  }
  // Unix keeps the mode of a file in the upper half, whatever system the archive says it comes from.
  if (((entry.externalFileAttributes >>> 16) & FILE_TYPE_MASK) === SYMLINK) {
    throw refusal(path, 'is a symbolic link; put the file itself into the bundle');
  }
  const numbers = [entry.compressedSize, entry.uncompressedSize, entry.offsetToLocalFileHeader];
  if (!numbers.every((number) => Number.isSafeInteger(number)))
    throw refusal(path, 'has no valid size or place');
  return checked;
}

/**
 * Checks the entries against each other and against the file.
 * @param descriptor the archive, open
 * @throws AppError invalid_bundle, body_too_large
 */
export function checkTogether(
  entries: readonly CheckedEntry[],
  descriptor: number,
  directory: ZipDirectory,
  unpackedLimit: number,
): void {
  checkList(entries, directory);
  checkNames(entries);
  checkTotal(entries, unpackedLimit);
  checkPlaces(entries, descriptor, directory.offset);
}

/** The list has to fill the place it has: entries behind the counted ones would be seen by other readers only. */
function checkList(entries: readonly CheckedEntry[], directory: ZipDirectory): void {
  const bytes = entries.map(
    ({ entry }) =>
      DIRECTORY_ENTRY.bytes + entry.fileNameLength + entry.extraFieldLength + entry.fileCommentLength,
  );
  if (sum(bytes) !== directory.bytes || entries.length !== directory.entries) throw damagedList();
}

function checkNames(entries: readonly CheckedEntry[]): void {
  const seen = new Set<string>();
  for (const { path } of entries) {
    if (seen.has(path)) throw refusal(path, 'is there twice; keep one of them');
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

/** Entries that share bytes of the file are how a small archive unpacks to a huge one. */
function checkPlaces(entries: readonly CheckedEntry[], descriptor: number, directoryOffset: number): void {
  const inOrder = entries.toSorted(
    (left, right) => left.entry.offsetToLocalFileHeader - right.entry.offsetToLocalFileHeader,
  );
  let end = 0;
  for (const { entry, path } of inOrder) {
    const begin = entry.offsetToLocalFileHeader;
    if (end === 0 && begin > 0) {
      throw new AppError(
        'invalid_bundle',
        'The bundle has other data in front of its first entry (is it self-extracting?); send a plain ZIP.',
      );
    }
    if (begin < end) throw refusal(path, 'overlaps with another entry; pack the bundle again');
    end = begin + localHeaderBytes(entry, path, descriptor) + entry.compressedSize;
    if (end > directoryOffset) throw refusal(path, 'is cut off or overlaps with the list of entries');
  }
}

/** Length of the header in front of an entry's data, which has to say the same as the list. */
function localHeaderBytes(entry: Entry, path: string, descriptor: number): number {
  const differs = () => refusal(path, 'is described in two ways within the archive; pack the bundle again');
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

function damagedList(): AppError {
  return new AppError(
    'invalid_bundle',
    'The bundle is damaged: the list of its entries is not whole; pack it again.',
  );
}
