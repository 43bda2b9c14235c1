/** Reading ZIP archives: valid ones from several tools, and hostile ones. */
import { readdir } from 'node:fs/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import type { ErrorCode } from '../../../src/errors.js';
import { AppError } from '../../../src/errors.js';
import { type ArchiveLimits, openArchive } from '../../../src/import/bundle/archive.js';
import { type RawArchive, type RawEntry, rawZip, ZipFolder, zipOf } from '../../support/zip.js';

const LIMITS: ArchiveLimits = { entries: 100, unpackedBytes: 1_000_000 };
const FILE: RawEntry = { name: 'openapi.yaml', data: 'openapi: 3.0.3' };

describe('archive of a bundle', () => {
  let zips: ZipFolder;
  before(async () => {
    zips = await ZipFolder.open();
  });
  after(() => zips.remove());

  /** Opens an archive, and unpacks all of it. */
  async function contentsOf(
    archive: Uint8Array,
    limits: Partial<ArchiveLimits> = {},
  ): Promise<Record<string, string>> {
    const contents: Record<string, string> = {};
    for (const file of await openArchive(await zips.write(archive), { ...LIMITS, ...limits })) {
      contents[file.path] = (await file.read()).toString();
    }
    return contents;
  }

  async function expectRejected(
    archive: Uint8Array,
    message: RegExp,
    { code = 'invalid_bundle', ...limits }: Partial<ArchiveLimits> & { code?: ErrorCode } = {},
  ): Promise<void> {
    const outcome = await contentsOf(archive, limits).catch((thrown: unknown) => thrown);
    expect(outcome).to.be.instanceOf(AppError);
    const error = outcome as AppError;
    expect(error.message).to.match(message);
    expect(error.code).to.equal(code);
  }

  const raw = (entry: Partial<RawEntry>, options?: RawArchive) => rawZip([{ ...FILE, ...entry }], options);

  describe('archives that are read', () => {
    const expected = { 'openapi.yaml': 'openapi: 3.0.3' };
    const readable: Record<string, Buffer> = {
      'as a library makes it': zipOf({ 'openapi.yaml': 'openapi: 3.0.3' }),
      'with deflated entries': raw({}),
      'with stored entries': raw({ method: 0 }),
      'with data descriptors, as streaming tools write them': raw({ dataDescriptor: true }),
      'with a comment': raw({}, { comment: 'made by hand '.repeat(50) }),
      'with a comment of the largest size': raw({}, { comment: 'c'.repeat(0xffff) }),
      'with ZIP64 records': raw({}, { zip64: true }),
      'with backslashes': rawZip([{ name: 'handlers\\', method: 0 }, FILE]),
      'with folders': rawZip([{ name: 'handlers/', method: 0, mode: 0o040755 }, FILE]),
      'with "./" in front of names': raw({ name: './openapi.yaml' }),
      'with an extra field': raw({ extra: Buffer.from([0x55, 0x54, 1, 0, 0]) }),
      'with an extra field of the largest size': raw({
        extra: Buffer.concat([Buffer.from([1, 9, 0xfb, 0xff]), Buffer.alloc(0xfffb)]),
      }),
    };
    for (const [what, archive] of Object.entries(readable)) {
      it(`reads an archive ${what}`, async () => {
        expect(await contentsOf(archive)).to.deep.equal(expected);
      });
    }

    it('reads an archive with empty files', async () => {
      const archive = rawZip([
        { name: 'stored', method: 0 },
        { name: 'deflated' },
        { name: 'streamed', dataDescriptor: true },
        FILE,
      ]);
      expect(await contentsOf(archive)).to.deep.equal({
        stored: '',
        deflated: '',
        streamed: '',
        ...expected,
      });
    });

    it('reads an archive with names beyond ASCII, which it normalizes', async () => {
      expect(await contentsOf(raw({ name: 'gro\u0308\u00dfe.rs' }))).to.have.all.keys('gr\u00f6\u00dfe.rs');
    });

    it('reads backslashes in the names of an archive as slashes', async () => {
      expect(await contentsOf(raw({ name: 'handlers\\get_pet.rs' }))).to.have.all.keys('handlers/get_pet.rs');
    });

    it('reads an archive with file sizes in ZIP64 fields', async () => {
      const data = 'openapi: 3.0.3';
      const extra = Buffer.alloc(20);
      extra.writeUInt16LE(1, 0);
      extra.writeUInt16LE(16, 2);
      extra.writeBigUInt64LE(BigInt(data.length), 4);
      extra.writeBigUInt64LE(BigInt(data.length), 12);
      const archive = raw({ data, method: 0, size: 0xffffffff, packedSize: 0xffffffff, extra });
      expect(await contentsOf(archive)).to.deep.equal(expected);
    });

    it('reads an archive up to the limits', async () => {
      const archive = rawZip([FILE, { name: 'README.md', data: 'x' }]);
      expect(await contentsOf(archive, { entries: 2, unpackedBytes: 15 })).to.have.keys(
        'openapi.yaml',
        'README.md',
      );
    });
  });

  describe('archives that are rejected', () => {
    const sound = raw({});
    const rejected: Record<string, [archive: Uint8Array, message: RegExp]> = {
      'without bytes': [Buffer.alloc(0), /is empty \(0 bytes\)/],
      'without entries': [rawZip([]), /has no files in it/],
      'when it is text': [Buffer.from('openapi: 3.0.3\n'.repeat(100)), /is not a ZIP file/],
      'when it is a few bytes': [Buffer.from('PK'), /is not a ZIP file/],
      'when it is truncated': [sound.subarray(0, -30), /is truncated/],
      'when its last byte is missing': [raw({}, { comment: 'abc' }).subarray(0, -1), /is truncated/],
      'with bytes after its end': [
        Buffer.concat([sound, Buffer.from('more')]),
        /has other data after its end/,
      ],
      'with bytes before its entries, not in the offsets': [
        raw({}, { prefix: Buffer.from('#!/bin/sh\n') }),
        /before its entries/,
      ],
      'with bytes before its entries, in the offsets': [
        raw({}, { prefix: Buffer.from('#!/bin/sh\n'), shiftOffsets: true }),
        /before its first entry/,
      ],
      'in several parts': [raw({}, { disk: 1 }), /one part of an archive/],
      'when bytes in its middle are missing': [
        Buffer.concat([sound.subarray(0, 10), sound.subarray(20)]),
        /parts of it are missing/,
      ],
      'with a count below the entries of its directory': [
        rawZip([FILE, { name: 'x' }], { count: 1 }),
        /directory is incomplete/,
      ],
      'with a count above the entries of its directory': [
        rawZip([FILE], { count: 2 }),
        /directory cannot be read/,
      ],
      'with an encrypted entry': [
        raw({ flags: 1 }),
        /"openapi\.yaml" is encrypted; pack the bundle without a password/,
      ],
      'with an entry encrypted only by its local header': [
        raw({ localFlags: 1 }),
        /"openapi\.yaml" has a local header that differs/,
      ],
      'with a symbolic link': [raw({ mode: 0o120777 }), /"openapi\.yaml" is a symbolic link/],
      'with another compression method': [
        raw({ method: 12 }),
        /"openapi\.yaml" is packed by a method.*\(12\)/,
      ],
      'with an entry twice': [rawZip([FILE, FILE]), /"openapi\.yaml" occurs twice/],
      'with an entry twice, once with backslashes': [
        rawZip([{ name: 'src/a.rs' }, { name: 'src\\a.rs' }]),
        /"src\/a\.rs" occurs twice/,
      ],
      'with an entry twice, once with a dot segment': [
        rawZip([FILE, { name: './openapi.yaml' }]),
        /occurs twice/,
      ],
      'with a file and a folder of the same name': [
        rawZip([{ name: 'a' }, { name: 'a/' }]),
        /"a" occurs twice/,
      ],
      'with another name in a local header': [
        raw({ localName: 'other' }),
        /"openapi\.yaml" has a local header that differs/,
      ],
      'with a wrong checksum': [raw({ crc: 1 }), /"openapi\.yaml" is damaged: its checksum/],
      'with entries at the same offset': [
        rawZip([FILE, { name: 'b', offset: 0 }]),
        /overlaps with another entry/,
      ],
      'with an entry within another': [
        rawZip([
          { name: 'a', method: 0, data: rawZip([{ name: 'b', method: 0 }]) },
          { name: 'b', method: 0, offset: 31 },
        ]),
        /"b" overlaps with another entry/,
      ],
      'with an entry that overlaps its directory': [
        raw({ method: 0, packedSize: 100, size: 100 }),
        /overlaps with the directory/,
      ],
      'with an entry after its end': [
        rawZip([FILE, { name: 'b', offset: 1_000_000 }]),
        /parts of it are missing/,
      ],
      'with impossible 64-bit sizes': [
        raw({
          size: 0xffffffff,
          extra: Buffer.concat([Buffer.from([1, 0, 8, 0]), Buffer.alloc(8, 0xff)]),
        }),
        /"openapi\.yaml" has an invalid size/,
      ],
      'with missing 64-bit sizes': [raw({ size: 0xffffffff }), /"openapi\.yaml" has an invalid size/],
      'with data that is not deflated': [
        rawZip([{ name: 'a', method: 0, data: 'xxxxxxxxxx' }]).map((byte, at, bytes) =>
          // the method, in the local header and in the directory.
          at === 8 || at === bytes.indexOf('PK\x01\x02') + 10 ? 8 : byte,
        ),
        /"a" is damaged and cannot be unpacked/,
      ],
      'with truncated data': [raw({ data: 'x'.repeat(1000), packedSize: 4 }), /"openapi\.yaml" is damaged/],
      'with a file larger than declared': [
        raw({ size: 3 }),
        /"openapi\.yaml" unpacks to more than its declared size/,
      ],
      'with a file smaller than declared': [
        raw({ size: 300 }),
        /"openapi\.yaml" unpacks to less than its declared size/,
      ],
      'with no data where a file is declared': [
        rawZip([{ name: 'a', method: 0, size: 5 }, FILE]),
        /"a" unpacks to less than its declared size/,
      ],
    };
    for (const [what, [archive, message]] of Object.entries(rejected)) {
      it(`rejects an archive ${what}`, () => expectRejected(archive, message));
    }

    const names: Record<string, [name: string | Buffer, message: RegExp]> = {
      'a path outside of the bundle': ['../openapi.yaml', /"\.\.\/openapi\.yaml" has "\.\." in its path/],
      'a path that leaves the bundle and returns': ['a/../../b', /has "\.\." in its path/],
      'a path outside of the bundle, with backslashes': ['handlers\\..\\..\\x.rs', /has "\.\." in its path/],
      'an absolute path': ['/etc/passwd', /"\/etc\/passwd" has an absolute path/],
      'an absolute path with a drive': ['C:\\Windows\\x.rs', /"C:\/Windows\/x\.rs" has an absolute path/],
      'a path relative to a drive': ['c:x.rs', /has an absolute path/],
      'a UNC path': ['\\\\server\\share', /has an absolute path/],
      'a NUL': ['a.rs\0.png', /"a\.rs\\u0000\.png" has a control character/],
      'a line break': ['a\n.rs', /has a control character/],
      'no name': ['', /"" has no name/],
      'a name that is not UTF-8': [
        Buffer.from([0x67, 0x72, 0xf6, 0xdf]),
        /"gr\u00f6\u00df" has a name that is not UTF-8/,
      ],
      'a very long name': ['x'.repeat(1025), /"x{200}\.\.\." has a name of more than 1024 bytes/],
    };
    for (const [what, [name, message]] of Object.entries(names)) {
      it(`rejects an archive that has an entry with ${what}`, () =>
        expectRejected(rawZip([{ name, data: 'x' }]), message));
    }

    it('rejects an archive with more entries than allowed before it reads the directory', async () => {
      // Reading this directory would fail with another error.
      const archive = rawZip([FILE], { count: 65_000 });
      await expectRejected(
        archive,
        /has 65000 files and folders; at most 100 are allowed \(BUNDLE_ENTRIES_LIMIT\)/,
      );
    });

    it('rejects an archive with 100,000 entries', async () => {
      const names = Array.from({ length: 100_000 }, (_, index) => ({ name: `${index}`, method: 0 }));
      await expectRejected(rawZip(names, { zip64: true }), /has 100000 files and folders/, {
        entries: 65_535,
      });
    });

    it('rejects an archive whose unpacked size exceeds the limit', async () => {
      const archive = rawZip([FILE, { name: 'b', data: 'x'.repeat(100) }]);
      await expectRejected(
        archive,
        /unpacks to 114 bytes; at most 113 are allowed \(BUNDLE_UNPACKED_LIMIT_BYTES\)/,
        {
          code: 'body_too_large',
          unpackedBytes: 113,
        },
      );
    });
  });

  it('reads or rejects an archive without other errors, whatever bytes are changed', async () => {
    const sound = [
      rawZip([
        FILE,
        { name: 'src/a.rs', data: '// a', dataDescriptor: true },
        { name: 'b', method: 0, data: 'b' },
      ]),
      rawZip([FILE, { name: 'src/a.rs', data: '// a' }], { zip64: true, comment: 'made by hand' }),
    ];
    const changes = fc.array(fc.tuple(fc.nat(), fc.constantFrom(0, 1, 2, 8, 0x2e, 0x7f, 0x80, 0xff)), {
      minLength: 1,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...sound), changes, async (archive, places) => {
        const changed = Buffer.from(archive);
        for (const [place, byte] of places) changed[place % changed.length] = byte;
        const outcome = await contentsOf(changed).catch((thrown: unknown) => thrown);
        if (outcome instanceof Error) expect(outcome).to.be.instanceOf(AppError);
      }),
      { numRuns: 500 },
    );
  });

  it('writes nothing to disk when it reads an archive', async () => {
    const before = await readdir(zips.folder.path);
    await contentsOf(zipOf({ 'openapi.yaml': 'x', 'handlers/a.rs': 'y' }));
    expect(await readdir(zips.folder.path)).to.have.length(before.length + 1);
  });
});
