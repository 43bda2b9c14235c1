/** HTTP/2 by hand: sends frames that no client would send, and reads those that come back. */
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { eventually } from './eventually.js';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Kinds of frames (RFC 9113, section 6). */
export const KIND = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
const FLAG = { endStream: 1, ack: 1, endHeaders: 4 } as const;
/** Codes of errors (RFC 9113, section 7). */
export const CODE = { none: 0, protocol: 1, refused: 7, calm: 11 } as const;

export interface Frame {
  readonly kind: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** Names and values; bytes are those of Latin-1. */
export type Fields = readonly (readonly [string, string])[];

/** What became of a stream. */
export interface StreamEnd {
  /** Undefined when there is no response. */
  readonly status?: number;
  readonly body: string;
  /** The code of the error with which it was reset. */
  readonly reset?: number;
  /** The code of the error with which the connection ends. */
  readonly goAway?: number;
}

export function frame(kind: number, flags: number, stream: number, payload: Buffer | string = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload, 'latin1') : payload;
  const header = Buffer.alloc(9);
  header.writeUIntBE(bytes.length, 0, 3);
  header[3] = kind;
  header[4] = flags;
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, bytes]);
}

/** A block of literal fields, which are neither indexed nor compressed (RFC 7541, section 6.2.2). */
function block(fields: Fields): Buffer {
  const text = (value: string) => {
    const bytes = Buffer.from(value, 'latin1');
    return Buffer.concat([integer(bytes.length, 0x7f), bytes]);
  };
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** RFC 7541, section 5.1. */
function integer(value: number, limit: number): Buffer {
  if (value < limit) return Buffer.from([value]);
  const bytes = [limit];
  let rest = value - limit;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** A connection that has sent its preface and settings, those given among them: numbers and values. */
export class RawHttp2 {
  readonly frames: Frame[] = [];
  #received = Buffer.alloc(0);
  #isEnded = false;
  #nextStream = 1;

  private constructor(readonly socket: Socket) {
    socket.on('data', (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#read();
    });
    const end = () => {
      this.#isEnded = true;
    };
    // Some tests expect the server to close while we send.
    socket.on('end', end).on('close', end).on('error', end);
  }

  static async open(
    url: string,
    settings: readonly (readonly [number, number])[] = [],
    tls?: ConnectionOptions,
  ): Promise<RawHttp2> {
    const { hostname: host, port } = new URL(url);
    const options = { host, port: Number(port) };
    const socket = tls ? connectTls({ ...options, ...tls }) : connectTcp(options);
    const event = tls ? 'secureConnect' : 'connect';
    await new Promise((resolve, reject) => socket.once(event, resolve).once('error', reject));
    // A table of no size: heads that come back can be read on their own.
    const all = [[1, 0] as const, ...settings].map(([number, value]) => {
      const setting = Buffer.alloc(6);
      setting.writeUInt16BE(number, 0);
      setting.writeUInt32BE(value, 2);
      return setting;
    });
    return new RawHttp2(socket).send(PREFACE, frame(KIND.settings, 0, 0, Buffer.concat(all)));
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  send(...bytes: readonly Buffer[]): this {
    if (!this.#isEnded) this.socket.write(Buffer.concat(bytes));
    return this;
  }

  /** Sends a request; returns the number of its stream. */
  request(fields: Fields, body?: string | Buffer, trailers?: Fields): number {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    const isWhole = body === undefined;
    this.#head(stream, fields, isWhole);
    if (isWhole) return stream;
    this.send(frame(KIND.data, trailers ? 0 : FLAG.endStream, stream, body));
    if (trailers) this.#head(stream, trailers, true);
    return stream;
  }

  /** In as many frames as it takes. */
  #head(stream: number, fields: Fields, isEnd: boolean): void {
    const bytes = block(fields);
    const size = 16_384;
    for (let at = 0; at === 0 || at < bytes.length; at += size) {
      const flags =
        (at + size >= bytes.length ? FLAG.endHeaders : 0) | (at === 0 && isEnd ? FLAG.endStream : 0);
      this.send(
        frame(at === 0 ? KIND.headers : KIND.continuation, flags, stream, bytes.subarray(at, at + size)),
      );
    }
  }

  /** Resolves when the stream, or the connection, has ended. */
  ended(stream: number): Promise<StreamEnd> {
    return eventually(() => {
      const own = this.frames.filter((one) => one.stream === stream);
      const head = own.find(({ kind }) => kind === KIND.headers);
      const reset = own.find(({ kind }) => kind === KIND.reset)?.payload.readUInt32BE(0);
      const goAway = this.goAway;
      const isWhole = own.some(
        ({ kind, flags }) => (kind === KIND.data || kind === KIND.headers) && (flags & FLAG.endStream) !== 0,
      );
      if (!isWhole && reset === undefined && goAway === undefined && !this.#isEnded)
        throw new Error(`The stream ${stream} goes on`);
      const data = own.filter(({ kind }) => kind === KIND.data).map(({ payload }) => payload);
      return {
        ...(head && { status: statusOf(head.payload) }),
        body: Buffer.concat(data).toString('utf8'),
        ...(reset !== undefined && { reset }),
        ...(goAway !== undefined && { goAway }),
      };
    });
  }

  /** The code with which the connection ends, once the server has said so. */
  get goAway(): number | undefined {
    return this.frames.find(({ kind }) => kind === KIND.goAway)?.payload.readUInt32BE(4);
  }

  /** Resolves when the server has closed the connection. */
  async closed(limitMs?: number): Promise<void> {
    await eventually(() => {
      if (!this.#isEnded) throw new Error('The server does not close the connection');
    }, limitMs);
  }

  close(): void {
    this.socket.destroy();
  }

  #read(): void {
    while (this.#received.length >= 9) {
      const length = this.#received.readUIntBE(0, 3);
      if (this.#received.length < 9 + length) return;
      this.frames.push({
        kind: this.#received[3] ?? 0,
        flags: this.#received[4] ?? 0,
        stream: this.#received.readUInt32BE(5),
        payload: this.#received.subarray(9, 9 + length),
      });
      this.#received = this.#received.subarray(9 + length);
    }
  }
}

/** Statuses of the static table (RFC 7541, appendix A). */
const STATIC = [200, 204, 206, 304, 400, 404, 500];

/** The status of a head, which stands first in it. */
function statusOf(head: Buffer): number {
  // The table has no size; the first block says that it knows.
  const bytes = head[0] === 0x20 ? head.subarray(1) : head;
  const first = bytes[0] ?? 0;
  if (first >= 0x88 && first <= 0x8e) return STATIC[first - 0x88] ?? 0;
  const length = (bytes[1] ?? 0) & 0x7f;
  const value = bytes.subarray(2, 2 + length);
  return Number((bytes[1] ?? 0) & 0x80 ? digits(value) : value.toString('latin1'));
}

/** Digits in the code of Huffman (RFC 7541, appendix B): the first three have five bits, the others six. */
function digits(bytes: Buffer): string {
  let bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  let text = '';
  while (text.length < 3) {
    const isShort = bits.startsWith('000');
    text += isShort ? Number.parseInt(bits.slice(0, 5), 2) : Number.parseInt(bits.slice(0, 6), 2) - 0x16;
    bits = bits.slice(isShort ? 5 : 6);
  }
  return text;
}
