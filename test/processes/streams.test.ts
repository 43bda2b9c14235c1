/**
 * Responses that handlers stream with the SDK: piece by piece, held back by slow readers, cut off, drained. What the
 * front does with frames of any handler is tested in `rust/front/tests/front/streams.rs`.
 */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { expect } from 'chai';
import { EventSource } from 'eventsource';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import type { LogItem } from '../support/log-tail.js';
import { isRunning } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { connector } from '../support/raw-http.js';
import { STREAMS } from '../support/streaming-sources.js';

const MEGABYTE = 1024 * 1024;
const LAST_CHUNK = '0\r\n\r\n';

describe('streamed responses', () => {
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      env: { GATEWAY_CONCURRENCY: '1', STREAM_DRAIN_MS: '1000', LOG_LEVEL: 'info' },
    });
    id = await deploy('/stream');
  });
  after(() => stack.close());
  const open = connector();

  const deploy = (path: string, limits: object | null = null) =>
    stack.deploy({ path, code: STREAMS, limits });
  const request = async (query: string, path = '/stream') => {
    const connection = await open(stack.gatewayUrl);
    return connection.send(`GET ${path}?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  };
  const at = (query: string, path = '/stream') => call(`${stack.gatewayUrl}${path}?${query}`);
  const mark = (name: string) => at(`do=set&mark=${name}`);
  const pidOf = async (endpoint: string) =>
    ((await must(stack.api.get(`/api/endpoints/${endpoint}`))) as { pid: number }).pid;
  const inFlight = async () => {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  };
  const receives = (connection: { readonly received: string }, text: string) =>
    eventually(() => expect(connection.received).to.contain(text));

  it('sends each piece of a streamed response before the handler writes the next one', async () => {
    const connection = await request('do=pieces&mark=first');
    await receives(connection, '\r\n\r\n5\r\nfirst\r\n');
    expect(connection.received).to.match(/^HTTP\/1\.1 203 .*\r\nx-kind: pieces\r\n/s);
    expect(connection.received.toLowerCase()).to.contain('transfer-encoding: chunked');
    expect(connection.received).not.to.contain('second');
    await mark('first');
    await receives(connection, `6\r\nsecond\r\n${LAST_CHUNK}`);
    // The connection goes on.
    connection.send('GET /stream?do=whole HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await receives(connection, 'whole');
  });

  it('counts a streamed response as a request until it ends, and logs it with its bytes', async () => {
    const connection = await request('do=pieces&mark=counted');
    await receives(connection, 'first');
    await eventually(async () => expect(await inFlight()).to.equal(1));
    await mark('counted');
    await receives(connection, LAST_CHUNK);
    await eventually(async () => expect(await inFlight()).to.equal(0));
    const [requestId] = /(?<=\r\nx-request-id: )\S+/i.exec(connection.received) ?? [];
    await eventually(async () => {
      const { items } = (await must(stack.api.get(`/api/logs?request_id=${requestId}`))) as {
        items: LogItem[];
      };
      expect(items.map(({ kind, status, bytes }) => ({ kind, status, bytes }))).to.deep.equal([
        { kind: 'request', status: 203, bytes: 11 },
      ]);
    });
  });

  it('holds back a streamed response whose client reads slowly, and nothing else', async () => {
    const slow = await request(`do=much&kib=${20 * 1024}&mark=slow`);
    await receives(slow, 'HTTP/1.1 200');
    slow.socket.pause();
    // On the same connection to the handler.
    for (let number = 0; number < 20; number++) expect((await at('do=whole')).text).to.equal('whole');
    const fast = await request('do=much&kib=2048');
    await receives(fast, LAST_CHUNK);
    const written = Number((await at('do=written')).text);
    // It has read some before it stopped.
    expect(written - slow.received.length).to.be.lessThan(16 * MEGABYTE);
    slow.socket.resume();
    // To look at the end of so long a text again and again would take longer than to receive it.
    await eventually(() => expect(slow.received.length).to.be.greaterThan(20 * MEGABYTE));
    await eventually(() => expect(slow.received.endsWith(LAST_CHUNK)).to.equal(true));
  });

  it('ends a streamed response in the handler when its client leaves', async () => {
    for (const leave of ['destroy', 'end'] as const) {
      const connection = await request(`do=endless&mark=left-${leave}`);
      await receives(connection, 'more');
      connection.socket[leave]();
      expect((await at(`do=wait&mark=left-${leave}`)).status).to.equal(204);
    }
    await eventually(async () => expect(await inFlight()).to.equal(0));
  });

  it('ends a streamed response without the last chunk when the handler fails, panics or ends', async () => {
    const expectCut = async (action: string) => {
      const connection = await request(`do=${action}`);
      await connection.ended();
      expect(connection.received, action).to.contain('some').and.not.to.contain(LAST_CHUNK);
    };
    await expectCut('fails');
    await expectCut('panics');
    // As a client sees it.
    const [response] = (await once(get(`${stack.gatewayUrl}/stream?do=fails`), 'response')) as [
      IncomingMessage,
    ];
    expect(response.statusCode).to.equal(200);
    const [error] = (await once(response.resume(), 'error')) as [Error];
    expect(error.message).to.equal('aborted');
    await expectCut('exits');
    await eventually(async () => expect((await at('do=whole')).text).to.equal('whole'));
  });

  it('refuses an idle_timeout_ms of streams above STREAM_IDLE_TIMEOUT_MS', async () => {
    const refused = await stack.api.put(`/api/endpoints/${id}`, { limits: { idle_timeout_ms: 60_001 } });
    expect(refused.status).to.equal(400);
    expect(JSON.stringify(refused.body)).to.contain('STREAM_IDLE_TIMEOUT_MS');
  });

  it('continues streams of a handler that is replaced for a while, and then cuts them off', async () => {
    const endpoint = await deploy('/replaced');
    const old = await pidOf(endpoint);
    const [ending, lasting] = [
      await request('do=pieces&mark=on', '/replaced'),
      await request('do=endless&mark=x', '/replaced'),
    ];
    await receives(ending, 'first');
    await receives(lasting, 'more');
    const replaced = stack.api.put(`/api/endpoints/${endpoint}`, { limits: { open_files: 500 } });
    await eventually(async () => expect(await pidOf(endpoint)).not.to.be.oneOf([old, null]));
    await must(replaced);
    expect((await at('do=whole', '/replaced')).text).to.equal('whole');
    await lasting.ended();
    await ending.ended();
    expect(lasting.received).not.to.contain(LAST_CHUNK);
    expect(ending.received).to.contain('first').and.not.to.contain(LAST_CHUNK);
    await eventually(() => expect(isRunning(old)).to.equal(false));
  });

  it('streams responses over HTTP/2 as over HTTP/1', async () => {
    const client = connectHttp2(stack.gatewayUrl);
    const stream = (query: string) => {
      const opened = client.request({ ':path': `/stream?${query}` }).setEncoding('utf8');
      const seen = { text: '', ended: false, error: '' };
      opened.on('data', (text: string) => {
        seen.text += text;
      });
      opened.on('end', () => {
        seen.ended = true;
      });
      opened.on('error', ({ message }: Error) => {
        seen.error = message;
      });
      return { opened, seen };
    };
    try {
      const pieces = stream('do=pieces&mark=http2');
      await eventually(() => expect(pieces.seen.text).to.equal('first'));
      const much = stream('do=much&kib=2048');
      await eventually(() => expect(much.seen.ended).to.equal(true));
      expect(much.seen.text).to.have.length(2 * MEGABYTE);
      await mark('http2');
      await eventually(() => expect(pieces.seen).to.include({ text: 'firstsecond', ended: true }));
      const left = stream('do=endless&mark=http2-left');
      await eventually(() => expect(left.seen.text).to.contain('more'));
      left.opened.close(constants.NGHTTP2_CANCEL);
      expect((await at('do=wait&mark=http2-left')).status).to.equal(204);
      const failed = stream('do=fails');
      await eventually(() => expect(failed.seen.error).to.contain('NGHTTP2_INTERNAL_ERROR'));
      const gone = stream('do=endless&mark=http2-gone');
      await eventually(() => expect(gone.seen.text).to.contain('more'));
    } finally {
      client.destroy();
    }
    expect((await at('do=wait&mark=http2-gone')).status).to.equal(204);
  });

  it('streams server-sent events to a real client', async () => {
    const events = new EventSource(`${stack.gatewayUrl}/stream?do=events&mark=event`);
    const first = (await once(events, 'tick')) as unknown as [MessageEvent];
    expect([first[0].lastEventId, first[0].data]).to.deep.equal(['1', 'one\ntwo']);
    events.close();
  });

  it('returns a streamed response whole when the gateway itself sent the request', async () => {
    const answer = (await must(
      stack.api.post(`/api/endpoints/${id}/invoke`, { method: 'GET', path: '/stream?do=much&kib=64' }),
    )) as { status: number; body: string };
    expect(answer.status).to.equal(200);
    expect(answer.body).to.have.length(64 * 1024);
  });
});
