import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { type Exchange, HandlerConnection } from '../../src/gateway/handler-connection.js';
import { FrameDecoder, FrameEncoder } from '../../src/wire/codec.js';

describe('connection to a handler', () => {
  let socket: Duplex;
  let connection: HandlerConnection;
  let answers: FrameDecoder;
  let sent: { number: number; head: string }[];
  let stuck: number;

  beforeEach(() => open());
  afterEach(() => {
    socket.destroy();
  });

  const open = () => {
    const decoder = new FrameDecoder();
    sent = [];
    stuck = 0;
    socket = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        decoder.space().set(chunk);
        for (const { number, head } of decoder.filled(chunk.length)) sent.push({ number, head });
        done();
      },
    });
    answers = new FrameDecoder();
    connection = new HandlerConnection(socket as Socket, answers, () => stuck++);
  };
  const exchange = (deadline = Number.POSITIVE_INFINITY) => {
    const heard: string[] = [];
    const made: Exchange = {
      deadline,
      respond: ({ status }, body) => heard.push(`${status} ${body.toString()}`),
      broken: (reason) => heard.push(`broken: ${reason}`),
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

  it('gives each request its answer, in whatever order they come', async () => {
    const [first, second] = [send('{"a":1}'), send('{"b":2}')];
    await turn();
    expect(sent.map(({ head }) => head)).to.deep.equal(['{"a":1}', '{"b":2}']);
    answer(sent[1]?.number ?? 0, OK, 'two');
    answer(sent[0]?.number ?? 0, OK, 'one');
    await turn();
    expect([first.heard, second.heard]).to.deep.equal([['200 one'], ['200 two']]);
    expect(connection.inFlight).to.equal(0);
  });

  it('breaks off what was sent when the handler goes, and gives back what was not', async () => {
    const begun = send('{}');
    await turn();
    const waiting = [send('{}'), send('{}')];
    socket.emit('end');
    expect(begun.heard).to.deep.equal(['broken: the handler process ended']);
    expect(waiting.map(({ heard }) => heard)).to.deep.equal([['unsent'], ['unsent']]);
    await turn();
    expect(sent).to.have.length(1);
    expect(connection.isOpen).to.equal(false);
  });

  it('breaks off everything when the handler does not keep to the protocol', async () => {
    for (const [head, reason] of [
      ['{"status":99,"headers":[]}', /99 is not a status/],
      ['{"status":200}', /needs status and headers/],
      ['nonsense', /protocol/],
    ] as const) {
      open();
      const requests = [send('{}'), send('{}')];
      await turn();
      answer(sent.at(-1)?.number ?? 0, head);
      await turn();
      for (const { heard } of requests)
        expect(heard.join())
          .to.match(/^broken: .*protocol/)
          .and.match(reason);
      expect(socket.destroyed).to.equal(true);
    }
  });

  it('reports a deadline once for each request, and drops the late answer', async () => {
    const late = send('{}', exchange(100));
    const other = send('{}', exchange(200));
    await turn();
    connection.expire(150);
    connection.expire(151);
    expect(late.heard).to.deep.equal(['expired']);
    expect(stuck).to.equal(1);
    answer(sent[0]?.number ?? 0, OK, 'late');
    answer(sent[1]?.number ?? 0, OK, 'in time');
    await turn();
    expect(late.heard).to.deep.equal(['expired']);
    expect(other.heard).to.deep.equal(['200 in time']);
  });

  it('is drained when nothing is in flight any more', async () => {
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
