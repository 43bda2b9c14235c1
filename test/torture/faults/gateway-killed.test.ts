/** The whole gateway is killed and started again, with many endpoints running. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { ANYTHING, numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { startLoad } from '../../support/load.js';
import { descendantsOf, isRunning } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';

const ENDPOINTS = 20;

describe('a gateway that is killed under load', () => {
  let stack: Stack;
  let loopingId: string;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    for (let at = 0; at < ENDPOINTS; at++)
      await stack.deploy({ path: `/many/${at}`, code: numbered((at % 2) + 1) });
    // Started without a request.
    const limits = { min_instances: 1 };
    loopingId = await stack.deploy({ path: '/looping', code: ANYTHING, limits });
  });
  after(() => stack?.close());

  const gateway = () => {
    const process = stack.processes.get('gateway');
    if (!process) throw new Error('no gateway');
    return process;
  };
  const textOf = (at: number) => `${(at % 2) + 1} `;
  /** The front, handlers, and the sandbox processes between them and the supervisor. */
  const descendants = () => descendantsOf(gateway().pid).map(({ pid }) => pid);
  const putOnLoad = () =>
    startLoad({
      targets: [stack.gatewayUrl],
      clients: 6,
      request: (client, number) => {
        const at = (client + number) % ENDPOINTS;
        return { path: `/many/${at}`, text: textOf(at) };
      },
    });
  const serves = (at: number) =>
    eventually(async () => {
      const { status, text } = await call(`${stack.gatewayUrl}/many/${at}`);
      expect({ status, text }).to.deep.equal({ status: 200, text: textOf(at) });
    });
  /**
   * Resolves when every endpoint has answered; asks one after the other, so that retries take no time from the start.
   */
  const allServe = async () => {
    for (let at = 0; at < ENDPOINTS; at++) await serves(at);
  };

  const victims: Record<string, () => number[]> = {
    'supervisor alone': () => [gateway().pid],
    'supervisor and front': () => [
      gateway().pid,
      ...descendantsOf(gateway().pid).flatMap(({ pid, command }) =>
        command.includes('gateway-front') ? [pid] : [],
      ),
    ],
  };
  for (const [what, find] of Object.entries(victims)) {
    it(`a killed gateway (${what}) serves every running endpoint after its restart, and leaks no handler`, async () => {
      const load = await putOnLoad();
      // One of the handlers is in an endless loop, and does not notice that its gateway is gone.
      const busy = call(`${stack.gatewayUrl}/looping?do=spin`).catch(() => undefined);
      const before = descendants();
      expect(before).to.have.length.at.least(ENDPOINTS + 1);
      const killed = find();
      for (const pid of killed) process.kill(pid, 'SIGKILL');
      await gateway().end();
      await load.stop();
      await busy;
      await eventually(() => expect(killed.filter(isRunning)).to.deep.equal([]));

      const starting = stack.start('gateway');
      await allServe();
      await starting;
      const crashes = gateway().logged.lines.filter(({ msg }) => msg === 'handler crashed');
      expect(crashes).to.deep.equal([]);
      await eventually(() => expect(before.filter(isRunning)).to.deep.equal([]));
      // One for each endpoint, and no more.
      await eventually(() => expect(descendants()).to.have.length(before.length));
    });
  }

  it('a killed gateway restarts without endpoints that were stopped meanwhile', async () => {
    await gateway().end('SIGKILL');
    const stopping = must(stack.api.post(`/api/endpoints/${loopingId}/stop`));
    await eventually(async () => {
      const { status } = (await must(stack.api.get(`/api/endpoints/${loopingId}`))) as { status: string };
      expect(status).to.equal('stopped');
    });
    await stack.start('gateway');
    await stopping;
    await allServe();
    expect((await call(`${stack.gatewayUrl}/looping`)).status).to.equal(503);
  });
});
