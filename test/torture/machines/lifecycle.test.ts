/** Two machines with the same endpoints: whichever gets a request, both act and serve. Their clocks differ. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Build } from '../../../src/store/builds.js';
import { eventually } from '../../support/eventually.js';
import { ANYTHING, numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { outcomes, startLoad } from '../../support/load.js';
import { type Machine, type Machines, startMachines } from '../../support/machines.js';
import { must } from '../../support/processes.js';

describe('two machines', function () {
  this.timeout(120_000);
  let machines: Machines;
  let both: readonly Machine[];
  before(async () => {
    machines = await startMachines();
    both = [machines.a, machines.b];
  });
  after(() => machines?.close());

  const at = (machine: Machine, path: string) => call(`${machine.gatewayUrl}${path}`);
  const statuses = async (path: string) =>
    Promise.all(both.map(async (machine) => (await at(machine, path)).status));
  const instances = async (path: string) =>
    Promise.all(
      both.map(async (machine) => {
        const { status, text } = await at(machine, path);
        expect(status, text).to.equal(200);
        return (JSON.parse(text) as { instance: number }).instance;
      }),
    );
  const executables = async ({ dataDir }: Machine) => readdir(join(dataDir, 'handlers'));

  for (const [asked, other] of [
    ['a', 'b'],
    ['b', 'a'],
  ] as const) {
    it(`two machines both serve, or stop serving, when machine ${asked} has answered`, async () => {
      const path = `/asked-${asked}`;
      const id = await machines[asked].deploy({ path, code: ANYTHING });
      expect(new Set(await instances(path)).size).to.equal(2);
      for (const { api } of both)
        expect(await must(api.get(`/api/endpoints/${id}`))).to.include({ status: 'running', running: true });
      await must(machines[asked].api.post(`/api/endpoints/${id}/stop`));
      expect(await statuses(path)).to.deep.equal([503, 503]);
      await must(machines[other].api.post(`/api/endpoints/${id}/start`));
      expect(new Set(await instances(path)).size).to.equal(2);
      await must(machines[asked].api.delete(`/api/endpoints/${id}`));
      await eventually(async () => expect(await statuses(path)).to.deep.equal([404, 404]));
    });
  }

  it('two machines have a new host of a domain in force when its change is answered', async () => {
    const hosts = ['first.example', 'second.example'] as const;
    const domain = (await must(machines.a.api.post('/api/domains', { name: 'D', host: hosts[0] }))) as {
      id: string;
    };
    for (const path of ['/hosted/1', '/hosted/2', '/hosted/3'])
      await machines.a.deploy({ path, code: ANYTHING, domain: hosts[0] });
    for (let turn = 1; turn <= 10; turn++) {
      const host = hosts[turn % 2] ?? '';
      const { api } = both[turn % 2] ?? machines.a;
      await must(api.put(`/api/domains/${domain.id}`, { host }));
      const served = async (machine: Machine, header: string) =>
        (await call(`${machine.gatewayUrl}/hosted/${1 + (turn % 3)}`, { headers: { host: header } })).status;
      const other = hosts[(turn + 1) % 2] ?? '';
      for (const machine of both)
        expect([await served(machine, host), await served(machine, other)]).to.deep.equal([200, 404]);
    }
  });

  it('two machines have changed variables and secrets in force with the answer, and lose no request', async () => {
    const code = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_req: Request) -> Response {
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    Response::text(200, format!("{} {}", value("PLAIN"), value("HIDDEN")))
}
handler_loop!(handle);`;
    const id = await machines.a.deploy({ path: '/variables', method: 'GET', code });
    const load = await startLoad({
      targets: both.map(({ gatewayUrl }) => gatewayUrl),
      clients: 4,
      request: () => ({ path: '/variables', text: /^\d* \d*$/ }),
    });
    for (const [turn, { api }] of [...both, ...both].entries()) {
      await must(api.put(`/api/endpoints/${id}/variables`, { PLAIN: String(turn) }));
      await must(api.put(`/api/endpoints/${id}/secrets/HIDDEN`, { value: String(turn) }));
      for (const machine of both) expect((await at(machine, '/variables')).text).to.equal(`${turn} ${turn}`);
    }
    expect(outcomes(await load.stop())).to.deep.equal({});
  });

  it('two machines share requests between two versions, and roll back', async () => {
    const id = await machines.a.deploy({ path: '/shared', method: 'POST', code: numbered(7101) });
    const answers = async (machine: Machine) => {
      const answered = Array.from({ length: 20 }, () =>
        call(`${machine.gatewayUrl}/shared`, { method: 'POST' }),
      );
      return new Set((await Promise.all(answered)).map(({ text }) => text.trim()));
    };
    const deployed = await must(
      machines.b.api.post(`/api/endpoints/${id}/deploy`, { code: numbered(7102), percent: 50 }),
    );
    expect(deployed).to.include({ version: 2 });
    for (const machine of both) expect(await answers(machine)).to.deep.equal(new Set(['7101', '7102']));
    await must(machines.a.api.post(`/api/endpoints/${id}/rollback`));
    for (const machine of both) expect(await answers(machine)).to.deep.equal(new Set(['7101']));
    await must(machines.a.api.delete(`/api/endpoints/${id}`));
  });

  it('two machines roll back 50 times, and share requests by percent, without a failed request', async () => {
    const id = await machines.a.deploy({ path: '/to-and-fro', method: 'POST', code: numbered(7201) });
    await must(machines.b.api.post(`/api/endpoints/${id}/deploy`, { code: numbered(7202) }));
    const loads = await Promise.all(
      both.map(({ gatewayUrl }) =>
        startLoad({
          ...{ targets: [gatewayUrl], clients: 4 },
          request: (client, number) => {
            const body = `${client}/${number}`;
            return { path: '/to-and-fro', method: 'POST', body, text: new RegExp(`^720[12] ${body}$`) };
          },
        }),
      ),
    );
    for (let round = 0; round < 50; round++) {
      const { api } = both[round % 2] ?? machines.a;
      expect(await must(api.post(`/api/endpoints/${id}/rollback`))).to.include({ version: 1 + (round % 2) });
    }
    const targets = [
      { version: 1, percent: 90 },
      { version: 2, percent: 10 },
    ];
    await must(machines.a.api.put(`/api/endpoints/${id}/deployment`, { targets }));
    for (const machine of both) {
      const texts = await Promise.all(
        Array.from({ length: 200 }, async () => {
          const { text } = await call(`${machine.gatewayUrl}/to-and-fro`, { method: 'POST' });
          return text.trim();
        }),
      );
      expect(texts.filter((text) => text === '7202').length).to.be.within(10, 30);
    }
    for (const load of loads) {
      expect(outcomes(await load.stop())).to.deep.equal({});
      expect(load.served()).to.be.greaterThan(100);
    }
    await must(machines.a.api.delete(`/api/endpoints/${id}`));
  });

  it('either worker of two machines compiles for both, which fetch the executable from the store', async () => {
    const [{ a, b }, source] = [machines, { method: 'GET', domain: '*' }];
    for (const [asked, worker, number] of [
      [a, b, 7001],
      [b, a, 7002],
    ] as const) {
      await asked.processes.get('worker')?.end();
      const path = `/compiled-${number}`;
      const { id } = (await must(
        asked.api.post('/api/endpoints', { ...source, name: path, path, code: numbered(number) }),
      )) as { id: string };
      const compiled = await must(asked.api.post(`/api/endpoints/${id}/compile`));
      const { build_id } = compiled as { build_id: string };
      const { artifact } = (await must(asked.api.get(`/api/builds/${build_id}`))) as Build;
      expect(worker.processes.get('worker')?.printed()).to.include(build_id);
      await must(asked.api.post(`/api/endpoints/${id}/start`));
      for (const machine of both) {
        expect((await at(machine, path)).text).to.equal(`${number} `);
        expect(await executables(machine)).to.include(artifact);
      }
      await asked.start('worker');
      // What one has compiled the other knows.
      const again = (await must(
        worker.api.post('/api/endpoints', {
          ...source,
          name: 'x',
          path: `${path}/2`,
          code: numbered(number),
        }),
      )) as { id: string };
      expect(await must(asked.api.post(`/api/endpoints/${again.id}/compile`))).to.include({ cached: true });
    }
  });

  it('a gateway that starts later runs the desired handlers before it accepts connections', async () => {
    const { a, b } = machines;
    await b.processes.get('gateway')?.end();
    const paths = ['/late-1', '/late-2', '/late-3'];
    for (const path of paths) await a.deploy({ path, code: ANYTHING });
    const started = b.start('gateway');
    for (const path of paths) {
      const first = await eventually(() => at(b, path));
      expect(first.status, first.text).to.equal(200);
    }
    await started;
  });

  it('two machines show the same dashboard of the queues', async () => {
    const jobs = await Promise.all(
      both.map(async ({ apiUrl }) => {
        const query = 'activeQueue=compile&status=completed&page=1&jobsPerPage=100';
        const { text } = await call(`${apiUrl}/queues/api/queues?${query}`);
        const { queues } = JSON.parse(text) as { queues: { name: string; jobs: { id: string }[] }[] };
        return queues.map(({ name, jobs: shown }) => [name, shown.map(({ id }) => id)]);
      }),
    );
    expect(jobs[0]).to.deep.equal(jobs[1]);
    expect(jobs[0]?.[0]?.[1]).to.have.length.above(2);
  });
});
