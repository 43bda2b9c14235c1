/**
 * Bundles that are small and unpack to gigabytes. Each is read by a process of its own with little heap, which may
 * write no file at all, and says at its end how much memory it took at most.
 */

import { constants, crc32, deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { execa } from 'execa';
import type { ImportLimits } from '../../../src/import/limits.js';
import { type RawEntry, rawZip, ZipFolder } from '../../support/zip.js';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Memory limit beyond that of reading a small bundle. */
const ALLOWED_BYTES = 96 * MIB;
const LIMITS: ImportLimits = {
  entries: 10_000,
  unpackedBytes: 256 * MIB,
  specBytes: 32 * MIB,
  operations: 5_000,
  codeBytes: 16 * MIB,
  sourceFiles: 1_000,
};

const READ_BUNDLE = new URL('../../../src/import/bundle/read-bundle.js', import.meta.url).href;
const PROGRAM = `
import { writeFile } from 'node:fs/promises';
import { readBundle } from ${JSON.stringify(READ_BUNDLE)};
const [file, limits] = process.argv.slice(1);
const writing = await writeFile(file + '.new', 'x').catch((error) => error.code);
const { error = null, code = null } = await readBundle(file, JSON.parse(limits)).then(
  () => ({}),
  (thrown) => ({ error: thrown.message, code: thrown.code }),
);
console.log(JSON.stringify({ error, code, writing, bytes: process.resourceUsage().maxRSS * 1024 }));
`;
const NO_WRITING = [
  process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission',
  '--allow-fs-read=*',
];

interface Outcome {
  readonly error: string | null;
  readonly code: string | null;
  /** Error of an attempt to write a file. */
  readonly writing: string;
  /** Peak memory. */
  readonly bytes: number;
}

const SPEC: RawEntry = {
  name: 'openapi.yaml',
  data: `{"openapi":"3.0.3","info":{"title":"T","version":"1"},"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"description":"ok"}}}}}}`,
};

/** A GiB of zeros compressed to one MiB, by repeating a block. */
const PACKED_GIB = Buffer.concat([
  ...Array<Buffer>(GIB / MIB).fill(
    deflateRawSync(Buffer.alloc(MIB), { finishFlush: constants.Z_FULL_FLUSH }),
  ),
  Buffer.from([3, 0]),
]);

/** An archive of the document and an entry that unpacks to a GiB of zeros, with this declared size. */
function withGib(name: string, size: number): Buffer {
  return rawZip([SPEC, { name, packed: PACKED_GIB, size }]);
}

/** A block of 38 KB, shared by 60 entries, that unpacks to 38 MiB. */
function overlappingBomb(): Buffer {
  const size = 38 * MIB;
  const block = { name: 'handlers/0.rs', packed: deflateRawSync(Buffer.alloc(size)), size };
  const sharing = Array.from({ length: 59 }, (_, index) => ({
    ...block,
    name: `handlers/${index + 1}.rs`,
    offset: 0,
  }));
  return rawZip([block, ...sharing]);
}

describe('bundles that unpack to gigabytes', function () {
  this.timeout(60_000);
  let zips: ZipFolder;
  let small: Outcome;
  before(async () => {
    zips = await ZipFolder.open();
    small = await read(rawZip([SPEC]));
  });
  after(() => zips.remove());

  async function read(archive: Buffer, limits: Partial<ImportLimits> = {}): Promise<Outcome> {
    const file = await zips.write(archive);
    const program = [
      '--input-type=module',
      '--eval',
      PROGRAM,
      file,
      JSON.stringify({ ...LIMITS, ...limits }),
    ];
    const { stdout } = await execa(process.execPath, ['--max-old-space-size=64', ...NO_WRITING, ...program], {
      env: { NODE_NO_WARNINGS: '1' },
    });
    return JSON.parse(stdout) as Outcome;
  }

  async function expectRejected(
    archive: Buffer,
    message: RegExp,
    code: string,
    limits?: Partial<ImportLimits>,
  ): Promise<void> {
    const outcome = await read(archive, limits);
    expect(outcome.error).to.match(message);
    expect(outcome.code).to.equal(code);
    expect(outcome.bytes).to.be.below(small.bytes + ALLOWED_BYTES);
  }

  it('reads a small bundle without write access to the file system', () => {
    expect(small).to.include({ error: null, writing: 'ERR_ACCESS_DENIED' });
  });

  it('rejects a bundle of 42 KB with overlapping entries when its total exceeds the limit', async () => {
    const bomb = overlappingBomb();
    expect(bomb.length).to.be.below(43_000);
    await expectRejected(
      bomb,
      /^The bundle unpacks to \d{10} bytes; at most \d+ are allowed/,
      'body_too_large',
    );
  });

  it('rejects a bundle of 42 KB with overlapping entries for the overlap when the limit is high', () =>
    expectRejected(overlappingBomb(), /overlaps with another entry/, 'invalid_bundle', {
      unpackedBytes: 100 * GIB,
    }));

  it('rejects a handler of a GiB with a declared size of a KiB', () =>
    expectRejected(
      withGib('handlers/a.rs', 1024),
      /"handlers\/a\.rs" unpacks to more than its declared size/,
      'invalid_bundle',
    ));

  it('rejects a manifest of a GiB with a declared size of a KiB', () =>
    expectRejected(
      withGib('bundle.yaml', 1024),
      /"bundle\.yaml" unpacks to more than its declared size/,
      'invalid_bundle',
    ));

  it('rejects a handler with a declared size of a GiB', () =>
    expectRejected(withGib('handlers/a.rs', GIB), /^The bundle unpacks to/, 'body_too_large'));

  it('rejects a handler with a declared size of a GiB within the limit of the bundle', () =>
    expectRejected(
      withGib('handlers/a.rs', GIB),
      /^handlers\/a\.rs has 1073741824 bytes; at most 16777216 are allowed/,
      'body_too_large',
      { unpackedBytes: 2 * GIB },
    ));

  it('does not unpack an image of a GiB in a bundle', async () => {
    const outcome = await read(withGib('picture.png', GIB), { unpackedBytes: 2 * GIB });
    expect(outcome.error).to.equal(null);
    expect(outcome.bytes).to.be.below(small.bytes + ALLOWED_BYTES);
  });

  for (const [title, nameOf] of [
    ['unused handlers of a bundle', (index: number) => `handlers/${index}.rs`],
    ['files that may be modules', (index: number) => `lib/${index}/mod.rs`],
  ] as const)
    it(`holds ${title} in memory one at a time`, async () => {
      const code = Buffer.alloc(MIB, ' ');
      const packed = { packed: deflateRawSync(code), size: MIB, crc: crc32(code) };
      const files = Array.from({ length: 250 }, (_, index) => ({ name: nameOf(index), ...packed }));
      const outcome = await read(rawZip([SPEC, ...files]));
      expect(outcome.error).to.equal(null);
      expect(outcome.bytes).to.be.below(small.bytes + ALLOWED_BYTES);
    });
});
