/** One endpoint is deployed again and again while it is called. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { type LoadFailure, outcomes, startLoad } from '../../support/load.js';
import { isRunning } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';

const DEPLOYMENTS = 100;

describe('an endpoint under load', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
  });
  after(() => stack?.close());

  it(`is deployed ${DEPLOYMENTS} times without a failed request`, async () => {
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
    const pids = new Set<number>();
    let failures: readonly LoadFailure[] = [];
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
    }
    expect(outcomes(failures)).to.deep.equal({});
    expect(pids.size).to.equal(DEPLOYMENTS);
    expect(load.served()).to.be.greaterThan(DEPLOYMENTS * 10);
    await eventually(() => expect([...pids].filter(isRunning)).to.have.length(1));
  });
});
