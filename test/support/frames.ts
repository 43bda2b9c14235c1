/** Frames, and streams of them for property tests, whole and damaged. */
import fc from 'fast-check';
import {
  type Frame,
  FrameDecoder,
  FrameEncoder,
  type FrameKind,
  HEADER_BYTES,
  ProtocolError,
} from '../../src/wire/codec.js';

/** The result of decoding a stream. */
export interface ReadStream {
  readonly frames: readonly Frame[];
  /** `complete`, `incomplete`, or what was wrong. */
  readonly end: string;
  /** The most memory the decoder had, bytes. */
  readonly mostBytes: number;
}

const DECODER_BYTES = 4 * 1024;

const frame = fc.record({
  kind: fc.constantFrom('request' as const, 'response' as const),
  number: fc.integer({ min: 0, max: 0xffff_ffff }),
  head: fc.string({ unit: 'grapheme', maxLength: 40 }),
  body: fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ minLength: 2_000, maxLength: 5_000 })),
});

/** Encodes one frame. */
export function encodeFrame(kind: FrameKind, number: number, head: string, body: Uint8Array): Buffer {
  const encoder = new FrameEncoder(HEADER_BYTES);
  encoder.add(kind, number, head, body);
  return Buffer.concat(encoder.take());
}

/** The bytes of some frames. */
export const wholeStream: fc.Arbitrary<Buffer> = fc
  .array(frame, { maxLength: 6 })
  .map((frames) =>
    Buffer.concat(frames.map(({ kind, number, head, body }) => encodeFrame(kind, number, head, body))),
  );

/** The same with bytes changed, put in and cut off anywhere; or any bytes at all. */
export const damagedStream: fc.Arbitrary<Buffer> = fc.oneof(
  fc
    .record({
      stream: wholeStream,
      at: fc.nat(),
      change: fc.constantFrom('set', 'insert', 'cut', 'lengths'),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 20 }),
    })
    .map(({ stream, at, change, bytes }) => {
      const place = stream.length === 0 ? 0 : at % stream.length;
      if (change === 'cut') return stream.subarray(0, place);
      if (change === 'insert')
        return Buffer.concat([stream.subarray(0, place), bytes, stream.subarray(place)]);
      const changed = Buffer.from(stream);
      // The lengths of the first frame are where a decoder could be made to trust too much.
      const from = change === 'lengths' ? 8 + (at % 8) : place;
      if (from < changed.length) changed.set(bytes.subarray(0, changed.length - from), from);
      return changed;
    }),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
);

/** Feeds a stream to a decoder in pieces of these sizes, over and over. @throws whatever is no ProtocolError */
export function readStream(stream: Buffer, sizes: readonly number[]): ReadStream {
  const decoder = new FrameDecoder(DECODER_BYTES);
  const frames: Frame[] = [];
  let mostBytes = DECODER_BYTES;
  try {
    for (let at = 0, turn = 0; at < stream.length; turn++) {
      const size = sizes[turn % sizes.length] ?? stream.length;
      const space = decoder.space();
      const count = stream.copy(space, 0, at, at + size);
      at += count;
      mostBytes = Math.max(mostBytes, space.buffer.byteLength);
      for (const found of decoder.filled(count)) frames.push({ ...found, body: Buffer.from(found.body) });
    }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { frames, end: codeOf(error), mostBytes };
  }
  return { frames, end: decoder.isMidFrame ? 'incomplete' : 'complete', mostBytes };
}

/** As the SDK calls it. */
function codeOf({ message }: ProtocolError): string {
  if (/version/.test(message)) return 'version';
  if (/kind/.test(message)) return 'kind';
  if (/Reserved/.test(message)) return 'reserved';
  return message.startsWith('Head') ? 'head_too_long' : 'body_too_long';
}
