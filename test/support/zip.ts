/**
 * ZIP archives for tests. Good ones are made by a library; hostile ones are put together here byte by byte, so that any
 * field can lie.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { strToU8, zipSync } from 'fflate';
import { type TempDir, tempDir } from './temp.js';

/** A well-formed archive of these files. */
export function zipOf(files: Readonly<Record<string, string | Uint8Array>>): Buffer {
  const contents = Object.entries(files).map(([name, data]) => [
    name,
    typeof data === 'string' ? strToU8(data) : data,
  ]);
  return Buffer.from(zipSync(Object.fromEntries(contents) as Record<string, Uint8Array>));
}

/** An entry of a hand-made archive. Omitted fields get correct values. */
export interface RawEntry {
  readonly name: string | Buffer;
  /** The uncompressed data. */
  readonly data?: string | Uint8Array;
  /** The data as it is packed, instead of `data`; `size` and `crc` say what it unpacks to. */
  readonly packed?: Buffer;
  /** 0 stored, 8 deflated; others are only written down, the data is stored. */
  readonly method?: number;
  readonly flags?: number;
  readonly crc?: number;
  /** Sizes as the list of entries declares them. */
  readonly size?: number;
  readonly packedSize?: number;
  /** Unix mode: file type and permissions. */
  readonly mode?: number;
  /** In the header in front of the data, where it differs. */
  readonly localName?: string;
  readonly localFlags?: number;
  /** Extra field, the same in both headers. */
  readonly extra?: Buffer;
  /** Sizes and checksum follow the data and are zero in front of it. */
  readonly dataDescriptor?: boolean;
  /** Place of the header in front of the data; an entry that has one writes no data of its own. */
  readonly offset?: number;
}

export interface RawArchive {
  /** In front of everything; offsets do not count it unless `shiftOffsets` is set. */
  readonly prefix?: Buffer;
  readonly shiftOffsets?: boolean;
  readonly comment?: string;
  /** Number of entries as the end record declares it. */
  readonly count?: number;
  /** Number of the disk, as an archive split into parts has it. */
  readonly disk?: number;
  /** Writes ZIP64 records, and these fields of the end record as "look there". */
  readonly zip64?: boolean;
}

const DATA_DESCRIPTOR = 0x0008;

/** Puts an archive together from what its fields are to say. */
export function rawZip(entries: readonly RawEntry[], options: RawArchive = {}): Buffer {
  const { prefix = Buffer.alloc(0), shiftOffsets = false } = options;
  const parts = [prefix];
  let at = shiftOffsets ? prefix.length : 0;
  const list: Buffer[] = [];
  for (const entry of entries) {
    list.push(listEntry(entry, entry.offset ?? at));
    if (entry.offset !== undefined) continue;
    const local = localEntry(entry);
    parts.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(list);
  return Buffer.concat([...parts, directory, endRecords(options, entries.length, directory.length, at)]);
}

function localEntry(entry: RawEntry): Buffer {
  const name = Buffer.from(entry.localName ?? entry.name);
  const { packed, crc, size } = describe(entry);
  const extra = entry.extra ?? Buffer.alloc(0);
  const deferred = entry.dataDescriptor === true;
  const header = fields([
    [4, 0x04034b50],
    [2, 20],
    [2, entry.localFlags ?? flagsOf(entry)],
    [2, entry.method ?? 8],
    [4, 0],
    [4, deferred ? 0 : crc],
    [4, deferred ? 0 : packed.length],
    [4, deferred ? 0 : size],
    [2, name.length],
    [2, extra.length],
  ]);
  const descriptor = fields([
    [4, 0x08074b50],
    [4, crc],
    [4, packed.length],
    [4, size],
  ]);
  return Buffer.concat([header, name, extra, packed, ...(deferred ? [descriptor] : [])]);
}

function listEntry(entry: RawEntry, offset: number): Buffer {
  const name = Buffer.from(entry.name);
  const { packed, crc, size } = describe(entry);
  const extra = entry.extra ?? Buffer.alloc(0);
  const header = fields([
    [4, 0x02014b50],
    [2, (3 << 8) | 20],
    [2, 20],
    [2, flagsOf(entry)],
    [2, entry.method ?? 8],
    [4, 0],
    [4, entry.crc ?? crc],
    [4, entry.packedSize ?? packed.length],
    [4, entry.size ?? size],
    [2, name.length],
    [2, extra.length],
    [2, 0],
    [2, 0],
    [2, 0],
    [4, ((entry.mode ?? 0o100644) << 16) >>> 0],
    [4, offset],
  ]);
  return Buffer.concat([header, name, extra]);
}

function endRecords(
  { comment = '', count, disk = 0, zip64 }: RawArchive,
  entries: number,
  bytes: number,
  at: number,
): Buffer {
  const long = fields([
    [4, 0x06064b50],
    [8, 44],
    [2, 45],
    [2, 45],
    [4, 0],
    [4, 0],
    [8, entries],
    [8, entries],
    [8, bytes],
    [8, at],
  ]);
  const locator = fields([
    [4, 0x07064b50],
    [4, 0],
    [8, at + bytes],
    [4, 1],
  ]);
  const end = fields([
    [4, 0x06054b50],
    [2, disk],
    [2, 0],
    [2, zip64 ? 0xffff : (count ?? entries)],
    [2, zip64 ? 0xffff : (count ?? entries)],
    [4, zip64 ? 0xffffffff : bytes],
    [4, zip64 ? 0xffffffff : at],
    [2, Buffer.byteLength(comment)],
  ]);
  return Buffer.concat([...(zip64 ? [long, locator] : []), end, Buffer.from(comment)]);
}

function describe({ data = '', method = 8, ...entry }: RawEntry): {
  packed: Buffer;
  crc: number;
  size: number;
} {
  if (entry.packed) return { packed: entry.packed, crc: entry.crc ?? 0, size: entry.size ?? 0 };
  const plain = Buffer.from(data);
  return { packed: method === 8 ? deflateRawSync(plain) : plain, crc: crc32(plain), size: plain.length };
}

function flagsOf({ flags = 0, dataDescriptor }: RawEntry): number {
  return dataDescriptor ? flags | DATA_DESCRIPTOR : flags;
}

/** Little-endian numbers: how many bytes, and what. */
function fields(numbers: readonly (readonly [bytes: 2 | 4 | 8, value: number])[]): Buffer {
  return Buffer.concat(
    numbers.map(([bytes, value]) => {
      const field = Buffer.alloc(8);
      field.writeBigUInt64LE(BigInt(value));
      return field.subarray(0, bytes);
    }),
  );
}

/** A folder to write archives into. */
export class ZipFolder {
  #made = 0;

  private constructor(readonly folder: TempDir) {}

  static async open(): Promise<ZipFolder> {
    return new ZipFolder(await tempDir('zip'));
  }

  /** Writes an archive, and returns its path. */
  async write(archive: Uint8Array): Promise<string> {
    this.#made += 1;
    const path = join(this.folder.path, `${this.#made}.zip`);
    await writeFile(path, archive);
    return path;
  }

  remove(): Promise<void> {
    return this.folder.remove();
  }
}
