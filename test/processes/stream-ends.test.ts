/** What clients see of open streams when the front of a gateway, or the gateway, ends or is replaced. */
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { frontOf, frontsOf, isRunning } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { type OpenStream, overHttp1, overHttp2, type ReadStream } from '../support/stream-load.js';
import { STREAMS } from '../support/streaming-sources.js';

/** Long enough for the streams that are to end by themselves, on a busy machine. */
const STREAM_DRAIN_MS = 4_000;
/** As HTTP/1 and HTTP/2 say it. */
const CUT_OFF = /^aborted$|NGHTTP2_INTERNAL_ERROR/;

describe('open streams', () => {
  let stack: Stack;
  let id: string;
  const sessions: ClientHttp2Session[] = [];
  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      env: { GATEWAY_CONCURRENCY: '2', STREAM_DRAIN_MS: String(STREAM_DRAIN_MS) },
    });
    id = await stack.deploy({ path: '/stream', code: STREAMS, method: 'POST' });
  });
  afterEach(() => {
    for (const session of sessions.splice(0)) session.destroy();
  });
  after(() => stack.close());

  const gateway = () => stack.processes.get('gateway') ?? expect.fail('no gateway');
  const front = () => frontOf(gateway().pid) ?? expect.fail('no front');
  const handler = async () => ((await must(stack.api.get(`/api/endpoints/${id}`))) as { pid: number }).pid;
  const ask = (query: string) => call(`${stack.gatewayUrl}/stream?${query}`, { method: 'POST' });
  const inFlight = async () => {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  };
  /** Over both versions of HTTP. */
  const ways = async (): Promise<readonly ReadStream[]> => {
    const session = connect(stack.gatewayUrl);
    sessions.push(session);
    await once(session, 'connect');
    session.on('error', () => undefined); // its streams tell
    return [overHttp1(stack.gatewayUrl), overHttp2(session)];
  };
  const begin = (all: readonly ReadStream[], query: string) => all.map((read) => read(`/stream?${query}`));
  const receive = (streams: readonly OpenStream[], text: string) =>
    eventually(() => {
      for (const { received } of streams) expect(received).to.contain(text);
    });
  const expectEnds = async (streams: readonly OpenStream[], received: string | RegExp, error?: RegExp) => {
    for (const end of await Promise.all(streams.map(({ ended }) => ended))) {
      expect(end.received).to.match(typeof received === 'string' ? new RegExp(`^${received}$`) : received);
      if (error) expect(end.error).to.match(error);
      else expect(end.error).to.equal(undefined);
    }
  };
  /** The reasons that the log has for streams that were cut off. */
  const reasons = () =>
    gateway()
      .logged.lines.filter(({ msg }) => msg === 'a streamed response was cut off')
      .map(({ reason }) => reason);
  const DRAINED = 'the gateway stops, or its front is replaced';

  it('open streams of a front that is replaced end by themselves, or are cut off after STREAM_DRAIN_MS', async () => {
    const running = await handler();
    const all = await ways();
    const [ending, lasting] = [begin(all, 'do=pieces&mark=on'), begin(all, 'do=endless&mark=replaced')];
    await receive(ending, 'first');
    await receive(lasting, 'more');
    const old = front();
    process.kill(gateway().pid, 'SIGUSR2');
    await eventually(() => expect(frontsOf(gateway().pid).filter((pid) => pid !== old)).to.have.length(1));
    expect((await ask('do=set&mark=on')).status).to.equal(204);
    await expectEnds(ending, 'firstsecond');
    expect(isRunning(old), 'the old front, which has streams').to.equal(true);
    await expectEnds(lasting, /^(more\n)+$/, CUT_OFF);
    // The handler is told, and others have the new front.
    expect((await ask('do=wait&mark=replaced')).status).to.equal(204);
    await eventually(() => expect(isRunning(old)).to.equal(false));
    await eventually(() => expect(reasons()).to.deep.equal([DRAINED, DRAINED]));
    expect(await handler()).to.equal(running);
  });

  it('open streams of a front that is killed break, and their handler is told', async () => {
    gateway().logged.expectErrors(/front exited, starting another/);
    const running = await handler();
    const all = await ways();
    const streams = begin(all, 'do=endless&mark=killed');
    await receive(streams, 'more');
    process.kill(front(), 'SIGKILL');
    await expectEnds(streams, /^(more\n)+/, /^aborted$|ECONNRESET|^closed with code 8$|NGHTTP2_CANCEL/);
    expect((await eventually(() => ask('do=wait&mark=killed'))).status).to.equal(204);
    expect(await handler()).to.equal(running);
    await eventually(async () => expect(await inFlight()).to.equal(0));
  });

  it('open streams of a gateway that stops end by themselves, or are cut off after STREAM_DRAIN_MS', async () => {
    const all = await ways();
    const [ending, lasting] = [begin(all, 'do=ticks&count=40&ms=50'), begin(all, 'do=endless&mark=stopped')];
    await receive(ending, 'tick');
    await receive(lasting, 'more');
    const before = reasons().length;
    const ended = gateway().end();
    await eventually(async () => {
      const code = await ask('do=whole').then(
        () => 'answered',
        (error: { code?: string }) => error.code,
      );
      expect(code).to.equal('ECONNREFUSED');
    });
    await expectEnds(ending, /^(tick\n){40}$/);
    await expectEnds(lasting, /^(more\n)+$/, CUT_OFF);
    expect(await ended).to.deep.equal({ code: 0, signal: null });
    expect(reasons().slice(before)).to.deep.equal([DRAINED, DRAINED]);
  });
});
