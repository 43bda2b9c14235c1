/** A guard for protocols of frames whose header says how long they are. */
import { AnswerRefused, type Guard, tooLong } from './guard.js';

/** How the frames of a protocol begin. */
export interface FrameFormat {
  /** Bytes of a header, up to the end of what the guard looks at. */
  readonly headerBytes: number;
  /** Bytes up to the end of the length, if there is more to look at: some libraries read no further. */
  readonly lengthBytes?: number;
  /** The length of the whole frame, its header included. */
  frameBytes(header: Buffer): number;
  /** Shorter ones cannot be. */
  readonly minBytes: number;
  /** Why a frame cannot be, whatever its length. */
  refusal?(header: Buffer): string | undefined;
  /** Whether the next frame belongs to the same message. */
  continues?(header: Buffer): boolean;
}

const MYSQL_LARGEST = 0xffffff;
/** https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_packets.html: length, number. */
export const MYSQL_FRAMES: FrameFormat = {
  headerBytes: 4,
  frameBytes: (header) => 4 + header.readUIntLE(0, 3),
  minBytes: 4,
  continues: (header) => header.readUIntLE(0, 3) === MYSQL_LARGEST,
};

const OP_REPLY = 1;
const OP_MSG = 2013;
/** Where the document of an answer begins, after header, flags and its kind. */
const DOCUMENT_AT = 21;
/** Its own length, and its end. */
const MIN_DOCUMENT_BYTES = 5;
/** A flag of a message: it ends with a checksum of 4 bytes. */
const HAS_CHECKSUM = 1;
/**
 * https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/: length (which counts itself), two ids, kind.
 * No client asks for compression, but the library decompresses whatever comes, to any size. Through parts of no or
 * negative length it goes for ever, so a message is one document, as those of servers are.
 */
export const MONGODB_FRAMES: FrameFormat = {
  headerBytes: DOCUMENT_AT + 4,
  lengthBytes: 4,
  refusal: (header) => {
    const opCode = header.readInt32LE(12);
    // The answer to the first request, which is of the old kind.
    if (opCode === OP_REPLY) return undefined;
    if (opCode !== OP_MSG) return `a message of kind ${opCode}, which was not asked for`;
    const checksumBytes = (header.readInt32LE(16) & HAS_CHECKSUM) === 0 ? 0 : 4;
    const bytes = header.readInt32LE(DOCUMENT_AT);
    const isPossible =
      bytes >= MIN_DOCUMENT_BYTES && bytes === header.readInt32LE(0) - DOCUMENT_AT - checksumBytes;
    return isPossible ? undefined : `a document of ${bytes} bytes, which cannot be`;
  },
  frameBytes: (header) => header.readInt32LE(0),
  minBytes: DOCUMENT_AT + 4,
};

/** https://github.com/memcached/memcached/wiki/BinaryProtocolRevamped: the length of the body at 8 of 24 bytes. */
export const MEMCACHED_FRAMES: FrameFormat = {
  headerBytes: 24,
  frameBytes: (header) => 24 + header.readUInt32BE(8),
  minBytes: 24,
};

/** @param limit bytes of one message */
export class FrameGuard implements Guard {
  readonly #format: FrameFormat;
  readonly #limit: number;
  readonly #header: Buffer;
  /** Bytes of the header that have come. */
  #filled = 0;
  /** Bytes of the frame. */
  #frame = 0;
  /** Bytes of the frame that have not come yet. */
  #missing = 0;
  /** Bytes of the message so far. */
  #message = 0;

  constructor(format: FrameFormat, limit: number) {
    this.#format = format;
    this.#limit = limit;
    this.#header = Buffer.alloc(format.headerBytes);
  }

  pass(chunk: Buffer): Buffer {
    for (let at = 0; at < chunk.length; ) {
      if (this.#missing > 0) {
        const skipped = Math.min(this.#missing, chunk.length - at);
        this.#missing -= skipped;
        at += skipped;
        continue;
      }
      const copied = chunk.copy(this.#header, this.#filled, at, at + this.#header.length - this.#filled);
      const { lengthBytes = this.#header.length } = this.#format;
      if (this.#filled < lengthBytes && this.#filled + copied >= lengthBytes) this.#begin();
      this.#filled += copied;
      at += copied;
      if (this.#filled === this.#header.length) this.#endHeader();
    }
    return chunk;
  }

  #begin(): void {
    const { frameBytes, minBytes, continues } = this.#format;
    const bytes = frameBytes(this.#header);
    if (bytes < minBytes) throw new AnswerRefused(`it sent a frame of ${bytes} bytes, which cannot be`);
    this.#message += bytes;
    if (this.#message > this.#limit) throw tooLong('a frame that it sent', this.#message, this.#limit);
    if (!continues?.(this.#header)) this.#message = 0;
    this.#frame = bytes;
  }

  #endHeader(): void {
    const refused = this.#format.refusal?.(this.#header);
    if (refused !== undefined) throw new AnswerRefused(`it sent ${refused}`);
    this.#missing = this.#frame - this.#header.length;
    this.#filled = 0;
  }
}
