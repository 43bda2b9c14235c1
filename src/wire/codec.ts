/**
 * The frames that gateway and handlers exchange, version 1: bytes in, frames out, no sockets.
 *
 * A frame is a header of 16 bytes, big-endian, then the head (JSON, UTF-8), then the body (raw bytes):
 *
 *     offset size field
 *     0      1    version = 1
 *     1      1    kind: 1 request, 2 response
 *     2      2    reserved = 0
 *     4      4    request number, unique among those in flight on the connection
 *     8      4    head length in bytes, at most MAX_HEAD_BYTES
 *     12     4    body length in bytes, at most MAX_BODY_BYTES
 *
 * The other end is `sdk/src`; `test/golden/frames.json` is read by the tests of both.
 */

const VERSION = 1;
export const HEADER_BYTES = 16;
/** Largest head: 1 MiB. */
export const MAX_HEAD_BYTES = 1024 * 1024;
/** Largest body: 64 MiB. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;

const KIND_BYTE = { request: 1, response: 2 } as const;

/** Which way a frame goes: requests to the handler, responses back. */
export type FrameKind = keyof typeof KIND_BYTE;

/** A whole frame. `head` is JSON text that nobody has parsed yet. */
export interface Frame {
  readonly kind: FrameKind;
  readonly number: number;
  readonly head: string;
  readonly body: Buffer;
}

/** The bytes are not frames of this protocol; the connection they came from is of no more use. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** Encodes one frame. */
export function encodeFrame(kind: FrameKind, number: number, head: string, body: Uint8Array): Buffer {
  const encoder = new FrameEncoder();
  encoder.add(kind, number, head, body);
  return encoder.take();
}

const ENCODER_BYTES = 64 * 1024;

/** Collects frames into one buffer, so that all frames of one turn of the event loop are one write. */
export class FrameEncoder {
  #buffer: Buffer = Buffer.allocUnsafeSlow(ENCODER_BYTES);
  #length = 0;
  #spare: Buffer<ArrayBufferLike> | undefined;

  /** @throws ProtocolError when head or body is over its limit; nothing is added then. */
  add(kind: FrameKind, number: number, head: string, body: Uint8Array): void {
    // A UTF-16 unit takes at most three bytes of UTF-8.
    this.#reserve(HEADER_BYTES + head.length * 3 + body.length);
    const start = this.#length;
    const buffer = this.#buffer;
    const headBytes = buffer.write(head, start + HEADER_BYTES, 'utf8');
    requireWithin('Head', headBytes, MAX_HEAD_BYTES);
    requireWithin('Body', body.length, MAX_BODY_BYTES);
    buffer.writeUInt32BE((VERSION << 24) | (KIND_BYTE[kind] << 16), start);
    buffer.writeUInt32BE(number, start + 4);
    buffer.writeUInt32BE(headBytes, start + 8);
    buffer.writeUInt32BE(body.length, start + 12);
    buffer.set(body, start + HEADER_BYTES + headBytes);
    this.#length = start + HEADER_BYTES + headBytes + body.length;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Hands over what was collected and starts anew. The bytes stay as they are until they are given to `recycle`. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length);
    this.#buffer = this.#spare ?? Buffer.allocUnsafeSlow(ENCODER_BYTES);
    this.#spare = undefined;
    this.#length = 0;
    return taken;
  }

  /** Gives back what `take` handed over, once it is written: new memory for each turn would be work for the collector. */
  recycle(taken: Buffer): void {
    if (taken.buffer.byteLength === ENCODER_BYTES) this.#spare = Buffer.from(taken.buffer);
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafeSlow((this.#length + bytes) * 2);
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}

/** Cuts a stream of bytes, arriving in pieces of any size, into frames. */
export class FrameDecoder {
  #chunks: Buffer[] = [];
  #length = 0;
  /** Bytes that must be there before another look is worth it: joining pieces at each arrival would be quadratic. */
  #needed = HEADER_BYTES;

  /**
   * Takes a piece and returns the frames that are now complete, in order. Their bodies may be views of the piece; what
   * is kept for later is copied, so that the caller may use its memory again once it is done with the frames.
   * @throws ProtocolError when the bytes are not frames, or a length is over its limit.
   */
  push(chunk: Buffer): Frame[] {
    this.#length += chunk.length;
    if (this.#needed > HEADER_BYTES && this.#length < this.#needed) {
      this.#chunks.push(Buffer.from(chunk));
      return [];
    }
    const bytes = this.#chunks.length === 0 ? chunk : Buffer.concat([...this.#chunks, chunk], this.#length);

    const frames: Frame[] = [];
    let offset = 0;
    for (;;) {
      const remaining = bytes.length - offset;
      checkHeader(bytes, offset, remaining);
      this.#needed = remaining < HEADER_BYTES ? HEADER_BYTES : frameLength(bytes, offset);
      if (remaining < this.#needed) break;
      frames.push(readFrame(bytes, offset));
      offset += this.#needed;
    }
    this.#chunks = offset < bytes.length ? [Buffer.from(bytes.subarray(offset))] : [];
    this.#length = bytes.length - offset;
    return frames;
  }

  /** True when the bytes so far end within a frame. */
  get isMidFrame(): boolean {
    return this.#length > 0;
  }
}

/** Checks as much of a header as has arrived: what is wrong from its first byte on need not be waited for. */
function checkHeader(bytes: Buffer, offset: number, available: number): void {
  if (available >= 1 && bytes[offset] !== VERSION) {
    throw new ProtocolError(`Unknown protocol version ${bytes[offset]}`);
  }
  const kind = bytes[offset + 1];
  if (available >= 2 && kind !== KIND_BYTE.request && kind !== KIND_BYTE.response) {
    throw new ProtocolError(`Unknown frame kind ${kind}`);
  }
  if ((available >= 3 && bytes[offset + 2] !== 0) || (available >= 4 && bytes[offset + 3] !== 0)) {
    throw new ProtocolError('Reserved bytes are not 0');
  }
  if (available >= 12) requireWithin('Head', bytes.readUInt32BE(offset + 8), MAX_HEAD_BYTES);
  if (available >= 16) requireWithin('Body', bytes.readUInt32BE(offset + 12), MAX_BODY_BYTES);
}

function requireWithin(part: string, length: number, limit: number): void {
  if (length > limit) throw new ProtocolError(`${part} length ${length} is over the limit of ${limit}`);
}

function frameLength(bytes: Buffer, offset: number): number {
  return HEADER_BYTES + bytes.readUInt32BE(offset + 8) + bytes.readUInt32BE(offset + 12);
}

function readFrame(bytes: Buffer, offset: number): Frame {
  const headStart = offset + HEADER_BYTES;
  const headEnd = headStart + bytes.readUInt32BE(offset + 8);
  return {
    kind: bytes[offset + 1] === KIND_BYTE.request ? 'request' : 'response',
    number: bytes.readUInt32BE(offset + 4),
    head: bytes.toString('utf8', headStart, headEnd),
    body: bytes.subarray(headEnd, headEnd + bytes.readUInt32BE(offset + 12)),
  };
}
