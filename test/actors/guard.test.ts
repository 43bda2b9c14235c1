/** Guards of answers, on every way a server's bytes can be cut into chunks. */
import { expect } from 'chai';
import fc from 'fast-check';
import {
  type FrameFormat,
  FrameGuard,
  MEMCACHED_FRAMES,
  MONGODB_FRAMES,
  MYSQL_FRAMES,
} from '../../src/actors/guard/frame-guard.js';
import { AnswerRefused, type Guard } from '../../src/actors/guard/guard.js';
import { RedisGuard } from '../../src/actors/guard/redis-guard.js';
import { SmtpGuard } from '../../src/actors/guard/smtp-guard.js';

const LIMIT = 1024 ** 2;

/** Cuts bytes at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((start, i) => bytes.subarray(start, at[i] ?? bytes.length));
}

const passed = (guard: Guard, chunks: readonly Buffer[]) =>
  Buffer.concat(chunks.map((chunk) => guard.pass(chunk)));
const cuts = fc.array(fc.nat(), { maxLength: 12 });

function mysqlPacket(content: Buffer): Buffer {
  const header = Buffer.alloc(4);
  header.writeUIntLE(content.length, 0, 3);
  return Buffer.concat([header, content]);
}

/** A frame with this content, by protocol. */
const FRAMES: Readonly<Record<string, readonly [FrameFormat, (content: Buffer) => Buffer]>> = {
  mysql: [MYSQL_FRAMES, mysqlPacket],
  mongodb: [
    MONGODB_FRAMES,
    (content) => {
      const header = Buffer.alloc(25);
      header.writeInt32LE(26 + content.length);
      header.writeInt32LE(2013, 12);
      header.writeInt32LE(5 + content.length, 21);
      return Buffer.concat([header, content, Buffer.alloc(1)]);
    },
  ],
  memcached: [
    MEMCACHED_FRAMES,
    (content) => {
      const header = Buffer.alloc(24, 0x81);
      header.writeUInt32BE(content.length, 8);
      return Buffer.concat([header, content]);
    },
  ],
};

describe('guards of answers', () => {
  for (const [protocol, [format, frame]] of Object.entries(FRAMES)) {
    describe(`frames of ${protocol}`, () => {
      it(`passes on frames of ${protocol}, however they are cut`, () => {
        const frames = fc.array(fc.uint8Array({ maxLength: 200 }), { minLength: 1, maxLength: 8 });
        fc.assert(
          fc.property(frames, cuts, (contents, places) => {
            const bytes = Buffer.concat(contents.map((content) => frame(Buffer.from(content))));
            expect(passed(new FrameGuard(format, LIMIT), cut(bytes, places)).equals(bytes)).to.equal(true);
          }),
        );
      });

      it(`refuses a frame that is too long as soon as its header has arrived from ${protocol}`, () => {
        const longest = frame(Buffer.alloc(LIMIT - frame(Buffer.alloc(0)).length));
        expect(passed(new FrameGuard(format, LIMIT), [longest]).length).to.equal(LIMIT);
        const header = frame(Buffer.alloc(LIMIT)).subarray(0, format.headerBytes);
        for (let at = 0; at <= header.length; at++) {
          const guard = new FrameGuard(format, LIMIT);
          const refused = () => passed(guard, [header.subarray(0, at), header.subarray(at)]);
          expect(refused, `cut at ${at}`).to.throw(
            AnswerRefused,
            /an answer may have 1 MiB \(SERVICE_ANSWER_MB\)/,
          );
        }
      });
    });
  }

  it('refuses a frame of MongoDB that is shorter than its header', () => {
    expect(() => new FrameGuard(MONGODB_FRAMES, LIMIT).pass(Buffer.alloc(16))).to.throw(
      AnswerRefused,
      /0 bytes/,
    );
    expect(() => new FrameGuard(MONGODB_FRAMES, LIMIT).pass(Buffer.alloc(16, 0xff))).to.throw(
      AnswerRefused,
      /-1/,
    );
  });

  it('refuses a message of MongoDB with an impossible length before the rest of its header arrives', () => {
    for (const length of ['00000000', '0f000000', 'ffffffff', 'ffffff7f'])
      expect(() => new FrameGuard(MONGODB_FRAMES, LIMIT).pass(Buffer.from(length, 'hex'))).to.throw(
        AnswerRefused,
      );
  });

  it('refuses compressed messages of MongoDB, however they are cut', () => {
    const compressed = Buffer.from(`19000000${'00'.repeat(8)}dc070000${'00'.repeat(9)}`, 'hex');
    fc.assert(
      fc.property(cuts, (places) => {
        const refused = () => passed(new FrameGuard(MONGODB_FRAMES, LIMIT), cut(compressed, places));
        expect(refused).to.throw(AnswerRefused, /a message of kind 2012/);
      }),
    );
  });

  it('refuses a document of MongoDB that is not as long as its message', () => {
    const guarded = (length: number) => {
      const message = Buffer.alloc(50);
      message.writeInt32LE(50);
      message.writeInt32LE(2013, 12);
      message.writeInt32LE(length, 21);
      return () => new FrameGuard(MONGODB_FRAMES, LIMIT).pass(message);
    };
    for (const length of [0, 4, -1, 5, 28, 30, 0x7fffffff, -0x80000000])
      expect(guarded(length), String(length)).to.throw(AnswerRefused, /a document of/);
    expect(guarded(29)).not.to.throw();
  });

  it('adds up the lengths of the packets of one message of MySQL', () => {
    const guard = new FrameGuard(MYSQL_FRAMES, 40 * LIMIT);
    const largest = mysqlPacket(Buffer.alloc(0xffffff));
    for (let round = 0; round < 3; round++) {
      guard.pass(largest);
      guard.pass(largest);
      guard.pass(mysqlPacket(Buffer.from('end')));
    }
    guard.pass(largest);
    guard.pass(largest);
    expect(() => guard.pass(largest)).to.throw(AnswerRefused);
  });
});

describe('the guard of redis', () => {
  const reply = fc.letrec<{ reply: string; leaf: string; array: string }>((tie) => ({
    reply: fc.oneof({ maxDepth: 4 }, tie('leaf'), tie('array')),
    leaf: fc.oneof(
      fc.integer().map((number) => `:${number}\r\n`),
      fc.constantFrom('+OK\r\n', '-ERR no\r\n', '$-1\r\n', '*-1\r\n', '*0\r\n', '$0\r\n\r\n'),
      // Lines within a text look like replies.
      fc.constantFrom('a', '$9\r\n', '*4\r\n:1\r\n', 'b\nc').map((text) => `$${text.length}\r\n${text}\r\n`),
    ),
    array: fc.array(tie('reply'), { maxLength: 5 }).map((items) => `*${items.length}\r\n${items.join('')}`),
  })).reply;

  it('passes on replies of Redis, however they are cut', () => {
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1, maxLength: 6 }), cuts, (replies, places) => {
        const bytes = Buffer.from(replies.join(''));
        expect(String(passed(new RedisGuard(LIMIT), cut(bytes, places)))).to.equal(String(bytes));
      }),
    );
  });

  it('replaces a value of Redis that is too long by an error, and passes on the next reply', () => {
    const long = Buffer.concat([
      Buffer.from(`$${LIMIT + 1}\r\n`),
      Buffer.alloc(LIMIT + 1),
      Buffer.from('\r\n'),
    ]);
    const bytes = Buffer.concat([Buffer.from('+before\r\n'), long, Buffer.from('$5\r\nafter\r\n')]);
    // Cuts in the middle of lines, and anywhere.
    const places = fc.tuple(fc.array(fc.nat({ max: 30 }), { maxLength: 8 }), cuts).map((both) => both.flat());
    fc.assert(
      fc.property(places, (at) => {
        expect(String(passed(new RedisGuard(LIMIT), cut(bytes, at)))).to.equal(
          '+before\r\n-ERR the value has 1048577 bytes, and an answer may have 1 MiB (SERVICE_ANSWER_MB)\r\n$5\r\nafter\r\n',
        );
      }),
      { numRuns: 50 },
    );
  });

  it('passes on a value of Redis that has the largest size', () => {
    const value = Buffer.concat([Buffer.from(`$${LIMIT}\r\n`), Buffer.alloc(LIMIT), Buffer.from('\r\n')]);
    expect(passed(new RedisGuard(LIMIT), [value, value]).length).to.equal(2 * value.length);
  });

  for (const [what, text] of [
    ['an array of more elements than an answer has room for', '*4294967296\r\n'],
    ['arrays in arrays without end', '*1\r\n'.repeat(200_000)],
    ['large arrays in each other', '*100000\r\n'.repeat(60)],
    ['a line without end', `+${'a'.repeat(100_000)}`],
    ['a length that is no number', '$1e3\r\n'],
    ['a length without end', `$${'1'.repeat(100)}\r\n`],
    [
      'an array of values that are too long together',
      `*3\r\n${`$600000\r\n${'a'.repeat(600_000)}\r\n`.repeat(3)}`,
    ],
  ] as const) {
    it(`refuses a reply of Redis with ${what}`, () => {
      fc.assert(
        fc.property(cuts, (places) => {
          expect(() => passed(new RedisGuard(LIMIT), cut(Buffer.from(text), places))).to.throw(AnswerRefused);
        }),
        { numRuns: 20 },
      );
    });
  }
});

describe('the guard of email', () => {
  const word = fc.constantFrom('', 'ok', '250-', '-', '250 of 300');
  const reply = fc
    .tuple(fc.integer({ min: 200, max: 599 }), fc.array(word, { maxLength: 4 }), word)
    .map(([code, more, last]) =>
      [...more.map((text) => `${code}-${text}\r\n`), `${code} ${last}\r\n`].join(''),
    );

  it('passes on any number of replies of a mail server, however they are cut', () => {
    const long = `250-${'a'.repeat(200_000)}\r\n250 end\r\n`;
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1, maxLength: 6 }), cuts, (replies, places) => {
        const bytes = Buffer.from([...replies, long].join('').repeat(8));
        expect(passed(new SmtpGuard(), cut(bytes, places)).equals(bytes)).to.equal(true);
      }),
      { numRuns: 50 },
    );
  });

  for (const [what, text] of [
    ['a line without end', `250 ${'a'.repeat(LIMIT)}`],
    ['a reply without end', '250-a\r\n'.repeat(LIMIT / 7 + 1)],
    ['empty lines without end', '\r\n'.repeat(LIMIT / 2 + 1)],
    ['lines of spaces without end', '     \r\n'.repeat(LIMIT / 7 + 1)],
    ['texts without end', 'hello\r\n'.repeat(LIMIT / 7 + 1)],
  ] as const) {
    it(`refuses ${what} from a mail server`, () => {
      fc.assert(
        fc.property(cuts, (places) => {
          const refused = () => passed(new SmtpGuard(), cut(Buffer.from(text), places));
          expect(refused).to.throw(AnswerRefused, /1 MiB/);
        }),
        { numRuns: 20 },
      );
    });
  }
});
