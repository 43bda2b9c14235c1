/** Damaged streams of frames, read by both codecs. */
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import { HEADER_BYTES, MAX_BODY_BYTES, MAX_HEAD_BYTES } from '../../src/wire/codec.js';
import { damagedStream, encodeFrame, type ReadStream, readStream, wholeStream } from '../support/frames.js';
import { type TempDir, tempDir } from '../support/temp.js';

const sizes = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 5 });

/** A decoder keeps what has arrived of a frame, and doubles its memory when that gets tight. */
const LEAST_BYTES = 4 * 1024;
const mostFor = (stream: Buffer) => Math.max(LEAST_BYTES, 4 * stream.length);

describe('damaged streams of frames', () => {
  it('reads a damaged stream to the same end however it is cut, in memory for what has arrived', () => {
    fc.assert(
      fc.property(damagedStream, sizes, (stream, pieces) => {
        const inPieces = readStream(stream, pieces);
        const byByte = readStream(stream, [1]);
        expect(inPieces.end).to.equal(byByte.end);
        // Frames that came in one piece with the damage are given up with the connection.
        const whole = isWhole(byByte) ? byByte.frames : byByte.frames.slice(0, inPieces.frames.length);
        expect(inPieces.frames).to.deep.equal(whole);
        expect(inPieces.mostBytes).to.be.at.most(mostFor(stream));
      }),
      { numRuns: 400 },
    );
  });

  it('decodes the frames before the damage in a stream', () => {
    fc.assert(
      fc.property(wholeStream, fc.integer({ min: 2, max: 255 }), sizes, (stream, version, pieces) => {
        const whole = readStream(stream, pieces);
        const damaged = readStream(Buffer.concat([stream, Buffer.from([version])]), pieces);
        expect(damaged.end).to.equal('version');
        expect(damaged.frames.length).to.be.at.most(whole.frames.length);
        expect(damaged.frames).to.deep.equal(whole.frames.slice(0, damaged.frames.length));
      }),
    );
  });

  it('reserves no memory for a length that a frame only announces', () => {
    const lengths = fc.record({
      head: fc.oneof(
        fc.integer({ min: 0, max: 0xffff_ffff }),
        fc.constantFrom(MAX_HEAD_BYTES, MAX_HEAD_BYTES + 1),
      ),
      body: fc.oneof(
        fc.integer({ min: 0, max: 0xffff_ffff }),
        fc.constantFrom(MAX_BODY_BYTES, MAX_BODY_BYTES + 1),
      ),
    });
    fc.assert(
      fc.property(lengths, fc.uint8Array({ maxLength: 100 }), ({ head, body }, some) => {
        const header = encodeFrame('response', 1, '', Buffer.alloc(0));
        expect(header).to.have.length(HEADER_BYTES);
        header.writeUInt32BE(head, 8);
        header.writeUInt32BE(body, 12);
        const { end, mostBytes } = readStream(Buffer.concat([header, some]), [7]);
        if (head > MAX_HEAD_BYTES) expect(end).to.equal('head_too_long');
        else if (body > MAX_BODY_BYTES) expect(end).to.equal('body_too_long');
        expect(mostBytes).to.equal(LEAST_BYTES);
      }),
      { numRuns: 400 },
    );
  });

  describe('the codec of the SDK', function () {
    this.timeout(120_000);
    let folder: TempDir;
    let program: string;
    before(async () => {
      folder = await tempDir('frames');
      program = join(folder.path, 'read_frames');
      const source = fileURLToPath(new URL('../../../test/wire/rust/read_frames.rs', import.meta.url));
      await promisify(execFile)('rustc', ['--edition=2021', '-Copt-level=1', '-o', program, source]);
    });
    after(() => folder?.remove());

    it('reads the same frames and the same end from damaged streams as the codec of the SDK', async () => {
      const seed = Date.now() % 0x7fff_ffff;
      const sample = (streams: fc.Arbitrary<Buffer>, numRuns: number) =>
        fc.sample(streams, { seed, numRuns });
      const cases = [...sample(wholeStream, 100), ...sample(damagedStream, 500)];
      const input = cases.flatMap((stream) => {
        const length = Buffer.alloc(4);
        length.writeUInt32BE(stream.length);
        return [length, stream];
      });
      const found = await readByRust(program, Buffer.concat(input));
      expect(found).to.have.length(cases.length);
      for (const [at, stream] of cases.entries()) {
        const ours = readStream(stream, [1]);
        const theirs = found[at];
        expect(theirs?.end, `case ${at} of seed ${seed}`).to.equal(ours.end);
        // What one has written the other reads; it makes text of a head that is none in the same way.
        const read = theirs?.frames.flatMap((hex) => readStream(Buffer.from(hex, 'hex'), [1]).frames);
        expect(read, `case ${at} of seed ${seed}`).to.deep.equal(ours.frames);
      }
    });
  });
});

function isWhole({ end }: ReadStream): boolean {
  return end === 'complete' || end === 'incomplete';
}

interface Found {
  /** Whole frames, encoded again. */
  readonly frames: readonly string[];
  readonly end: string;
}

function readByRust(program: string, input: Buffer): Promise<Found[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code !== 0) reject(new Error(`read_frames ended with ${code}`));
      else
        resolve(
          output
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as Found),
        );
    });
    child.stdin.end(input);
  });
}
