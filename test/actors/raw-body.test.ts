/** Bodies that bypass the HTTP parser, from a server that writes each response as the test says. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { PassThrough, type Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { RawBodyAgent, takeBody } from '../../src/actors/raw-body.js';
import { eventually } from '../support/eventually.js';

const LARGE = 20_000_000;
/** What of a body may be in memory: three chunks. */
const MAX_BYTES = 3 * 512 * 1024;

describe('bodies that bypass the parser', () => {
  let server: Server;
  /** Forwards responses of the server, as the processes do. */
  let relay: Server;
  let relayed: { body: Readable; outcome: Promise<void>; response: ServerResponse } | undefined;
  let agent: RawBodyAgent;
  /** Responds to one request. */
  let respond: (socket: Socket) => void;
  const sockets: Socket[] = [];
  const content = randomBytes(LARGE);

  before(async () => {
    server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', () => respond(socket));
    });
    relay = createHttpServer(async (_request, response) => {
      const { body } = await get();
      response.writeHead(200, { 'content-length': LARGE });
      const outcome = pipeline(body, response);
      outcome.catch(() => response.destroy());
      relayed = { body, outcome, response };
    });
    for (const each of [server, relay]) {
      each.listen(0, '127.0.0.1');
      await once(each, 'listening');
    }
  });
  beforeEach(() => {
    agent = new RawBodyAgent({ keepAlive: true });
  });
  afterEach(() => {
    agent.destroy();
    for (const socket of sockets.splice(0)) socket.destroy();
    relayed = undefined;
  });
  after(async () => {
    for (const each of [server, relay]) {
      each.close();
      await once(each, 'close');
    }
  });

  it('delivers a raw body as it was sent, when it is relayed, piped or read', async () => {
    respond = (socket) => socket.write(Buffer.concat([head(LARGE), content]));
    expect(content.equals(await buffer(await getFromRelay()))).to.equal(true);
    const { response, body } = await get();
    expect(body, 'not left to the parser').not.to.equal(response);
    expect(content.equals(await buffer(body))).to.equal(true);
    expect(content.equals(await buffer((await get()).body.pipe(new PassThrough())))).to.equal(true);
  });

  it('reads a raw body after a head that came in many segments', async () => {
    respond = (socket) => {
      socket.setNoDelay();
      const bytes = Buffer.concat([head(LARGE), content.subarray(0, 3)]);
      const writeFrom = (at: number) => {
        if (at < bytes.length)
          socket.write(bytes.subarray(at, at + 1), () => setImmediate(writeFrom, at + 1));
        else socket.write(content.subarray(3));
      };
      writeFrom(0);
    };
    const { response, body } = await get();
    expect(body).not.to.equal(response);
    expect(response.headers).to.include({ etag: '"e"' });
    expect(content.equals(await buffer(body))).to.equal(true);
  });

  it('leaves bodies to the parser that are short, chunked, of an error, or after an interim response', async () => {
    const text = 'x'.repeat(300_000);
    const chunked = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
    for (const [bytes, expected] of [
      ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshort', 'short'],
      [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`, text],
      [`HTTP/1.1 404 Not Found\r\nContent-Length: ${text.length}\r\n\r\n${text}`, text],
      [
        `HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
        text,
      ],
    ] as const) {
      respond = (socket) => socket.write(bytes);
      const { response, body } = await get();
      expect(body, bytes.slice(0, 60)).to.equal(response);
      expect(String(await buffer(body))).to.equal(expected);
    }
  });

  it('reads a raw body after short responses on the same connection', async () => {
    for (let i = 0; i < 3; i++) {
      respond = (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshort');
      expect(String(await buffer((await get()).body))).to.equal('short');
    }
    respond = (socket) => socket.write(Buffer.concat([head(LARGE), content]));
    const { response, body } = await get();
    expect(body).not.to.equal(response);
    expect(content.equals(await buffer(body))).to.equal(true);
    expect(sockets).to.have.length(1);
  });

  it('reads a raw body no faster than its client receives it', async () => {
    respond = (socket) => socket.write(Buffer.concat([head(LARGE), content]));
    const reader = await getFromRelay();
    const { response } = await eventually(() => {
      // Nobody has read anything, so as much as possible is in memory.
      expect(relayed?.response.writableLength).to.be.above(0);
      return relayed as NonNullable<typeof relayed>;
    });
    const received: Buffer[] = [];
    for await (const chunk of reader as AsyncIterable<Buffer>) {
      expect(response.writableLength).to.be.at.most(MAX_BYTES);
      received.push(chunk);
      // Gives the relay time to read further.
      await nextTurn();
    }
    expect(content.equals(Buffer.concat(received))).to.equal(true);
  });

  it('fails a raw body when the connection closes too early', async () => {
    for (const sent of [1, 1_000_000, LARGE - 1]) {
      respond = (socket) => socket.end(Buffer.concat([head(LARGE), content.subarray(0, sent)]));
      expect((await failure(buffer(await getFromRelay()))).message).to.equal('aborted');
      const error = await failure(relayed?.outcome);
      expect(error.message).to.equal(`the response ended after ${sent} of ${LARGE} bytes`);
      expect((await failure(buffer((await get()).body))).message).to.equal(error.message);
    }
  });

  it('fails a raw body that is longer than its Content-Length', async () => {
    respond = (socket) => socket.write(Buffer.concat([head(LARGE - 1), content]));
    expect((await failure(buffer((await get()).body))).message).to.match(/longer than/);
  });

  it('fails a raw body that is too long before anybody reads it, and does not end the process', async () => {
    const length = 300_000;
    // After a large response, left to the parser, the connection has room for all of the next one in one read.
    respond = (socket) =>
      socket.write(
        Buffer.concat([
          Buffer.from(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${LARGE.toString(16)}\r\n`),
          content,
          Buffer.from('\r\n0\r\n\r\n'),
        ]),
      );
    await buffer((await get()).body);
    respond = (socket) => socket.write(Buffer.concat([head(length), content.subarray(0, length + 10)]));
    const { body } = await get();
    // Long enough for an error that nobody listens to.
    await new Promise((resolve) => setImmediate(resolve));
    expect((await failure(buffer(body))).message).to.match(/longer than|Premature close|ended after/);
  });

  it('fails a request at once when the server does not speak HTTP', async () => {
    for (const banner of [
      'SSH-2.0-OpenSSH_9.2\r\n',
      '220 mail.example ESMTP\r\n',
      'HTTP/1.1 200 OK\nA: b\n\n',
    ]) {
      respond = (socket) => socket.write(banner);
      expect(await failure(get()), banner)
        .to.have.property('code')
        .that.matches(/^HPE_/);
    }
  });

  it('keeps raw bodies apart when many arrive at once, and some are aborted', async () => {
    const lengths = Array.from({ length: 12 }, (_, i) => 1_000_000 + 100_003 * i);
    let next = 0;
    respond = (socket) => {
      const length = lengths[next++ % lengths.length] ?? 0;
      socket.write(Buffer.concat([head(length), content.subarray(length, 2 * length)]));
    };
    await Promise.all(
      lengths.map(async (_, i) => {
        const { body, response } = await get();
        const length = Number(response.headers['content-length']);
        if (i % 3 === 0) {
          body.destroy();
          return;
        }
        const sink = new PassThrough();
        const received = buffer(sink);
        const server = createHttpServer((_request, relayed) => {
          relayed.writeHead(200, { 'content-length': length });
          body.pipe(relayed);
        });
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        const outgoing = request({ port: (server.address() as AddressInfo).port, agent: false }).end();
        const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
        answer.pipe(sink);
        expect((await received).equals(content.subarray(length, 2 * length))).to.equal(true);
        server.close();
        await once(server, 'close');
      }),
    );
  });

  it('closes the connection of a raw body when its reader disconnects', async () => {
    respond = (socket) => socket.write(Buffer.concat([head(LARGE), content]));
    const reader = await getFromRelay();
    await once(reader, 'readable');
    reader.destroy();
    await eventually(() => expect(sockets.map(({ destroyed }) => destroyed)).to.deep.equal([true]));
    expect(relayed?.body.destroyed).to.equal(true);
    await failure(relayed?.outcome);
  });

  it('fails a raw body when the agent is closed', async () => {
    respond = (socket) => socket.write(head(LARGE));
    const reading = failure(buffer((await get()).body));
    agent.destroy();
    expect((await reading).message).to.match(/ended after 0 of/);
  });

  async function getFromRelay(): Promise<IncomingMessage> {
    const outgoing = request({ port: (relay.address() as AddressInfo).port, agent: false }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return response;
  }

  function get(): Promise<{ response: IncomingMessage; body: Readable }> {
    return new Promise((resolve, reject) => {
      const outgoing = request({ port: (server.address() as AddressInfo).port, agent }, (response) =>
        resolve({ response, body: takeBody(response) }),
      );
      outgoing.on('error', reject);
      outgoing.end();
    });
  }
});

function head(length: number): Buffer {
  return Buffer.from(`HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: ${length}\r\n\r\n`);
}

async function failure(work: Promise<unknown> | undefined): Promise<Error> {
  const error = await work?.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error, 'expected to fail').to.be.instanceOf(Error);
  return error as Error;
}
