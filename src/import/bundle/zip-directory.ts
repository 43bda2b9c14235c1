/**
 * Locates the central directory of a ZIP archive by the end record, and determines its size before anything reads it.
 * Only plain archives are accepted: one part, consistent, without other data before, between or after its parts.
 */
import { fstatSync, readSync } from 'node:fs';
import type { AppError } from '../../errors.js';
import { bundleError } from './errors.js';

export interface ZipDirectory {
  readonly entries: number;
  /** Offset of the directory in the file. */
  readonly offset: number;
  /** Length of the directory, bytes. */
  readonly bytes: number;
  /** Offset of the end record from the end of the file, bytes. */
  readonly tailBytes: number;
}

const END = { signature: 0x06054b50, bytes: 22 };
const END64 = { signature: 0x06064b50, bytes: 56 };
const LOCATOR64 = { signature: 0x07064b50, bytes: 20 };
const LOCAL_FILE_SIGNATURE = 0x04034b50;
const MAX_COMMENT_BYTES = 0xffff;
/** Values of fields of 2 and 4 bytes whose actual value is in the ZIP64 record. */
const MAX_16 = 0xffff;
const MAX_32 = 0xffffffff;

interface Counts {
  readonly entries: number;
  readonly bytes: number;
  readonly offset: number;
}

/** @throws AppError invalid_bundle when the file is not a plain ZIP archive, or is empty */
export function findDirectory(descriptor: number): ZipDirectory {
  const size = fstatSync(descriptor).size;
  if (size === 0) throw archiveError('is empty (0 bytes)');
  const tailBytes = findEndRecord(descriptor, size);
  const endAt = size - tailBytes;
  const end = readAt(descriptor, endAt, END.bytes);
  if (end.readUInt16LE(4) !== end.readUInt16LE(6) || end.readUInt16LE(8) !== end.readUInt16LE(10)) {
    throw archiveError('is one part of an archive that was split into several; send it in one file');
  }
  const declared = {
    entries: end.readUInt16LE(10),
    bytes: end.readUInt32LE(12),
    offset: end.readUInt32LE(16),
  };
  const zip64 = readZip64(descriptor, endAt);
  const counts = zip64 ? reconcile(declared, zip64.counts) : declared;
  const directoryEnd = zip64?.at ?? endAt;
  if (counts.entries === 0) throw archiveError('has no files in it');
  if (counts.offset + counts.bytes < directoryEnd) {
    throw archiveError(
      'has other data before its entries or between its parts (is it self-extracting?); send a plain ZIP',
    );
  }
  if (counts.offset + counts.bytes > directoryEnd) throw archiveError('is damaged: parts of it are missing');
  return { ...counts, tailBytes };
}

/** Reads exactly this many bytes. */
export function readAt(descriptor: number, position: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  if (readSync(descriptor, buffer, 0, bytes, position) < bytes) {
    throw archiveError('is damaged: parts of it are missing');
  }
  return buffer;
}

/** Offset of the end record from the end of the file; the record may be followed by a comment. */
function findEndRecord(descriptor: number, size: number): number {
  const tail = readAt(
    descriptor,
    Math.max(0, size - END.bytes - MAX_COMMENT_BYTES),
    Math.min(size, END.bytes + MAX_COMMENT_BYTES),
  );
  let foundSignature = false;
  for (let at = tail.length - END.bytes; at >= 0; at -= 1) {
    if (tail.readUInt32LE(at) !== END.signature) continue;
    if (at + END.bytes + tail.readUInt16LE(at + 20) === tail.length) return tail.length - at;
    foundSignature = true;
  }
  if (foundSignature) throw archiveError('has other data after its end, or is truncated');
  if (size >= 4 && readAt(descriptor, 0, 4).readUInt32LE() === LOCAL_FILE_SIGNATURE) {
    throw archiveError('is truncated: the directory at its end is missing');
  }
  throw archiveError('is not a ZIP file');
}

function readZip64(descriptor: number, endAt: number): { at: number; counts: Counts } | undefined {
  if (endAt < LOCATOR64.bytes) return undefined;
  const locator = readAt(descriptor, endAt - LOCATOR64.bytes, LOCATOR64.bytes);
  if (locator.readUInt32LE() !== LOCATOR64.signature) return undefined;
  const at = Number(locator.readBigUInt64LE(8));
  if (at + END64.bytes !== endAt - LOCATOR64.bytes) throw contradiction();
  const record = readAt(descriptor, at, END64.bytes);
  if (record.readUInt32LE() !== END64.signature) throw contradiction();
  const [entries, bytes, offset] = [32, 40, 48].map((field) => Number(record.readBigUInt64LE(field)));
  return { at, counts: { entries: entries ?? 0, bytes: bytes ?? 0, offset: offset ?? 0 } };
}

/** The values of the ZIP64 record, which must agree with those of the short record that are not placeholders. */
function reconcile(short: Counts, long: Counts): Counts {
  const agree = (left: number, right: number, max: number) => left === right || left === max;
  const allAgree =
    agree(short.entries, long.entries, MAX_16) &&
    agree(short.bytes, long.bytes, MAX_32) &&
    agree(short.offset, long.offset, MAX_32);
  if (!allAgree) throw contradiction();
  return long;
}

function contradiction(): AppError {
  return archiveError('has records with contradictory sizes or offsets; pack it again');
}

function archiveError(reason: string): AppError {
  return bundleError(`The bundle ${reason}.`);
}
