/** Handler processes that are killed while they serve. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { numbered } from '../../support/handler-sources.js';
import { outcomes, startLoad } from '../../support/load.js';
import { isRunning } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';

interface EndpointView {
  readonly running: boolean;
  readonly pid: number | null;
}

const CLIENTS = 8;

describe('a handler that is killed under load', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
  });
  after(() => stack?.close());

  const view = async (id: string) => (await must(stack.api.get(`/api/endpoints/${id}`))) as EndpointView;

  it('a killed handler fails only the requests that are in it, with 502, and is replaced', async () => {
    const path = '/killed';
    const id = await stack.deploy({ path, method: 'POST', code: numbered(1) });
    const { pid } = await view(id);
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: CLIENTS,
      request: (client, number) => {
        const body = `${client}/${number}`;
        // Some are in the handler for a while.
        return { path: `${path}?ms=${client % 2 === 0 ? 20 : 0}`, method: 'POST', body, text: `1 ${body}` };
      },
    });
    const killedAt = performance.now();
    process.kill(pid ?? 0, 'SIGKILL');
    await eventually(() => {
      const first = load.firstServedAfter(killedAt);
      if (first === undefined) throw new Error(`Not back: ${JSON.stringify(outcomes(load.failures()))}`);
    });
    const served = load.served();
    await eventually(() => expect(load.served()).to.be.greaterThan(served + CLIENTS * 10));
    const failures = await load.stop();
    expect(Object.keys(outcomes(failures))).to.deep.equal(
      failures.length > 0 ? ['502 {"error":"The handler of this endpoint aborted the request."}'] : [],
    );
    // No client has more than one request in it.
    expect(new Set(failures.map(({ client }) => client)).size).to.equal(failures.length);
    expect(isRunning(pid)).to.equal(false);
    await eventually(async () =>
      expect((await view(id)).pid)
        .to.be.a('number')
        .and.not.equal(pid),
    );
  });
});
