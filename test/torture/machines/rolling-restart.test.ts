/** Every process of two machines is restarted, one after the other, under load that a balancer spreads over both. */
import { expect } from 'chai';
import { type Balancer, startBalancer } from '../../support/balancer.js';
import { eventually } from '../../support/eventually.js';
import { numbered } from '../../support/handler-sources.js';
import { type Load, outcomes, startLoad } from '../../support/load.js';
import { type Machine, type Machines, startMachines } from '../../support/machines.js';
import { must, type ProcessName } from '../../support/processes.js';

const CLIENTS = 16;
/** In the order of a rolling upgrade. */
const PROCESSES: readonly ProcessName[] = ['web', 'worker', 'actor-host', 'gateway'];

describe('a rolling restart of two machines', function () {
  this.timeout(180_000);
  let machines: Machines;
  let gateways: Balancer;
  let apis: Balancer;
  before(async () => {
    machines = await startMachines();
    gateways = await startBalancer([machines.a.gatewayUrl, machines.b.gatewayUrl]);
    apis = await startBalancer([machines.a.apiUrl, machines.b.apiUrl]);
  });
  after(async () => {
    await gateways?.close();
    await apis?.close();
    await machines?.close();
  });

  it('a rolling restart of two machines loses no request of gateways nor API, and counts every one', async () => {
    const { a, b } = machines;
    await a.deploy({ path: '/number', method: 'POST', code: numbered(1) });
    const handled = async () =>
      ((await must(a.api.get('/api/stats'))) as { requests_handled: number }).requests_handled;
    const before = await handled();
    const load = await startLoad({
      targets: [gateways.url],
      clients: CLIENTS,
      request: (client, number) => ({
        path: `/number?ms=${number % 4}`,
        method: 'POST',
        body: `${client}-${number}`,
        text: `1 ${client}-${number}`,
      }),
    });
    const apiLoad = await startLoad({
      targets: [apis.url],
      clients: 4,
      request: () => ({ path: '/api/endpoints', text: /"\/number"/ }),
    });
    try {
      for (const machine of [a, b]) await restartAll(machine, [load, apiLoad]);
    } finally {
      await Promise.all([load.stop(), apiLoad.stop()]);
    }
    expect({ gateways: outcomes(load.failures()), apis: outcomes(apiLoad.failures()) }).to.deep.equal({
      gateways: {},
      apis: {},
    });
    await eventually(async () => expect(await handled()).to.equal(before + load.served()));
  });

  async function restartAll(machine: Machine, loads: readonly Load[]): Promise<void> {
    for (const name of PROCESSES) {
      await progress(loads);
      const ended = await machine.processes.get(name)?.end();
      expect(ended, `${name} of ${machine.hostname}`).to.deep.equal({ code: 0, signal: null });
      await progress(loads);
      await machine.start(name);
    }
    await progress(loads);
  }

  /** Resolves when the load has gone on for a while. */
  async function progress(loads: readonly Load[]): Promise<void> {
    const done = (load: Load) => load.served() + load.failures().length;
    const before = loads.map(done);
    await eventually(() => {
      loads.forEach((load, at) => {
        expect(done(load)).to.be.at.least((before[at] ?? 0) + 100);
      });
    });
  }
});
