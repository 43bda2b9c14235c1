/** One endpoint is deployed again and again while it is called. */
import { expect } from 'chai';
import { type Authority, startAuthority } from '../../support/authority.js';
import { eventually } from '../../support/eventually.js';
import { numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { startHttp2Load } from '../../support/http2-load.js';
import { type LoadFailure, outcomes, startLoad } from '../../support/load.js';
import { freePort } from '../../support/ports.js';
import { isRunning } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { SECRET_KEY } from '../../support/test-services.js';

const DEPLOYMENTS = 100;
const HOST = 'localhost';

describe('an endpoint under load', () => {
  let stack: Stack;
  let authority: Authority;
  let tlsPort: number;
  before(async () => {
    authority = await startAuthority();
    tlsPort = await freePort();
    const env = { TLS_PORT: String(tlsPort), SECRET_KEY };
    stack = await startStack({ processes: ['web', 'worker', 'gateway'], env });
    const domain = await must(stack.api.post('/api/domains', { name: HOST, host: HOST }));
    const { id } = domain as { id: string };
    await must(stack.api.put(`/api/domains/${id}/certificate`, await authority.issue([HOST])));
  });
  after(async () => {
    await stack?.close();
    await authority?.remove();
  });

  it(`is deployed ${DEPLOYMENTS} times without a failed request, also over HTTP/2 and TLS`, async () => {
    const sources = [numbered(1), numbered(2), numbered(3)];
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
    const http2 = [
      await startHttp2Load(stack.gatewayUrl, '/swap?ms=5', 3),
      // The certificate is in force a moment after it has been taken.
      await eventually(() => startHttp2Load(`https://${HOST}:${tlsPort}`, '/swap?ms=5', 3, tls)),
    ];
    const pids = new Set<number>();
    let failures: readonly LoadFailure[] = [];
    const http2Failures: string[] = [];
    try {
      for (let deployment = 1; deployment <= DEPLOYMENTS; deployment++) {
        const number = deployment % sources.length;
        await must(stack.api.put(`/api/endpoints/${id}`, { code: sources[number] }));
        await must(stack.api.post(`/api/endpoints/${id}/compile`));
        const { pid } = (await must(stack.api.post(`/api/endpoints/${id}/start`))) as { pid: number };
        pids.add(pid);
        // Who asks after the answer to the start gets what was started.
        const answer = await call(`${stack.gatewayUrl}/swap`, { method: 'POST', body: 'x' });
        expect(answer.text).to.equal(`${number + 1} x`);
      }
    } finally {
      failures = await load.stop();
      for (const one of http2) http2Failures.push(...(await one.stop()));
    }
    expect(http2Failures).to.deep.equal([]);
    for (const one of http2) expect(one.served()).to.be.greaterThan(DEPLOYMENTS * 5);
    expect(outcomes(failures)).to.deep.equal({});
    expect(pids.size).to.equal(DEPLOYMENTS);
    expect(load.served()).to.be.greaterThan(DEPLOYMENTS * 10);
    await eventually(() => expect([...pids].filter(isRunning)).to.have.length(1));
  });
});
