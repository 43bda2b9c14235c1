/**
 * HTTP/2 at the gateway, with TLS, and one case without: Node's client against the real processes. What the front does
 * without TLS is tested in `rust/front/tests/front/http2.rs`.
 */
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { expect } from 'chai';
import { type Authority, startAuthority } from '../support/authority.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { ANYTHING, numbered } from '../support/handler-sources.js';
import { startHttp2Load } from '../support/http2-load.js';
import { freePort } from '../support/ports.js';
import { frontOf } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { SECRET_KEY } from '../support/test-services.js';

const HOST = 'localhost';
const BODY_LIMIT = 4 * 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

describe('HTTP/2 at the gateway', function () {
  this.timeout(180_000);
  let stack: Stack;
  let authority: Authority;
  let tlsPort: number;
  const sessions: ClientHttp2Session[] = [];

  before(async () => {
    authority = await startAuthority();
    tlsPort = await freePort();
    const env = { TLS_PORT: String(tlsPort), SECRET_KEY, GATEWAY_BODY_LIMIT_BYTES: String(BODY_LIMIT) };
    stack = await startStack({ env });
    const domain = await stack.api.post('/api/domains', { name: HOST, host: HOST });
    const { id } = expectData<{ id: string }>(domain, 201);
    for (const method of ['GET', 'POST'])
      await stack.deploy({ path: '/any', method, domain: '*', code: ANYTHING });
    expectData(await stack.api.put(`/api/domains/${id}/certificate`, await authority.issue([HOST])));
    const tls = { port: tlsPort, servername: HOST, ca: authority.root, ALPNProtocols: ['h2', 'http/1.1'] };
    await eventually(async () => {
      const socket = connectTls({ host: '127.0.0.1', ...tls });
      await once(socket, 'secureConnect');
      expect(socket.alpnProtocol).to.equal('h2');
      socket.destroy();
    });
  });
  afterEach(() => {
    for (const session of sessions.splice(0)) session.destroy();
  });
  after(async () => {
    await stack?.close();
    await authority?.remove();
  });

  const open = async (isSecure = false): Promise<ClientHttp2Session> => {
    const session = isSecure
      ? connect(`https://${HOST}:${tlsPort}`, { ca: authority.root })
      : connect(stack.gatewayUrl.replace('127.0.0.1', HOST));
    sessions.push(session);
    session.on('error', () => undefined);
    await once(session, 'connect');
    return session;
  };
  /** @throws when the stream is reset before its end */
  const received = (stream: ClientHttp2Stream): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const pieces: Buffer[] = [];
      let headers: IncomingHttpHeaders & IncomingHttpStatusHeader = {};
      stream.on('response', (given) => {
        headers = given;
      });
      stream.on('data', (piece: Buffer) => pieces.push(piece));
      stream.on('error', reject);
      stream.on('end', () => {
        if (headers[':status'] === undefined) return reject(new Error('no response'));
        return resolve({ status: headers[':status'], headers, body: Buffer.concat(pieces) });
      });
    });
  const send = (
    session: ClientHttp2Session,
    path: string,
    headers: OutgoingHttpHeaders = {},
    body?: Buffer | string,
  ): Promise<Answer> => {
    const method = body === undefined ? 'GET' : 'POST';
    const stream = session.request({ ':method': method, ':path': path, ...headers }, { endStream: !body });
    if (body) stream.end(body);
    return received(stream);
  };
  const random = (length: number) => Buffer.alloc(length, `${Math.random()} `);

  for (const isSecure of [false, true]) {
    it(`serves requests over HTTP/2 as over HTTP/1, ${isSecure ? 'with' : 'without'} TLS`, async () => {
      const session = await open(isSecure);
      const cookie = ['a=b', 'c=d'];
      const { status, headers, body } = await send(session, '/any?x=1', { 'X-Own': 'yes', cookie });
      expect(status).to.equal(200);
      expect(headers).to.include({
        'content-type': 'application/json',
        'content-length': `${body.length}`,
      });
      expect(headers['x-request-id']).to.match(/^[\w-]+$/);
      expect(headers).to.have.property('date').and.not.have.property('connection');
      const seen = JSON.parse(String(body)) as { headers: Record<string, string> };
      expect(seen).to.deep.include({
        method: 'GET',
        path: '/any',
        query: { x: '1' },
        client_ip: '127.0.0.1',
      });
      const port = isSecure ? tlsPort : new URL(stack.gatewayUrl).port;
      expect(seen.headers).to.include({ host: `${HOST}:${port}`, 'x-own': 'yes', cookie: 'a=b; c=d' });
      const own = await send(session, '/any', { 'x-request-id': 'my-own' });
      expect(own.headers['x-request-id']).to.equal('my-own');
    });
  }

  it('passes bodies of any size both ways, side by side, over HTTP/2', async () => {
    const session = await open(true);
    const bodies = [1, 16_384, 65_536, 300_000, 1_000_000, 3_500_000].map(random);
    const answers = await Promise.all(bodies.map((body) => send(session, '/any?do=echo', {}, body)));
    for (const [at, { status, body }] of answers.entries()) {
      expect(status).to.equal(200);
      expect(body.equals(bodies[at] as Buffer)).to.equal(true);
    }
  });

  it('serves more requests at once than an HTTP/2 connection may have streams', async () => {
    const session = await open(true);
    const answers = await Promise.all(
      Array.from({ length: 400 }, (_, at) => send(session, '/any?do=echo', {}, `number ${at}`)),
    );
    expect(answers.map(({ body }) => String(body))).to.deep.equal(
      Array.from({ length: 400 }, (_, at) => `number ${at}`),
    );
    expect(session.remoteSettings.maxConcurrentStreams).to.equal(100);
  });

  it('answers errors in JSON over HTTP/2, and keeps the connection open', async () => {
    const session = await open(true);
    const tooLarge = Buffer.alloc(BODY_LIMIT + 1);
    const announced = { 'content-length': String(tooLarge.length) };
    for (const [expected, answer] of [
      [404, send(session, '/nothing')],
      [405, send(session, '/any', { ':method': 'DELETE' })],
      [413, send(session, '/any', announced, tooLarge)],
      [413, send(session, '/any', {}, tooLarge)],
      [500, send(session, '/any?do=panic')],
    ] as const) {
      const { status, headers, body } = await answer;
      expect(status, String(body)).to.equal(expected);
      expect(headers['content-type']).to.equal('application/json');
      expect(headers['x-request-id']).to.match(/^[\w-]+$/);
      expect(JSON.parse(String(body))).to.have.all.keys('error');
    }
    expect((await send(session, '/any', { ':method': 'DELETE' })).headers['allow']).to.include('GET');
    expect((await send(session, '/any')).status).to.equal(200);
    expect(session.closed).to.equal(false);
  });

  it('speaks HTTP/1.1 with clients of TLS that do not ask for HTTP/2', async () => {
    const tls = { host: '127.0.0.1', port: tlsPort, servername: HOST, ca: authority.root };
    const socket = connectTls(tls);
    await once(socket, 'secureConnect');
    expect(socket.alpnProtocol).to.equal(false);
    socket.write(`GET /any HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(String(answer)).to.match(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('loses no HTTP/2 request when handlers are redeployed under load', async () => {
    const id = await stack.deploy({ path: '/numbered', domain: '*', method: 'POST', code: numbered(1) });
    const loads = [
      await startHttp2Load(stack.gatewayUrl, '/numbered?ms=5', 10),
      await startHttp2Load(`https://${HOST}:${tlsPort}`, '/numbered?ms=5', 10, { ca: authority.root }),
    ];
    for (const number of [2, 3, 4]) {
      await must(stack.api.put(`/api/endpoints/${id}`, { code: numbered(number) }));
      await must(stack.api.post(`/api/endpoints/${id}/compile`));
      await must(stack.api.post(`/api/endpoints/${id}/start`));
      const served = loads.map((load) => load.served());
      await eventually(() => {
        for (const [at, load] of loads.entries())
          expect(load.served()).to.be.greaterThan((served[at] ?? 0) + 20);
      });
    }
    for (const load of loads) expect(await load.stop()).to.deep.equal([]);
  });

  it('sends GOAWAY to HTTP/2 clients when the front ends, and finishes open requests', async () => {
    const session = await open();
    let isTold = false;
    session.on('goaway', (code) => {
      expect(code).to.equal(constants.NGHTTP2_NO_ERROR);
      isTold = true;
    });
    const gateway = stack.processes.get('gateway');
    const before = frontOf(gateway?.pid ?? 0);
    const answer = send(session, '/any?do=sleep&ms=3000');
    await delay(0);
    await send(session, '/any');
    const ended = gateway?.end();
    await eventually(() => expect(isTold).to.equal(true));
    expect((await answer).status).to.equal(200);
    await once(session, 'close');
    expect((await ended)?.code).to.equal(0);
    await stack.start('gateway');
    expect(frontOf(stack.processes.get('gateway')?.pid ?? 0)).not.to.equal(before);
  });
});
