/** MongoDB: https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/ */
import type { Socket } from 'node:net';
import { deflateSync } from 'node:zlib';
import { BSON } from 'mongodb';
import { type Lie, thenZeros } from './lie.js';
import { liesOf } from './protocols.js';

const HEADER_BYTES = 16;
const OP_MSG = 2013;
const OP_COMPRESSED = 2012;
const ZLIB = 2;

function int32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeInt32LE(value, 4 * at);
  return bytes;
}

function message(opCode: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([int32(HEADER_BYTES + body.length, 1, 0, opCode), body]);
}

/** An answer without flags, of one document. */
export function mongodbAnswer(document: object): Buffer {
  return message(OP_MSG, Buffer.alloc(5), Buffer.from(BSON.serialize(document)));
}

/** A welcome, and an empty list of whatever was asked for. */
export const MONGODB_WELCOME = {
  ok: 1,
  isWritablePrimary: true,
  minWireVersion: 0,
  maxWireVersion: 21,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  cursor: { id: 0n, ns: 'd.c', firstBatch: [] as object[] },
};

/** Answers each request with the same, but for its number. */
export function mongodbServer(answerTo: (request: Buffer) => Buffer): (socket: Socket) => void {
  return (socket) => {
    let received: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= HEADER_BYTES && received.length >= received.readInt32LE()) {
        const length = received.readInt32LE();
        const request = received.subarray(0, length);
        const answer = Buffer.from(answerTo(request));
        if (answer.length >= 12) answer.writeInt32LE(request.readInt32LE(4), 8);
        socket.write(answer);
        received = received.subarray(length);
      }
    });
  };
}

/** A few KiB that become 512 MiB. */
function bomb(): Buffer {
  const bytes = deflateSync(Buffer.alloc(512 * 1024 ** 2), { level: 1 });
  return message(OP_COMPRESSED, int32(OP_MSG, 0x20000000), Buffer.from([ZLIB]), bytes);
}

const BATCH = Array.from({ length: 1_000 }, () => ({ text: 'a'.repeat(1_000) }));
const MORE = mongodbAnswer({ ok: 1, cursor: { id: 1n, ns: 'd.c', nextBatch: BATCH, firstBatch: BATCH } });
const WELCOME = mongodbAnswer(MONGODB_WELCOME);
const isRead = (request: Buffer) => request.includes('\x02find\0') || request.includes('\x12getMore\0');

let compressed: Buffer | undefined;

export const MONGODB_LIES: readonly Lie[] = liesOf('mongodb', {
  'sixteen zeros': mongodbServer(() => Buffer.alloc(16)),
  'four zeros': mongodbServer(() => Buffer.alloc(4)),
  'a message of 2 GiB': (socket) => thenZeros(Buffer.from('ffffff7f', 'hex'))(socket),
  'a message that is shorter than its header': mongodbServer(() =>
    Buffer.from(`08000000${'0'.repeat(40)}`, 'hex'),
  ),
  'a message of negative length': mongodbServer(() => Buffer.from(`ffffffff${'0'.repeat(40)}`, 'hex')),
  'a compressed message of 512 MiB': mongodbServer(() => (compressed ??= bomb())),
  'a list without end': mongodbServer((request) => (isRead(request) ? MORE : WELCOME)),
});
