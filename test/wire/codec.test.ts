import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  type Frame,
  FrameDecoder,
  FrameEncoder,
  HEADER_BYTES,
  MAX_BODY_BYTES,
  MAX_HEAD_BYTES,
  ProtocolError,
} from '../../src/wire/codec.js';
import { encodeFrame } from '../support/frames.js';

interface GoldenFrame {
  readonly name: string;
  readonly hex: string;
  readonly frame?: {
    readonly kind: number;
    readonly number: number;
    readonly head: string;
    readonly body_hex: string;
  };
  readonly error?: string;
}

const KINDS = { request: 1, response: 2 } as const;

async function golden(): Promise<GoldenFrame[]> {
  const file = new URL('../../../test/golden/frames.json', import.meta.url);
  return JSON.parse(await readFile(file, 'utf8')) as GoldenFrame[];
}

/** A frame of version 2. */
const isOfStream = ({ kind }: { readonly kind: number }): boolean => kind > KINDS.response;

describe('frame codec', () => {
  it('reads the golden frames, and writes the same bytes', async () => {
    for (const { name, hex, frame } of await golden()) {
      if (!frame || isOfStream(frame)) continue;
      const bytes = Buffer.from(hex, 'hex');
      const [first, ...more] = read(new FrameDecoder(), bytes);
      expect(more, name).to.be.empty;
      expect(first && plain(first), name).to.deep.equal(frame);
      if (!first) throw new Error(name);
      expect(encodeFrame(first.kind, first.number, first.head, first.body).toString('hex'), name).to.equal(
        hex,
      );
    }
  });

  it('refuses the golden frames that are wrong, and waits for more of those that are cut off', async () => {
    for (const { name, hex, error } of await golden()) {
      if (error === undefined) continue;
      const decoder = new FrameDecoder();
      const reading = () => read(decoder, Buffer.from(hex, 'hex'));
      if (error === 'incomplete') {
        expect(reading(), name).to.be.empty;
        expect(decoder.isMidFrame, name).to.equal(hex !== '');
      } else {
        expect(reading, name).to.throw(ProtocolError);
      }
    }
  });

  it('refuses the golden frames of streams, which services do not have', async () => {
    const frames = (await golden()).filter(({ frame }) => frame && isOfStream(frame));
    expect(frames).not.to.be.empty;
    for (const { name, hex } of frames) {
      expect(() => read(new FrameDecoder(), Buffer.from(hex, 'hex')), name).to.throw(
        ProtocolError,
        'version 2',
      );
    }
  });

  it('reads the same frames however the stream is cut in two', async () => {
    const frames = (await golden()).filter(({ frame }) => frame && !isOfStream(frame));
    const stream = Buffer.concat(frames.map(({ hex }) => Buffer.from(hex, 'hex')));
    const expected = frames.map(({ frame }) => frame);
    for (let cut = 0; cut <= stream.length; cut++) {
      const decoder = new FrameDecoder();
      const frames = [...read(decoder, stream.subarray(0, cut)), ...read(decoder, stream.subarray(cut))];
      expect(frames.map(plain), `cut at ${cut}`).to.deep.equal(expected);
      expect(decoder.isMidFrame).to.equal(false);
    }
  });

  it('reads any frames as they were written, in pieces of any size', () => {
    const frame = fc.record({
      kind: fc.constantFrom('request' as const, 'response' as const),
      number: fc.integer({ min: 0, max: 0xffff_ffff }),
      // Text with half a surrogate pair has no UTF-8.
      head: fc.string({ unit: 'grapheme', maxLength: 40 }),
      // Small ones are copied, large ones are not.
      body: fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.uint8Array({ minLength: 2_000, maxLength: 2_100 }),
      ),
    });
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 10 }),
        fc.array(fc.integer({ min: 1, max: 1_000 })),
        (frames, sizes) => {
          const encoder = new FrameEncoder();
          for (const { kind, number, head, body } of frames) encoder.add(kind, number, head, body);
          const decoder = new FrameDecoder();
          const got = pieces(Buffer.concat(encoder.take()), sizes).flatMap((piece) => read(decoder, piece));
          expect(got.map(plain)).to.deep.equal(
            frames.map((each) => plain({ ...each, body: Buffer.from(each.body) })),
          );
        },
      ),
    );
  });

  it('reads a frame far larger than its pieces', () => {
    const body = Buffer.alloc(10 * 1024 * 1024, 'x');
    const decoder = new FrameDecoder();
    const got = pieces(encodeFrame('request', 7, '{}', body), [65_536]).flatMap((piece) =>
      read(decoder, piece),
    );
    expect(got).to.have.length(1);
    expect(got[0]?.body.equals(body)).to.equal(true);
  });

  it('allocates separate memory for a large frame once enough of it has arrived, and reads on', () => {
    const large = encodeFrame('response', 1, '{}', Buffer.alloc(8 * 1024 * 1024, 'x'));
    const small = encodeFrame('response', 2, '{}', Buffer.from('y'));
    const decoder = new FrameDecoder();
    const most: number[] = [];
    const got = pieces(Buffer.concat([small, large, small, large]), [50_000]).flatMap((piece) => {
      const frames = read(decoder, piece);
      most.push(decoder.space().buffer.byteLength);
      return frames;
    });
    expect(got.map(({ ownsBody }) => ownsBody)).to.deep.equal([false, true, false, true]);
    // The bodies are still what they were, although much has been read since.
    expect(got[1]?.body.equals(Buffer.alloc(8 * 1024 * 1024, 'x'))).to.equal(true);
    expect(most[5]).to.be.at.most(1024 * 1024);
    expect(Math.max(...most)).to.equal(large.length);
  });

  it('rejects a length over its limit, however little of the frame has arrived', () => {
    for (const [at, limit] of [
      [8, MAX_HEAD_BYTES],
      [12, MAX_BODY_BYTES],
    ] as const) {
      const header = encodeFrame('request', 1, '', Buffer.alloc(0));
      expect(header).to.have.length(HEADER_BYTES);
      header.writeUInt32BE(limit + 1, at);
      expect(() => read(new FrameDecoder(), header)).to.throw(ProtocolError, String(limit));
    }
    expect(() => encodeFrame('request', 1, 'x'.repeat(MAX_HEAD_BYTES + 1), Buffer.alloc(0))).to.throw(
      ProtocolError,
    );
    expect(() => encodeFrame('request', 1, '', Buffer.alloc(MAX_BODY_BYTES + 1))).to.throw(ProtocolError);
  });

  it('never changes bytes that the frame encoder has handed over', () => {
    const encoder = new FrameEncoder();
    encoder.add('request', 1, 'first', Buffer.from('a'));
    const first = encoder.take()[0] ?? Buffer.alloc(0);
    const copy = Buffer.from(first);
    for (let round = 0; round < 5_000; round++) {
      encoder.add('response', round, 'x'.repeat(round % 50), Buffer.alloc(round % 70, 'b'));
      encoder.take();
    }
    expect(copy.equals(first)).to.equal(true);
  });
});

/** Feeds bytes to a decoder, and takes copies of the frames. */
function read(decoder: FrameDecoder, bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const count = rest.copy(decoder.space());
    frames.push(...decoder.filled(count).map((frame) => ({ ...frame, body: Buffer.from(frame.body) })));
    rest = rest.subarray(count);
  }
  return frames;
}

function plain({ kind, number, head, body }: Omit<Frame, 'ownsBody'>) {
  return { kind: KINDS[kind], number, head, body_hex: body.toString('hex') };
}

/** Cuts bytes into pieces of these sizes, over and over; the whole when there are none. */
function pieces(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const cut: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? bytes.length;
    cut.push(bytes.subarray(at, at + size));
    at += size;
  }
  return cut;
}
