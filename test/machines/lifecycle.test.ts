/** Two machines at work on the same endpoints: whoever is asked, both act, and both serve. */
import { expect } from 'chai';
import { ANYTHING } from '../processes/sources.js';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { type Machine, type Machines, startMachines } from '../support/machines.js';
import { must } from '../support/processes.js';

describe('two machines', function () {
  this.timeout(120_000);
  let machines: Machines;
  let both: readonly Machine[];
  before(async () => {
    machines = await startMachines();
    both = [machines.a, machines.b];
  });
  after(() => machines.close());

  const textAt = async (machine: Machine, path: string) => (await call(`${machine.gatewayUrl}${path}`)).text;
  const pidAt = async (machine: Machine, path: string) =>
    (JSON.parse(await textAt(machine, path)) as { pid: number }).pid;
  const post = async (machine: Machine, path: string) => must(machine.api.post(path));

  for (const asked of ['a', 'b'] as const) {
    it(`both serve, or stop serving, when the answer of machine ${asked} is there`, async () => {
      const path = `/asked-${asked}`;
      const id = await machines[asked].deploy({ path, code: ANYTHING });
      const pids = await Promise.all(both.map((machine) => pidAt(machine, path)));
      expect(new Set(pids).size).to.equal(2);
      // The endpoint's latest state is what either machine's API tells.
      for (const { api } of both)
        expect(await must(api.get(`/api/endpoints/${id}`))).to.include({ status: 'running', running: true });
      await post(machines[asked], `/api/endpoints/${id}/stop`);
      for (const machine of both)
        expect((await call(`${machine.gatewayUrl}${path}`)).status, machine.hostname).to.equal(503);
      await post(machines[asked === 'a' ? 'b' : 'a'], `/api/endpoints/${id}/start`);
      for (const machine of both) expect(await pidAt(machine, path)).to.be.a('number');
      await must(machines[asked].api.delete(`/api/endpoints/${id}`));
      for (const machine of both)
        await eventually(async () =>
          expect((await call(`${machine.gatewayUrl}${path}`)).status).to.equal(404),
        );
    });
  }
});
