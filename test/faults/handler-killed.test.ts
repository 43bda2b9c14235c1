/** Handler processes that are killed while they serve. */
import { expect } from 'chai';
import { numbered } from '../processes/sources.js';
import { eventually } from '../support/eventually.js';
import { withinBar } from '../support/faults/within-bar.js';
import { outcomes, startLoad } from '../support/load.js';
import { isRunning } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';

interface EndpointView {
  readonly running: boolean;
  readonly pid: number | null;
}

const BACK_WITHIN_MS = 250;
const CLIENTS = 8;

describe('a handler that is killed under load', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
  });
  after(() => stack?.close());

  const view = async (id: string) => (await must(stack.api.get(`/api/endpoints/${id}`))) as EndpointView;

  /** Kills the handler of an endpoint of its own while others call it. */
  async function killOne(path: string) {
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
    const servedBefore = load.served();
    const killedAt = performance.now();
    process.kill(pid ?? 0, 'SIGKILL');
    await eventually(() => {
      const first = load.firstServedAfter(killedAt);
      if (first === undefined) throw new Error(`Not back: ${JSON.stringify(outcomes(load.failures()))}`);
    });
    await eventually(() => expect(load.served()).to.be.greaterThan(servedBefore + CLIENTS * 10));
    const failures = await load.stop();
    return { id, pid, failures, backAfterMs: (load.firstServedAfter(killedAt) ?? 0) - killedAt };
  }

  it('fails only the requests that are in it, with 502, and serves again within 250 ms', async () => {
    // Each on an endpoint of its own: a handler that crashes again soon gets a pause.
    const round = async (number: number) => {
      const { id, pid, failures, backAfterMs } = await killOne(`/killed/${number}`);
      expect(Object.keys(outcomes(failures))).to.deep.equal(
        failures.length > 0 ? ['502 {"error":"The handler of this endpoint broke off."}'] : [],
      );
      // No client has more than one request in it.
      expect(new Set(failures.map(({ client }) => client)).size).to.equal(failures.length);
      expect(isRunning(pid)).to.equal(false);
      await eventually(async () =>
        expect((await view(id)).pid)
          .to.be.a('number')
          .and.not.equal(pid),
      );
      return backAfterMs;
    };
    await withinBar(BACK_WITHIN_MS, round);
  }).timeout(120_000);
});
