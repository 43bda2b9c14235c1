/**
 * The frames that handlers exchange with the gateway and with the actor host, version 1: bytes in, frames out, no
 * sockets. The gateway's end is in Rust (`rust/wire`), and has those of streams, too, which are version 2
 * (`rust/sdk/core/src/wire/frame.rs`): services do not have them.
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
 * The other end is `rust/sdk/core/src/wire`; `test/golden/frames.json` is read by the tests of both.
 */
import { HEADER_BYTES, KIND, MAX_BODY_BYTES, MAX_HEAD_BYTES, VERSION } from '../contracts/frames.js';

export { HEADER_BYTES, MAX_BODY_BYTES, MAX_HEAD_BYTES };

const KIND_BYTE = { request: KIND.request, response: KIND.response };

/** Which way a frame goes: requests to the handler, responses back. */
export type FrameKind = keyof typeof KIND_BYTE;

/** A whole frame. `head` is JSON text, not parsed yet. */
export interface Frame {
  readonly kind: FrameKind;
  readonly number: number;
  readonly head: string;
  readonly body: Buffer;
  /** Whether the body is memory of its own, which the receiver may keep. */
  readonly ownsBody: boolean;
}

/** The bytes are not frames of this protocol; the connection they came from is of no more use. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

const ENCODER_BYTES = 64 * 1024;
/** A body above this is handed on as it is instead of being copied. */
const COPIED_BODY_BYTES = 2 * 1024;

/** Collects frames, so that all frames of one turn of the event loop are one write. */
export class FrameEncoder {
  readonly #bufferBytes: number;
  #buffer: Buffer;
  /** Where the part of the buffer begins that is not in `#parts` yet, and where it ends. */
  #start = 0;
  #end = 0;
  #parts: Uint8Array[] = [];
  #spare: Buffer | undefined;

  /** @param bufferBytes memory it keeps; where connections are many and frames small, less is better */
  constructor(bufferBytes = ENCODER_BYTES) {
    this.#bufferBytes = bufferBytes;
    this.#buffer = Buffer.allocUnsafeSlow(bufferBytes);
  }

  /**
   * Adds a frame. A large body is not copied: it must stay as it is until the frames are written.
   * @throws ProtocolError when head or body is over its limit; nothing is added then.
   */
  add(kind: FrameKind, number: number, head: string, body: Uint8Array): void {
    const isCopied = body.length <= COPIED_BODY_BYTES;
    // A UTF-16 unit takes at most three bytes of UTF-8.
    this.#reserve(HEADER_BYTES + head.length * 3 + (isCopied ? body.length : 0));
    const buffer = this.#buffer;
    const at = this.#end;
    const headBytes = buffer.write(head, at + HEADER_BYTES, 'utf8');
    requireWithin('Head', headBytes, MAX_HEAD_BYTES);
    requireWithin('Body', body.length, MAX_BODY_BYTES);
    buffer.writeUInt32BE((VERSION << 24) | (KIND_BYTE[kind] << 16), at);
    buffer.writeUInt32BE(number, at + 4);
    buffer.writeUInt32BE(headBytes, at + 8);
    buffer.writeUInt32BE(body.length, at + 12);
    this.#end = at + HEADER_BYTES + headBytes;
    if (isCopied) {
      buffer.set(body, this.#end);
      this.#end += body.length;
    } else {
      this.#endPart();
      this.#parts.push(body);
    }
  }

  get isEmpty(): boolean {
    return this.#end === this.#start && this.#parts.length === 0;
  }

  /** Returns the collected frames, as pieces to be written in order, and starts empty. */
  take(): Uint8Array[] {
    this.#endPart();
    const parts = this.#parts;
    this.#parts = [];
    this.#buffer = this.#spare ?? Buffer.allocUnsafeSlow(this.#bufferBytes);
    this.#spare = undefined;
    this.#start = 0;
    this.#end = 0;
    return parts;
  }

  /**
   * Returns the memory that `take` handed over, once it is written. New memory for each turn would be more garbage.
   */
  recycle(parts: readonly Uint8Array[]): void {
    const { buffer } = parts[0] ?? {};
    if (buffer?.byteLength === this.#bufferBytes) this.#spare = Buffer.from(buffer);
  }

  #endPart(): void {
    if (this.#end > this.#start) this.#parts.push(this.#buffer.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }

  #reserve(bytes: number): void {
    if (this.#end + bytes <= this.#buffer.length) return;
    // What is collected already stays where it is.
    this.#endPart();
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(this.#bufferBytes, bytes));
    this.#start = 0;
    this.#end = 0;
  }
}

const DECODER_BYTES = 128 * 1024;
/** A larger frame gets memory of its own, so that its body need not be copied: copying would delay all other frames. */
const LARGE_FRAME_BYTES = 1024 * 1024;
/**
 * Once a sixteenth of a large frame is here, memory for all of it is reserved: a length that is only claimed reserves
 * nothing.
 */
const RESERVE_AFTER = 16;

/**
 * Cuts a stream of bytes, arriving in pieces of any size, into frames. Bytes are read straight into its buffer: ask for
 * `space`, put bytes there, say with `filled` how many.
 */
export class FrameDecoder {
  readonly #bufferBytes: number;
  #buffer: Buffer;
  /** What has arrived and is not part of a frame handed out yet. */
  #start = 0;
  #end = 0;
  /** The buffer has exactly the size of the frame that is arriving. */
  #isForOne = false;

  /** @param bufferBytes memory it keeps; a larger frame makes it grow for a while */
  constructor(bufferBytes = DECODER_BYTES) {
    this.#bufferBytes = bufferBytes;
    this.#buffer = Buffer.allocUnsafeSlow(bufferBytes);
  }

  /** Where the next bytes belong; never empty. The frames handed out before are not valid any more. */
  space(): Buffer {
    const length = this.#end - this.#start;
    if (this.#isForOne) return this.#buffer.subarray(this.#end);
    if (length === 0) {
      // The buffer of one large frame is not kept.
      if (this.#buffer.length > this.#bufferBytes) this.#buffer = Buffer.allocUnsafeSlow(this.#bufferBytes);
    } else if (this.#isTooSmall) {
      this.#grow();
    } else {
      this.#buffer.copyWithin(0, this.#start, this.#end);
    }
    this.#start = 0;
    this.#end = length;
    return this.#buffer.subarray(length);
  }

  /**
   * Takes note of bytes that were put into the space.
   * @returns the frames that are now complete, in order; bodies that they do not own are valid until the next call of
   * `space`
   * @throws ProtocolError when the bytes are not frames, or a length is over its limit.
   */
  filled(bytes: number): Frame[] {
    this.#end += bytes;
    const frames: Frame[] = [];
    for (;;) {
      const available = this.#end - this.#start;
      checkHeader(this.#buffer, this.#start, available);
      if (available < HEADER_BYTES) return frames;
      const length = frameLength(this.#buffer, this.#start);
      if (available < length) return frames;
      frames.push(readFrame(this.#buffer, this.#start, this.#isForOne));
      this.#start += length;
      if (this.#isForOne) this.#startAnew();
    }
  }

  /** The bytes of the frame that is arriving, if there should be memory for all of it now. */
  get #wholeFrame(): number | undefined {
    if (this.buffered < HEADER_BYTES) return undefined;
    const frame = frameLength(this.#buffer, this.#start);
    return frame > LARGE_FRAME_BYTES && this.buffered >= frame / RESERVE_AFTER ? frame : undefined;
  }

  #grow(): void {
    const frame = this.#wholeFrame;
    this.#isForOne = frame !== undefined;
    const grown = Buffer.allocUnsafeSlow(frame ?? this.#buffer.length * 2);
    this.#buffer.copy(grown, 0, this.#start, this.#end);
    this.#buffer = grown;
  }

  /** The buffer belongs to the frame that was in it. */
  #startAnew(): void {
    this.#isForOne = false;
    this.#buffer = Buffer.allocUnsafeSlow(this.#bufferBytes);
    this.#start = 0;
    this.#end = 0;
  }

  /** Bytes that have arrived and are not part of a frame handed out yet. */
  get buffered(): number {
    return this.#end - this.#start;
  }

  /** Bytes of memory that it holds beyond its usual buffer, used or not: a limit of the kernel counts both. */
  get reserved(): number {
    return Math.max(0, this.#buffer.length - this.#bufferBytes);
  }

  /** The same after the next call of `space`. */
  get reservedNext(): number {
    if (this.#isForOne) return this.reserved;
    if (this.buffered === 0) return 0;
    return this.#isTooSmall
      ? (this.#wholeFrame ?? this.#buffer.length * 2) - this.#bufferBytes
      : this.reserved;
  }

  get #isTooSmall(): boolean {
    return this.buffered > this.#buffer.length / 2;
  }

  /** True when the bytes so far end within a frame. */
  get isMidFrame(): boolean {
    return this.#end > this.#start;
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

function readFrame(bytes: Buffer, offset: number, ownsBody: boolean): Frame {
  const headStart = offset + HEADER_BYTES;
  const headEnd = headStart + bytes.readUInt32BE(offset + 8);
  return {
    kind: bytes[offset + 1] === KIND_BYTE.request ? 'request' : 'response',
    number: bytes.readUInt32BE(offset + 4),
    head: bytes.toString('utf8', headStart, headEnd),
    body: bytes.subarray(headEnd, headEnd + bytes.readUInt32BE(offset + 12)),
    ownsBody,
  };
}
