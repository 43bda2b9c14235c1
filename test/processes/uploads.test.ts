/**
 * Bodies that handlers read with the SDK while they arrive: held back by slow handlers, cut off, drained, over both
 * versions. What the front does with any handler is tested in `rust/front/tests/front/uploads.rs`.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { connector, type RawConnection } from '../support/raw-http.js';
import { UPLOADS } from '../support/streaming-sources.js';

const MEGABYTE = 1024 * 1024;
const KIB = 'x'.repeat(1024);

describe('streamed request bodies', () => {
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      env: { GATEWAY_CONCURRENCY: '1', STREAM_DRAIN_MS: '1000', GATEWAY_BODY_LIMIT_BYTES: String(MEGABYTE) },
    });
    id = await deploy('/upload');
  });
  after(() => stack.close());
  const open = connector();

  const deploy = (path: string, limits: object | null = null) =>
    stack.deploy({ path, method: 'POST', code: UPLOADS, limits });
  const at = (query: string, body?: Buffer | readonly Buffer[], path = '/upload') =>
    call(`${stack.gatewayUrl}${path}?${query}`, { method: 'POST', ...(body && { body }) });
  const mark = (name: string) => at(`do=set&mark=${name}`);
  const told = async (name: string) => (await at(`do=wait&mark=${name}`)).text;
  /** Sends the head of a request. */
  const begin = async (query: string, framing: string, path = '/upload'): Promise<RawConnection> => {
    const connection = await open(stack.gatewayUrl);
    return connection.send(`POST ${path}?${query} HTTP/1.1\r\nHost: localhost\r\n${framing}\r\n\r\n`);
  };
  const long = (bytes: number) => `Content-Length: ${bytes}`;
  const CHUNKED = 'Transfer-Encoding: chunked';
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  const LAST_CHUNK = '0\r\n\r\n';
  const inFlight = async () => {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  };

  it('lets a handler read a body while it arrives, beyond the limit of whole bodies', async () => {
    const connection = await begin('do=tell&mark=arrives', long(3 * MEGABYTE));
    connection.send(KIB);
    // Before the rest is sent.
    await told('arrives-begun');
    for (let sent = 1; sent < 3 * 1024; sent++) connection.send(KIB);
    await connection.answered(1);
    expect(connection.answers[0]?.status).to.equal(204);
    expect(await told('arrives')).to.equal(String(3 * MEGABYTE - 1));
    // The connection goes on, also behind chunks.
    connection.send(
      `POST /upload?do=count HTTP/1.1\r\nHost: localhost\r\n${CHUNKED}\r\n\r\n${chunk(KIB)}${chunk(KIB)}${LAST_CHUNK}`,
    );
    connection.send('POST /upload?do=count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nend');
    const answers = await connection.answered(3);
    expect(answers.map(({ body }) => body)).to.deep.equal(['', '2048', '3']);
  });

  it('passes bodies of requests and responses both ways at once, unchanged', async () => {
    const content = randomBytes(20 * MEGABYTE);
    const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
    const echoed = await at('do=echo', content);
    expect([echoed.status, hash(echoed.body)]).to.deep.equal([200, hash(content)]);
    const http2 = connectHttp2(stack.gatewayUrl);
    try {
      const stream = http2.request({ ':method': 'POST', ':path': '/upload?do=echo' });
      const received: Buffer[] = [];
      stream.on('data', (piece: Buffer) => received.push(piece));
      // By pieces, or this client would refuse the response for want of memory.
      const pieces = Array.from({ length: 20 }, (_, at) =>
        content.subarray(at * MEGABYTE, (at + 1) * MEGABYTE),
      );
      await pipeline(Readable.from(pieces), stream);
      await eventually(() => expect(hash(Buffer.concat(received))).to.equal(hash(content)));
    } finally {
      http2.destroy();
    }
    // What is sent comes back before more is.
    const connection = await begin('do=echo', CHUNKED);
    for (const word of ['one', 'two', 'three']) {
      connection.send(chunk(word));
      await eventually(() => expect(connection.received).to.contain(chunk(word)));
    }
    connection.send(LAST_CHUNK);
    await eventually(() => expect(connection.received.endsWith(LAST_CHUNK)).to.equal(true));
  });

  it('holds back an upload whose handler reads slowly, and nothing else', async () => {
    const bytes = 20 * MEGABYTE;
    const slow = await begin('do=hold&mark=read', long(bytes));
    for (let sent = 0; sent < bytes; sent += MEGABYTE) slow.send('x'.repeat(MEGABYTE));
    // On the same connection to the handler.
    for (let number = 0; number < 20; number++) {
      expect((await at('do=count', randomBytes(600 * 1024))).text).to.equal(String(600 * 1024));
    }
    expect(slow.socket.writableLength).to.be.greaterThan(8 * MEGABYTE);
    await mark('read');
    const [answer] = await slow.answered(1);
    expect(answer?.body).to.equal(String(bytes));
  });

  it('sends 100 Continue for an upload when there is a handler, and wakes one that is asleep', async () => {
    await deploy('/asleep', { idle_ms: 1_000 });
    await eventually(async () => {
      const endpoints = (await must(stack.api.get('/api/endpoints'))) as {
        path: string;
        pid: number | null;
      }[];
      expect(endpoints.find(({ path }) => path === '/asleep')?.pid).to.equal(null);
    });
    const connection = await begin('do=count', `${long(MEGABYTE)}\r\nExpect: 100-continue`, '/asleep');
    await eventually(() => expect(connection.received).to.equal('HTTP/1.1 100 Continue\r\n\r\n'));
    connection.send('x'.repeat(MEGABYTE));
    const [answer] = await connection.answered(1);
    expect(answer?.body).to.equal(String(MEGABYTE));
  });

  it('drops the rest of an upload when the handler answers early', async () => {
    const refused = await begin('do=refuse', long(50 * MEGABYTE));
    const [answer] = await refused.answered(1);
    expect(answer).to.deep.include({ status: 403, body: '{"error":"not here"}' });
    expect(answer?.headers.connection).to.equal('close');
    // All of it is there: the connection goes on.
    const first = await begin('do=first', CHUNKED);
    first.send(`${chunk('abc')}${LAST_CHUNK}`);
    expect((await first.answered(1))[0]?.body).to.equal('a');
    first.send('POST /upload?do=count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n');
    expect((await first.answered(2))[1]?.body).to.equal('0');
    expect(await inFlight()).to.equal(0);
    // So it does when the rest comes only then, and the next request right behind it.
    const early = await begin('do=early', CHUNKED);
    await eventually(() => expect(early.received).to.contain(LAST_CHUNK));
    early.send(
      `${chunk(KIB)}${LAST_CHUNK}POST /upload?do=count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nend`,
    );
    await eventually(() => expect(early.received).to.match(/early[\s\S]*HTTP\/1\.1 200[\s\S]*\r\n\r\n3$/));
  });

  it('ends an upload in the handler when its client leaves', async () => {
    for (const leave of ['destroy', 'end', 'resetAndDestroy'] as const) {
      const connection = await begin(`do=tell&mark=left-${leave}`, long(3 * MEGABYTE));
      connection.send(KIB);
      await told(`left-${leave}-begun`);
      connection.socket[leave]();
      expect(await told(`left-${leave}`)).to.contain('the client has left');
    }
    const http2 = connectHttp2(stack.gatewayUrl);
    // Without a length, this client would end the body before it resets the stream.
    const headers = { ':method': 'POST', ':path': '/upload?do=tell&mark=left-http2' };
    const stream = http2.request({ ...headers, 'content-length': 3 * MEGABYTE });
    stream.on('error', () => undefined);
    stream.write(KIB);
    await told('left-http2-begun');
    stream.close(constants.NGHTTP2_CANCEL);
    expect(await told('left-http2')).to.contain('the client has left');
    http2.destroy();
    await eventually(async () => expect(await inFlight()).to.equal(0));
  });

  it('answers an upload with 408 when nothing comes for idle_timeout_ms, and 504 when the handler reads nothing', async () => {
    await deploy('/idle', { idle_timeout_ms: 1_000, timeout_ms: 2_000 });
    const idle = await begin('do=tell&mark=idle', CHUNKED, '/idle');
    idle.send(chunk(KIB));
    expect((await idle.ended()).map(({ status }) => status)).to.deep.equal([408]);
    const what = await at('do=wait&mark=idle', undefined, '/idle');
    expect(what.text).to.contain('sent nothing for too long');
    const unread = await begin('do=hold&mark=never', long(3 * MEGABYTE), '/idle');
    unread.send('x'.repeat(2 * MEGABYTE));
    expect((await unread.answered(1))[0]?.status).to.equal(504);
  });

  it('gives the handler a body whole where a policy checks it', async () => {
    const checked = await deploy('/checked');
    const body = { content: { 'application/json': { schema: { type: 'array' } } } };
    await must(
      stack.api.put(`/api/endpoints/${checked}`, { policies: { validate: { mode: 'enforce', body } } }),
    );
    const large = await begin(
      'do=count',
      `${long(2 * MEGABYTE)}\r\nContent-Type: application/json`,
      '/checked',
    );
    expect((await large.answered(1))[0]?.status).to.equal(413);
  });

  it('continues uploads to a handler that is replaced for a while, and then cuts them off', async () => {
    const endpoint = await deploy('/replaced');
    const [ending, lasting] = [
      await begin('do=tell&mark=ending', long(MEGABYTE), '/replaced'),
      await begin('do=tell&mark=lasting', long(MEGABYTE), '/replaced'),
    ];
    for (const connection of [ending, lasting]) connection.send(KIB);
    for (const name of ['ending', 'lasting']) await at(`do=wait&mark=${name}-begun`, undefined, '/replaced');
    await must(stack.api.put(`/api/endpoints/${endpoint}`, { limits: { open_files: 500 } }));
    for (let sent = 1; sent < 1024; sent++) ending.send(KIB);
    expect((await ending.answered(1))[0]?.status).to.equal(204);
    expect((await lasting.answered(1))[0]?.status).to.equal(502);
    expect((await at('do=count', randomBytes(MEGABYTE), '/replaced')).text).to.equal(String(MEGABYTE));
  });

  it('answers an upload with 502 when its handler ends', async () => {
    const connection = await begin('do=tell&mark=crash', long(3 * MEGABYTE));
    connection.send(KIB);
    // Before that, another handler would get the request.
    await told('crash-begun');
    const pid = await eventually(async () => {
      const endpoint = (await must(stack.api.get(`/api/endpoints/${id}`))) as { pid: number | null };
      return endpoint.pid ?? expect.fail('it is asleep');
    });
    process.kill(pid, 'SIGKILL');
    expect((await connection.answered(1))[0]?.status).to.equal(502);
    await eventually(async () => expect((await at('do=count', randomBytes(MEGABYTE))).status).to.equal(200));
  });

  it('counts uploads with their answers as clients of Node see them', async () => {
    const outgoing = httpRequest(`${stack.gatewayUrl}/upload?do=echo`, { method: 'POST' });
    outgoing.write('first');
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const [piece] = (await once(response, 'data')) as [Buffer];
    expect(String(piece)).to.equal('first');
    expect(await inFlight()).to.equal(1);
    outgoing.end();
    await once(response.resume(), 'end');
    await eventually(async () => expect(await inFlight()).to.equal(0));
  });
});
