/** Clients of HTTP/2 that are too slow, or send too much: frame by frame, against the gateway as it runs. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { frontOf } from '../support/process-state.js';
import { type Stack, startStack } from '../support/processes.js';
import { RawConnection } from '../support/raw-http.js';
import { block, CODE, type Fields, FLAG, frame, KIND, PREFACE, RawHttp2 } from '../support/raw-http2.js';

/** Answers POST with how much it got, and GET with 6 MiB, or after a while. */
const SIZES = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    if req.is_method("POST") {
        return Response::text(200, req.body_bytes().len().to_string());
    }
    match req.query_param_as("ms") {
        Some(ms) => {
            std::thread::sleep(std::time::Duration::from_millis(ms));
            Response::text(200, "late")
        }
        None => Response::binary(200, vec![b'x'; 6 * 1024 * 1024], "application/octet-stream"),
    }
}
handler_loop!(handle);
`;
const STREAMS = 100;
/** Settings (RFC 9113, section 6.5.2). */
const INITIAL_WINDOW = 4;
const LARGEST_WINDOW = 2 ** 31 - 1;
/** Of the front, when all is over. A flood would take more. */
const MAX_GROWTH = 64 * 1024 * 1024;

const fieldsOf = (method: string, path: string): Fields => [
  [':method', method],
  [':scheme', 'http'],
  [':authority', 'localhost'],
  [':path', path],
];
const GET = fieldsOf('GET', '/sizes');
const POST = fieldsOf('POST', '/sizes');
const number = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const times = (count: number, bytes: Buffer) => Buffer.concat(Array<Buffer>(count).fill(bytes));

describe('limits of HTTP/2', function () {
  this.timeout(120_000);
  let stack: Stack;
  const connections: RawHttp2[] = [];

  before(async () => {
    stack = await startStack({
      env: {
        HTTP_HEAD_TIMEOUT_MS: '1500',
        HTTP_IDLE_TIMEOUT_MS: '1500',
        HTTP_STALL_TIMEOUT_MS: '2000',
        GATEWAY_MEMORY_MB: '1024',
      },
    });
    const limits = { concurrent_requests: 1_000 };
    await stack.deploy({ path: '/sizes', code: SIZES, limits });
    await stack.deploy({ path: '/sizes', code: SIZES, method: 'POST' });
  });
  afterEach(async () => {
    for (const connection of connections.splice(0)) connection.close();
    // Whatever it was, others are served.
    expect((await call(`${stack.gatewayUrl}/sizes`, { method: 'POST', body: 'abc' })).text).to.equal('3');
  });
  after(() => stack.close());

  const open = async (settings: readonly (readonly [number, number])[] = []) => {
    const connection = await RawHttp2.open(stack.gatewayUrl, settings);
    connections.push(connection);
    return connection;
  };
  const metric = async (name: string) => {
    const { body } = await stack.api.get('/metrics');
    return Number(new RegExp(`^edge_gateway_${name} (\\d+)$`, 'm').exec(String(body))?.[1]);
  };
  const memory = () => {
    const status = readFileSync(`/proc/${frontOf(stack.processes.get('gateway')?.pid ?? 0)}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024;
  };
  const expectEnd = async (connection: RawHttp2, code: number) => {
    await connection.closed();
    expect(connection.goAway).to.equal(code);
  };

  describe('in time:', () => {
    it('half a preface gets 408 of HTTP/1', async () => {
      const connection = await RawConnection.open(stack.gatewayUrl);
      const answers = await connection.send(PREFACE.toString('latin1').slice(0, 16)).ended();
      expect(answers.map(({ status }) => status)).to.deep.equal([408]);
      connection.close();
    });

    it('a connection without a request ends', async () => {
      await expectEnd(await open(), CODE.calm);
    });

    it('a connection whose head stops ends, also when it has others', async () => {
      const connection = await open();
      expect(await connection.ended(connection.request(POST, 'abc'))).to.include({ status: 200, body: '3' });
      connection.send(frame(KIND.headers, FLAG.endStream, 3, block(GET)));
      await expectEnd(connection, CODE.calm);
    });

    it('a connection that is idle ends, however often it is pinged', async () => {
      const connection = await open();
      await connection.ended(connection.request(POST, 'abc'));
      while (!connection.isEnded) {
        connection.send(frame(KIND.ping, 0, 0, Buffer.alloc(8)));
        await delay(100);
      }
      expect(connection.goAway).to.equal(CODE.none);
    });

    it('a body that stops, or trickles in, gets 408, and other streams go on', async () => {
      const connection = await open();
      const slow = [1, 3];
      for (const stream of slow) connection.send(frame(KIND.headers, FLAG.endHeaders, stream, block(POST)));
      let isOver = false;
      const ends = Promise.all(slow.map((stream) => connection.ended(stream))).finally(() => {
        isOver = true;
      });
      for (let next = 5; !isOver; next += 2) {
        connection.send(
          frame(KIND.data, 0, 3, 'x'),
          frame(KIND.headers, FLAG.endHeaders, next, block(POST)),
          frame(KIND.data, FLAG.endStream, next, 'abc'),
        );
        expect(await connection.ended(next)).to.include({ status: 200, body: '3' });
        await delay(100);
      }
      for (const { status, body } of await ends) {
        expect(status).to.equal(408);
        expect(JSON.parse(body)).to.include({ error: 'The request did not arrive in time.' });
      }
    });

    it('responses without a window are reset, and their memory is free', async () => {
      const connection = await open([[INITIAL_WINDOW, 0]]);
      const streams = Array.from({ length: 20 }, () => connection.request(GET));
      for (const end of await Promise.all(streams.map((stream) => connection.ended(stream))))
        expect(end).to.deep.equal({ status: 200, body: '', reset: 8 });
      await eventually(() => expect(memory()).to.be.below(MAX_GROWTH));
    });

    it('a connection that takes nothing of its responses is reset', async () => {
      const connection = await open([[INITIAL_WINDOW, LARGEST_WINDOW]]);
      connection.send(frame(KIND.windowUpdate, 0, 0, number(LARGEST_WINDOW - 65_535)));
      connection.socket.pause();
      for (let count = 0; count < 10; count++) connection.request(GET);
      await eventually(async () => expect(await metric('connections')).to.equal(1));
      await eventually(async () => expect(await metric('connections')).to.equal(0));
    });
  });

  describe('in number:', () => {
    let before: number;
    beforeEach(() => {
      before = memory();
    });
    afterEach(async () => {
      await eventually(() => expect(memory() - before).to.be.below(MAX_GROWTH));
    });

    const FLOODS: Readonly<Record<string, Buffer>> = {
      PING: frame(KIND.ping, 0, 0, Buffer.alloc(8)),
      'answers to no PING': frame(KIND.ping, FLAG.ack, 0, Buffer.alloc(8)),
      SETTINGS: frame(KIND.settings, 0, 0, Buffer.concat([Buffer.from([0, 3]), number(100)])),
      PRIORITY: frame(KIND.priority, 0, 1, Buffer.from([0, 0, 0, 0, 1])),
      WINDOW_UPDATE: frame(KIND.windowUpdate, 0, 0, number(1)),
      'empty DATA': frame(KIND.data, 0, 1),
      'frames that nobody knows': frame(200, 0, 0, 'x'),
    };
    for (const [name, bytes] of Object.entries(FLOODS)) {
      it(`a flood of ${name} ends the connection`, async () => {
        const connection = await open();
        connection.send(frame(KIND.headers, FLAG.endHeaders, 1, block(POST)));
        connection.send(times(5_000, bytes));
        await expectEnd(connection, CODE.calm);
      });
    }

    it('a flood of small DATA is taken, and slow: memory is that of the body', async () => {
      const connection = await open();
      connection.send(frame(KIND.headers, FLAG.endHeaders, 1, block(POST)));
      connection.send(times(20_000, frame(KIND.data, 0, 1, 'x')), frame(KIND.data, FLAG.endStream, 1));
      const { status, body, goAway } = await connection.ended(1);
      expect(goAway ?? `${status} ${body}`).to.be.oneOf([CODE.calm, '200 20000']);
    });

    it('requests that are reset at once end the connection (rapid reset)', async () => {
      const connection = await open();
      for (let stream = 1; stream < 10_000; stream += 2) {
        const ends = FLAG.endHeaders | FLAG.endStream;
        connection.send(frame(KIND.headers, ends, stream, block(GET)));
        connection.send(frame(KIND.reset, 0, stream, number(8)));
      }
      await expectEnd(connection, CODE.calm);
      await eventually(async () => expect(await metric('requests_in_flight')).to.equal(0));
    });

    it('requests that are reset count as long as a handler works for them', async () => {
      const connection = await open();
      for (let stream = 1; stream < 600; stream += 2) {
        const ends = FLAG.endHeaders | FLAG.endStream;
        connection.send(frame(KIND.headers, ends, stream, block(fieldsOf('GET', '/sizes?ms=1000'))));
        connection.send(frame(KIND.reset, 0, stream, number(8)));
      }
      let most = 0;
      await eventually(async () => {
        const inFlight = await metric('requests_in_flight');
        most = Math.max(most, inFlight);
        expect([most > 0, inFlight]).to.deep.equal([true, 0]);
      });
      expect(most).to.be.at.most(STREAMS);
    });

    it('more streams than there may be are refused', async () => {
      const connection = await open();
      const slow = fieldsOf('GET', '/sizes?ms=2000');
      const streams = Array.from({ length: STREAMS + 5 }, () => connection.request(slow));
      const ends = streams.slice(STREAMS).map((stream) => connection.ended(stream));
      for (const end of await Promise.all(ends)) expect(end).to.include({ reset: CODE.refused });
    });

    it('CONTINUATION without an end ends the connection', async () => {
      const connection = await open();
      connection.send(frame(KIND.headers, FLAG.endStream, 1, block(GET)));
      connection.send(times(10_000, frame(KIND.continuation, 0, 1, block([['x', 'y'.repeat(10)]]))));
      await expectEnd(connection, CODE.calm);
    });

    it('heads that grow when they are read end the connection (HPACK bomb)', async () => {
      const connection = await open();
      // A large field that the table remembers, and then its number, a byte each.
      const value = Buffer.alloc(3_900, 'x');
      const remembered = Buffer.from([
        0x40,
        1,
        'a'.charCodeAt(0),
        0x7f,
        ((3_900 - 127) % 128) | 128,
        (3_900 - 127) >> 7,
      ]);
      const head = Buffer.concat([block(GET), remembered, value, Buffer.alloc(10_000, 0xbe)]);
      connection.send(frame(KIND.headers, FLAG.endHeaders | FLAG.endStream, 1, head));
      await expectEnd(connection, CODE.calm);
    });

    it('requests that violate the protocol again and again end the connection', async () => {
      const connection = await open();
      for (let count = 0; count < 200; count++) connection.request([...GET, ['te', 'gzip']]);
      await connection.closed();
      expect(connection.goAway).to.be.above(0);
    });

    it('what is no frame, or too long, ends the connection', async () => {
      for (const bytes of [Buffer.alloc(1_000, 'x'), frame(KIND.data, 0, 1, Buffer.alloc(100_000))]) {
        const connection = await open();
        connection.send(bytes);
        await connection.closed();
        expect(connection.goAway).to.be.above(0);
      }
    });
  });
});
