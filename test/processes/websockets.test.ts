/**
 * WebSockets: real clients, through the front to handlers with the SDK. What the front does with bytes of any client is
 * tested in `rust/front/tests/front/websockets.rs`.
 */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { ANYTHING } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import type { LogItem } from '../support/log-tail.js';
import { isRunning } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { connector } from '../support/raw-http.js';
import { BLOCKING_SOCKETS, SOCKETS } from '../support/streaming-sources.js';
import {
  endSockets,
  frame,
  framesOf,
  openRawSocket,
  openSocket,
  refusedSocket,
  upgradeHead,
} from '../support/websocket.js';

const MEGABYTE = 1024 * 1024;

describe('WebSockets', function () {
  this.timeout(300_000);
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      env: { GATEWAY_CONCURRENCY: '1', STREAM_DRAIN_MS: '1000', LOG_LEVEL: 'info' },
    });
    id = await deploy('/socket');
    await stack.deploy({ path: '/blocking', code: BLOCKING_SOCKETS });
    await stack.deploy({ path: '/plain', code: ANYTHING });
  });
  afterEach(endSockets);
  after(() => stack?.close());
  const rawly = connector();

  const deploy = (path: string, limits: object | null = null) =>
    stack.deploy({ path, code: SOCKETS, limits: limits ?? { concurrent_requests: 1500 } });
  const url = (query = '', path = '/socket') => `${stack.gatewayUrl}${path}?${query}`;
  const open = (query = '', path = '/socket') => openSocket(url(query, path));
  const openRaw = async (path: string) => openRawSocket(await rawly(stack.gatewayUrl), path);
  /** Resolves when the handler has set a mark. */
  const marked = async (mark: string, path = '/socket') => {
    const waiting = await open(`do=wait&mark=${encodeURIComponent(mark)}`, path);
    await waiting.has(1);
    await waiting.closed;
  };
  const set = async (mark: string) => (await open(`do=set&mark=${mark}`)).closed;
  const setPolicy = (endpoint: string, websocket: object) =>
    must(stack.api.put(`/api/endpoints/${endpoint}`, { policies: { websocket } }));
  const inFlight = async () => {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  };
  const pidOf = async (endpoint: string) =>
    ((await must(stack.api.get(`/api/endpoints/${endpoint}`))) as { pid: number }).pid;

  for (const path of ['/socket', '/blocking'])
    it(`a WebSocket carries text and bytes both ways: ${path}`, async () => {
      const { socket, messages, has, closed } = await open('', path);
      const binary = Buffer.from([0, 255, 128]);
      const large = Buffer.alloc(MEGABYTE, 'x');
      const sent = ['hello', 'grüße 🎈', '', binary, Buffer.alloc(0), large, large.toString()];
      for (const message of sent) socket.send(message);
      await has(sent.length);
      expect(messages).to.deep.equal(sent);
      socket.close(1000, 'bye');
      expect(await closed).to.deep.equal({ code: 1000, reason: 'bye' });
    });

  for (const path of ['/socket', '/blocking'])
    it(`a WebSocket sends while it receives: ${path}`, async () => {
      const { socket, messages, has } = await open('do=ticks', path);
      await has(3);
      socket.send('mine');
      await eventually(() => expect(messages).to.include('mine'));
      const before = messages.length;
      await has(before + 3);
      socket.terminate();
      await eventually(async () => expect(await inFlight()).to.equal(0));
    });

  it('a handler sends pings on a WebSocket, and gets the pongs of its own only', async () => {
    const { socket, messages, has } = await open('do=pings');
    await has(1);
    expect(messages[0]).to.contain('Pong([116, 104, 101, 114, 101])');
    socket.pong('unasked');
    socket.send('after');
    await has(2);
    expect(messages[1]).to.contain('after');
  });

  it('a handler of WebSockets gets the request, the protocols and the caller', async () => {
    const { messages, closed } = await openSocket(url('do=head'), {
      headers: { 'sec-websocket-protocol': 'v1, v2' },
    });
    expect(await closed).to.deep.equal({ code: 1000, reason: '' });
    const about = { path: '/socket', subject: null, protocols: ['v1', 'v2'] };
    expect(JSON.parse(String(messages[0]))).to.deep.equal(about);
    const { socket } = await openSocket(url('do=chooses'), {}, ['v1', 'v2']);
    expect(socket.protocol).to.equal('v2');
    socket.terminate();
    // One that was not offered is not chosen.
    const raw = await rawly(stack.gatewayUrl);
    raw.send(upgradeHead('/socket?do=chooses-other', ['Sec-WebSocket-Protocol: v1']));
    await eventually(() => expect(raw.received).to.match(/^HTTP\/1\.1 101 .*\r\n\r\n/s));
    expect(raw.received.toLowerCase()).not.to.contain('sec-websocket-protocol');
  });

  it('refuses a WebSocket as the handler says', async () => {
    expect(await refusedSocket(url('do=refuses'))).to.include({ status: 403, body: 'members only' });
    expect((await refusedSocket(url('do=missing'))).status).to.equal(404);
  });

  it('closes a WebSocket as the handler says, and when it returns', async () => {
    expect(await (await open('do=closes')).closed).to.deep.equal({ code: 4001, reason: 'done' });
    expect(await (await open('do=returns')).closed).to.deep.equal({ code: 1000, reason: '' });
  });

  it('closes a WebSocket with 1011 when the handler fails, panics or ends', async () => {
    for (const [query, path, message] of [
      ['do=fails', '/socket', 'x'],
      ['do=panics', '/socket', 'x'],
      ['', '/blocking', 'panic'],
      ['do=exits', '/socket', 'x'],
    ] as const) {
      const { socket, closed } = await open(query, path);
      socket.send(message);
      expect((await closed).code, query).to.equal(1011);
    }
    await eventually(async () => (await open('do=returns')).closed);
  });

  it('tells the handler of a WebSocket why and when its client leaves', async () => {
    const closing = await open('do=tells&mark=closing');
    closing.socket.close(4002, 'enough');
    await marked('closing-4002-enough');
    await marked('closing');
    for (const leave of ['reset', 'end'] as const) {
      const raw = await openRaw(`/socket?do=tells&mark=left-${leave}`);
      if (leave === 'reset') raw.socket.resetAndDestroy();
      else raw.socket.end();
      await marked(`left-${leave}`);
    }
    await eventually(async () => expect(await inFlight()).to.equal(0));
  });

  it('counts a WebSocket as a request until it ends, and logs it with its bytes', async () => {
    const raw = await openRaw('/socket');
    await eventually(async () => expect(await inFlight()).to.equal(1));
    raw.send(frame(0x81, 'eleven bytes'));
    await eventually(() => expect(framesOf(raw).toString()).to.contain('eleven bytes'));
    raw.send(frame(0x88));
    await raw.ended();
    await eventually(async () => expect(await inFlight()).to.equal(0));
    const [requestId] = /(?<=\r\nx-request-id: )\S+/i.exec(raw.received) ?? [];
    await eventually(async () => {
      const { items } = (await must(stack.api.get(`/api/logs?request_id=${requestId}`))) as {
        items: LogItem[];
      };
      expect(items.map(({ kind, status, bytes }) => ({ kind, status, bytes }))).to.deep.equal([
        { kind: 'request', status: 101, bytes: 12 },
      ]);
    });
  });

  it('answers 426 to ordinary requests for WebSockets, and serves requests for WebSockets where there are none', async () => {
    const plain = await call(url());
    expect([plain.status, plain.headers['sec-websocket-version'], plain.headers['upgrade']]).to.deep.equal([
      426,
      '13',
      'websocket',
    ]);
    const other = await rawly(stack.gatewayUrl);
    other.send(upgradeHead('/plain?do=echo'));
    const [answer] = await other.answered(1);
    expect(answer?.status).to.equal(200);
    const client = connectHttp2(stack.gatewayUrl);
    try {
      const [headers] = await once(client.request({ ':path': '/socket' }), 'response');
      expect(headers[':status']).to.equal(426);
    } finally {
      client.destroy();
    }
  });

  it('lets pages open WebSockets of the same host, and where a policy names their origin', async () => {
    const endpoint = await deploy('/origins');
    const origin = (text: string) => ({ headers: { origin: text } });
    const own = new URL(stack.gatewayUrl).origin;
    (await openSocket(url('', '/origins'), origin(own))).socket.terminate();
    for (const foreign of ['https://other.example', 'null', `${own}0`])
      expect(await refusedSocket(url('', '/origins'), origin(foreign))).to.include({ status: 403 });
    await setPolicy(endpoint, { allowed_origins: ['https://*.example'] });
    (await openSocket(url('', '/origins'), origin('https://other.example'))).socket.terminate();
    (await openSocket(url('', '/origins'), origin(own))).socket.terminate();
    expect((await refusedSocket(url('', '/origins'), origin('https://example.org'))).status).to.equal(403);
    await setPolicy(endpoint, { allowed_origins: ['*'] });
    (await openSocket(url('', '/origins'), origin('null'))).socket.terminate();
    const refused = await stack.api.put(`/api/endpoints/${endpoint}`, {
      policies: { websocket: { allowed_origins: ['other.example'] } },
    });
    expect(refused.status).to.equal(400);
  });

  it('closes a WebSocket with 1009 beyond its longest message, and with 1008 beyond its rate', async () => {
    const endpoint = await deploy('/limits');
    await setPolicy(endpoint, { max_message_bytes: 1000, messages_per_second: 20 });
    const long = await open('', '/limits');
    long.socket.send(Buffer.alloc(1000));
    await long.has(1);
    long.socket.send(Buffer.alloc(1001));
    expect((await long.closed).code).to.equal(1009);
    const much = await open('', '/limits');
    for (let number = 0; number < 50; number++) much.socket.send('x');
    expect((await much.closed).code).to.equal(1008);
    const pings = await open('', '/limits');
    for (let number = 0; number < 50; number++) pings.socket.ping();
    expect((await pings.closed).code).to.equal(1008);
    // The handler sends a longer one than it may.
    const sent = await open('do=much&count=2', '/limits');
    expect((await sent.closed).code).to.equal(1011);
    const usual = await open('do=tells&mark=too-long');
    usual.socket.send(Buffer.alloc(MEGABYTE + 1));
    expect((await usual.closed).code).to.equal(1009);
    await marked('too-long-1009-a message is longer than this endpoint takes');
  });

  it('pings a silent client of a WebSocket, and closes the connection when it does not answer', async () => {
    await deploy('/idle', { idle_timeout_ms: 2_500 });
    const answering = await open('', '/idle');
    let pings = 0;
    answering.socket.on('ping', () => {
      pings += 1;
    });
    const silent = await openRaw('/idle?do=tells&mark=silent');
    await silent.ended();
    expect(framesOf(silent).toString('latin1')).to.equal('\x89\x07gateway');
    await marked('silent', '/idle');
    await eventually(() => expect(pings).to.be.greaterThan(2));
    answering.socket.send('there');
    await answering.has(1);
    answering.socket.terminate();
  });

  it('holds back a WebSocket whose client is slow, and no other', async () => {
    const slow = await openRaw('/socket?do=much&count=20480&mark=all-sent');
    slow.socket.pause();
    const other = await open();
    for (let number = 0; number < 50; number++) other.socket.send(`${number}`);
    await other.has(50);
    const waiting = await open('do=wait&mark=all-sent');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(waiting.messages).to.be.empty;
    slow.socket.resume();
    await waiting.has(1);
    await eventually(() => expect(framesOf(slow).length).to.be.greaterThan(20 * MEGABYTE));
    other.socket.terminate();
  });

  it('holds back a WebSocket whose handler is slow, and no other; notices a client that leaves meanwhile', async () => {
    const { socket, messages, has } = await open('do=slow&mark=go-on');
    const sent = Array.from({ length: 24 }, (_, number) => Buffer.alloc(MEGABYTE, `${number} `));
    for (const message of sent) socket.send(message);
    const other = await open();
    for (let number = 0; number < 50; number++) other.socket.send(`${number}`);
    await other.has(50);
    expect(socket.bufferedAmount).to.be.greaterThan(0);
    await set('go-on');
    await has(sent.length);
    expect(messages).to.deep.equal(sent);
    socket.terminate();
    other.socket.terminate();
    const leaving = await open('do=slow&mark=never');
    for (const message of sent) leaving.socket.send(message);
    await eventually(async () => expect(await inFlight()).to.equal(1));
    leaving.socket.terminate();
    // What has arrived is not taken by the handler; its request counts until it has.
    await set('never');
    await eventually(async () => expect(await inFlight()).to.equal(0));
  });

  it('a WebSocket carries any number of empty messages', async () => {
    const { messages, has, closed } = await open('do=empties&count=50000');
    await has(50_000);
    expect(new Set(messages)).to.deep.equal(new Set(['']));
    expect((await closed).code).to.equal(1000);
  });

  it('closes a WebSocket with 1012 a while after its handler was replaced', async () => {
    const endpoint = await deploy('/replaced');
    const old = await pidOf(endpoint);
    const lasting = await open('', '/replaced');
    lasting.socket.send('before');
    await lasting.has(1);
    const replaced = stack.api.put(`/api/endpoints/${endpoint}`, { limits: { open_files: 500 } });
    await eventually(async () => expect(await pidOf(endpoint)).not.to.be.oneOf([old, null]));
    await must(replaced);
    expect((await lasting.closed).code).to.equal(1012);
    (await open('', '/replaced')).socket.terminate();
    await eventually(() => expect(isRunning(old)).to.equal(false));
    const stopped = await open('', '/replaced');
    await must(stack.api.post(`/api/endpoints/${endpoint}/stop`));
    expect((await stopped.closed).code).to.equal(1012);
    expect((await refusedSocket(url('', '/replaced'))).status).to.equal(503);
  });

  it('serves a thousand WebSockets at a time', async () => {
    const clients = [];
    for (let batch = 0; batch < 10; batch++)
      clients.push(...(await Promise.all(Array.from({ length: 100 }, () => open()))));
    for (const [number, { socket }] of clients.entries()) socket.send(`${number}`);
    for (const [number, client] of clients.entries()) {
      await client.has(1);
      expect(client.messages).to.deep.equal([`${number}`]);
    }
    for (const { socket } of clients) socket.close();
    for (const { closed } of clients) expect((await closed).code).to.equal(1005);
    await eventually(async () => expect(await inFlight()).to.equal(0));
  });

  it('refuses a WebSocket while all threads of its handler have one', async () => {
    const path = '/few';
    await stack.deploy({ path, code: BLOCKING_SOCKETS, limits: { processes: 20 } });
    const clients = [];
    let refused: { status: number } | undefined;
    while (refused === undefined && clients.length < 200) {
      try {
        clients.push(await open('', path));
      } catch {
        refused = await refusedSocket(url('', path));
      }
    }
    expect(refused).to.include({ status: 503 });
    for (const [number, { socket, has }] of clients.entries()) {
      socket.send(`${number}`);
      await has(1);
    }
    for (const { socket } of clients) socket.terminate();
    await eventually(async () => (await open('', path)).socket.terminate());
  });

  it('answers 426 to a trial request to a handler of WebSockets', async () => {
    const answer = (await must(
      stack.api.post(`/api/endpoints/${id}/invoke`, { method: 'GET', path: '/socket' }),
    )) as { status: number };
    expect(answer.status).to.equal(426);
  });
});
