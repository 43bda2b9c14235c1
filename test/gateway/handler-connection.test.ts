import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { type Exchange, HandlerConnection } from '../../src/gateway/handler-connection.js';
import { MemoryBudget } from '../../src/util/memory-budget.js';
import { FrameDecoder, FrameEncoder } from '../../src/wire/codec.js';
import { encodeFrame } from '../support/frames.js';

const MEMORY_BYTES = 1024 * 1024;

describe('connection to a handler', () => {
  let socket: Duplex;
  let connection: HandlerConnection;
  let answers: FrameDecoder;
  let sent: { number: number; head: string }[];
  let deadlinesExceeded: number;
  let lost: string[];
  let memory: MemoryBudget;

  beforeEach(() => open());
  afterEach(() => {
    socket.destroy();
  });

  const open = () => {
    const decoder = new FrameDecoder();
    sent = [];
    deadlinesExceeded = 0;
    lost = [];
    memory = new MemoryBudget(MEMORY_BYTES);
    socket = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        decoder.space().set(chunk);
        for (const { number, head } of decoder.filled(chunk.length)) sent.push({ number, head });
        done();
      },
    });
    answers = new FrameDecoder();
    connection = new HandlerConnection(socket as Socket, answers, memory, {
      deadlineExceeded: () => deadlinesExceeded++,
      connectionLost: (reason) => lost.push(reason),
    });
  };
  const exchange = (deadline = Number.POSITIVE_INFINITY) => {
    const heard: string[] = [];
    const made: Exchange = {
      deadline,
      respond: ({ status }, body) => heard.push(`${status} ${body.toString()}`),
      aborted: (reason) => heard.push(`aborted: ${reason}`),
      expired: () => heard.push('expired'),
      unsent: () => heard.push('unsent'),
    };
    return { ...made, heard };
  };
  const send = (head: string, made = exchange()) => {
    connection.send(head, Buffer.alloc(0), made);
    return made;
  };
  const receive = (parts: readonly Uint8Array[]) => {
    const bytes = Buffer.concat(parts);
    answers.space().set(bytes);
    connection.filled(bytes.length);
  };
  const answer = (number: number, head: string, body = '') => {
    const encoder = new FrameEncoder();
    encoder.add('response', number, head, Buffer.from(body));
    receive(encoder.take());
  };
  const OK = '{"status":200,"headers":[]}';

  it('matches responses to requests in any order', async () => {
    const [first, second] = [send('{"a":1}'), send('{"b":2}')];
    await turn();
    expect(sent.map(({ head }) => head)).to.deep.equal(['{"a":1}', '{"b":2}']);
    answer(sent[1]?.number ?? 0, OK, 'two');
    answer(sent[0]?.number ?? 0, OK, 'one');
    await turn();
    expect([first.heard, second.heard]).to.deep.equal([['200 one'], ['200 two']]);
    expect(connection.inFlight).to.equal(0);
  });

  it('aborts the requests that were sent when the handler exits, and returns the others', async () => {
    const begun = send('{}');
    await turn();
    const waiting = [send('{}'), send('{}')];
    socket.emit('end');
    expect(begun.heard).to.deep.equal(['aborted: it closed its connection to the gateway']);
    expect(waiting.map(({ heard }) => heard)).to.deep.equal([['unsent'], ['unsent']]);
    await turn();
    expect(sent).to.have.length(1);
    expect(connection.isOpen).to.equal(false);
  });

  it('aborts only the request whose response is invalid', async () => {
    for (const [head, reason] of [
      ['{"status":99,"headers":[]}', /99 is not a status/],
      ['{"status":101,"headers":[]}', /101 is not a status/],
      ['{"status":1000,"headers":[]}', /1000 is not a status/],
      ['{"status":"200","headers":[]}', /200 is not a status/],
      ['{"status":200}', /needs status and headers/],
      ['{"status":200,"headers":["a"]}', /names and values in turn/],
      ['not JSON', /JSON/],
      [JSON.stringify({ status: 200, headers: ['a', 'b'.repeat(70_000)] }), /longer than 65536/],
    ] as const) {
      open();
      const requests = [send('{}'), send('{}')];
      await turn();
      answer(sent[0]?.number ?? 0, head);
      answer(sent[1]?.number ?? 0, OK, 'fine');
      expect(requests[0]?.heard.join())
        .to.match(/^aborted: its response is invalid: /)
        .and.match(reason);
      expect(requests[1]?.heard).to.deep.equal(['200 fine']);
      expect(lost).to.deep.equal([]);
    }
  });

  it('aborts all requests when the handler violates the protocol', async () => {
    const violations: [() => void, RegExp][] = [
      [() => receive([Buffer.from('GET / HTTP/1.1')]), /version 71/],
      [
        () => receive([Buffer.from([1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])]),
        /4294967295 is over/,
      ],
      [() => answer(12_345, OK), /a response to no request, or a second one/],
      [
        () => {
          answer(sent[0]?.number ?? 0, OK);
          answer(sent[0]?.number ?? 0, OK);
        },
        /a response to no request, or a second one/,
      ],
      [() => receive([encodeFrame('request', 0, '{}', Buffer.alloc(0))]), /sent a request/],
    ];
    for (const [violate, reason] of violations) {
      open();
      send('{}');
      const request = send('{}');
      await turn();
      violate();
      expect(request.heard.join())
        .to.match(/^aborted: it violated the protocol: /)
        .and.match(reason);
      expect(lost.join()).to.match(reason);
      expect(lost).to.have.length(1);
      expect(socket.destroyed).to.equal(true);
      expect(memory.used).to.equal(0);
    }
  });

  it('pauses reading a response when no memory is left, and resumes', async () => {
    const request = send('{}');
    await turn();
    const frame = encodeFrame('response', sent[0]?.number ?? 0, OK, Buffer.alloc(MEMORY_BYTES));
    let at = 0;
    const read = () => {
      for (let goesOn = true; goesOn && at < frame.length; ) {
        const space = answers.space();
        const bytes = frame.copy(space, 0, at, at + Math.min(space.length, 65_536));
        at += bytes;
        goesOn = connection.filled(bytes);
      }
    };
    const others = MEMORY_BYTES / 2;
    memory.take(others);
    read();
    expect(at).to.be.below(frame.length);
    expect(memory.used).to.be.at.most(MEMORY_BYTES);
    connection.expire(0);
    expect(lost).to.deep.equal([]);
    memory.release(others);
    connection.expire(0);
    read();
    expect(at).to.equal(frame.length);
    expect(request.heard).to.have.length(1);
    expect(memory.used).to.equal(0);
  });

  it('reports no deadline that has passed while reading waits for memory', async () => {
    memory.take(MEMORY_BYTES);
    const made = send('{}', exchange(100));
    await turn();
    const frame = encodeFrame('response', sent[0]?.number ?? 0, OK, Buffer.alloc(MEMORY_BYTES));
    let goesOn = true;
    for (let at = 0; goesOn && at < frame.length; ) {
      const bytes = frame.copy(answers.space(), 0, at, at + 65_536);
      goesOn = connection.filled(bytes);
      at += bytes;
    }
    expect(goesOn).to.equal(false);
    connection.expire(150);
    expect({ heard: made.heard, deadlinesExceeded }).to.deep.equal({
      heard: ['expired'],
      deadlinesExceeded: 0,
    });
  });

  it('releases the memory of a truncated response', async () => {
    send('{}');
    await turn();
    const frame = encodeFrame('response', sent[0]?.number ?? 0, OK, Buffer.alloc(MEMORY_BYTES));
    for (let at = 0; at < frame.length / 2; ) {
      const bytes = frame.copy(answers.space(), 0, at, at + 65_536);
      connection.filled(bytes);
      at += bytes;
    }
    expect(memory.used).to.be.above(0);
    socket.emit('end');
    expect(memory.used).to.equal(0);
  });

  it('reports a deadline once for each request, and drops the late answer', async () => {
    const late = send('{}', exchange(100));
    const other = send('{}', exchange(200));
    await turn();
    connection.expire(150);
    connection.expire(151);
    expect(late.heard).to.deep.equal(['expired']);
    expect(deadlinesExceeded).to.equal(1);
    answer(sent[0]?.number ?? 0, OK, 'late');
    answer(sent[1]?.number ?? 0, OK, 'in time');
    await turn();
    expect(late.heard).to.deep.equal(['expired']);
    expect(other.heard).to.deep.equal(['200 in time']);
    expect(lost).to.deep.equal([]);
  });

  it('is drained when no request is in flight', async () => {
    let isDrained = false;
    send('{}');
    void connection.drained().then(() => {
      isDrained = true;
    });
    await turn();
    expect(isDrained).to.equal(false);
    answer(sent[0]?.number ?? 0, OK);
    await turn();
    await turn();
    expect(isDrained).to.equal(true);
  });
});
