/** One endpoint is deployed again and again while it is called, and while its streams are open. */
import { once } from 'node:events';
import { type ClientHttp2Session, connect, type SecureClientSessionOptions } from 'node:http2';
import { expect } from 'chai';
import { type Authority, startAuthority } from '../../support/authority.js';
import { eventually } from '../../support/eventually.js';
import { numberedStreams } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { startHttp2Load } from '../../support/http2-load.js';
import { type LoadFailure, outcomes, startLoad } from '../../support/load.js';
import { freePort } from '../../support/ports.js';
import { isRunning } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import {
  overHttp1,
  overHttp2,
  type ReadStream,
  type StreamEnd,
  startStreamLoad,
} from '../../support/stream-load.js';
import { SECRET_KEY } from '../../support/test-services.js';

const DEPLOYMENTS = 100;
const HOST = 'localhost';
/** Long enough for each short stream on a busy machine. Those without end are cut off after it. */
const STREAM_DRAIN_MS = 4_000;
const PIECES = 10;
const SHORT = `/swap?pieces=${PIECES}&ms=20`;
const ENDLESS = '/swap?pieces=1000000&ms=20';

describe('an endpoint under load', function () {
  this.timeout(240_000);
  let stack: Stack;
  let authority: Authority;
  let tlsPort: number;
  const sessions: ClientHttp2Session[] = [];
  before(async () => {
    authority = await startAuthority();
    tlsPort = await freePort();
    const env = { TLS_PORT: String(tlsPort), SECRET_KEY, STREAM_DRAIN_MS: String(STREAM_DRAIN_MS) };
    stack = await startStack({ processes: ['web', 'worker', 'gateway'], env });
    const domain = await must(stack.api.post('/api/domains', { name: HOST, host: HOST }));
    const { id } = domain as { id: string };
    await must(stack.api.put(`/api/domains/${id}/certificate`, await authority.issue([HOST])));
  });
  after(async () => {
    for (const session of sessions) session.destroy();
    await stack?.close();
    await authority?.remove();
  });

  const sessionWith = async (url: string, options: SecureClientSessionOptions = {}) => {
    const session = connect(url, options);
    sessions.push(session);
    await once(session, 'connect');
    session.on('error', () => undefined); // its streams tell
    return session;
  };

  it(`deploys an endpoint ${DEPLOYMENTS} times without a failed request or stream, also over HTTP/2 and TLS`, async () => {
    const sources = [numberedStreams(1), numberedStreams(2), numberedStreams(3)];
    const id = await stack.deploy({ path: '/swap', code: sources[0] ?? '', method: 'POST' });
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 6,
      request: (client, number) => {
        const body = `${client}/${number}`;
        // Some are in the handler for a while: they are in flight when it is replaced.
        const ms = number % 5 === 0 ? 30 : 0;
        // Some make a connection for each request.
        const headers: Record<string, string> = client < 4 ? {} : { connection: 'close' };
        return { path: `/swap?ms=${ms}`, method: 'POST', headers, body, text: new RegExp(`^[123] ${body}$`) };
      },
    });
    const tls = { ca: authority.root };
    const tlsUrl = `https://${HOST}:${tlsPort}`;
    const http2 = [
      await startHttp2Load(stack.gatewayUrl, '/swap?ms=5', 3),
      // The certificate is in force a moment after it has been taken.
      await eventually(() => startHttp2Load(tlsUrl, '/swap?ms=5', 3, tls)),
    ];
    const ways: readonly ReadStream[] = [
      ...[overHttp1(stack.gatewayUrl), overHttp1(tlsUrl, tls)],
      ...[overHttp2(await sessionWith(stack.gatewayUrl)), overHttp2(await sessionWith(tlsUrl, tls))],
    ];
    const short = ways.map((read) => startStreamLoad(read, SHORT, 3, (end) => problemOfShort(end)));
    const endless = ways.map((read) => startStreamLoad(read, ENDLESS, 1, (end) => problemOfEndless(end)));
    const pids = new Set<number>();
    let failures: readonly LoadFailure[] = [];
    const otherFailures: string[] = [];
    let cut: Promise<(readonly string[])[]> = Promise.resolve([]);
    const wereCutTwice = () => endless.every((one) => one.ended() >= 2);
    let deployments = 0;
    try {
      // More on a fast machine: until a stream without end was cut off, and the one that was opened after it.
      while (deployments < DEPLOYMENTS || !wereCutTwice()) {
        deployments++;
        const number = deployments % sources.length;
        await must(stack.api.put(`/api/endpoints/${id}`, { code: sources[number] }));
        await must(stack.api.post(`/api/endpoints/${id}/compile`));
        const { pid } = (await must(stack.api.post(`/api/endpoints/${id}/start`))) as { pid: number };
        pids.add(pid);
        // Who asks after the answer to the start gets what was started.
        const answer = await call(`${stack.gatewayUrl}/swap`, { method: 'POST', body: 'x' });
        expect(answer.text).to.equal(`${number + 1} x`);
      }
      // The faster the deployments are, the fewer streams have ended meanwhile.
      await eventually(() => {
        for (const one of short) expect(one.ended()).to.be.greaterThan(DEPLOYMENTS);
      });
    } finally {
      failures = await load.stop();
      // Those that are open now are cut off when the endpoint is stopped.
      cut = Promise.all(endless.map((one) => one.stop()));
      for (const one of [...http2, ...short]) otherFailures.push(...(await one.stop()));
    }
    await eventually(() => expect([...pids].filter(isRunning)).to.have.length(1));
    await must(stack.api.post(`/api/endpoints/${id}/stop`));
    otherFailures.push(...(await cut).flat());
    await eventually(() => expect([...pids].filter(isRunning)).to.deep.equal([]));
    expect(otherFailures).to.deep.equal([]);
    for (const one of http2) expect(one.served()).to.be.greaterThan(DEPLOYMENTS * 5);
    expect(outcomes(failures)).to.deep.equal({});
    expect(pids.size).to.equal(deployments);
    expect(load.served()).to.be.greaterThan(DEPLOYMENTS * 10);
  });
});

/** It comes to its end, whatever happens to its handler meanwhile. */
function problemOfShort({ status, received, error }: StreamEnd): string | undefined {
  if (status !== 200 || error !== undefined) return 'a short stream has failed';
  return isOfOneHandler(received) && received.split('\n').length === PIECES + 1
    ? undefined
    : 'a short stream is not whole';
}

/** It is cut off in a way that its client sees. */
function problemOfEndless({ status, received, error }: StreamEnd): string | undefined {
  const isCut = error === 'aborted' || error?.includes('NGHTTP2_INTERNAL_ERROR');
  if (status !== 200 || !isCut) return 'a stream without end was not cut off as it should be';
  return isOfOneHandler(received) ? undefined : 'a stream without end has other lines';
}

/** Whether the lines are in order, and all of the same handler. */
function isOfOneHandler(received: string): boolean {
  const [number = ''] = received;
  const lines = received.split('\n').slice(0, -1);
  return lines.length > 0 && lines.every((line, at) => line === `${number} ${at}`);
}
