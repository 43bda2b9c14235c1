/** Two machines of which one loses a process, all of them, the artifact store or PostgreSQL: the other serves on. */
import { expect } from 'chai';
import { startBalancer } from '../../support/balancer.js';
import { eventually } from '../../support/eventually.js';
import { expectFailure } from '../../support/expect.js';
import { ANYTHING, numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { type Load, outcomes, startLoad } from '../../support/load.js';
import { type Machine, type Machines, startMachines } from '../../support/machines.js';
import { withClient } from '../../support/postgres.js';
import { must, type ProcessName } from '../../support/processes.js';

const ANY_INSTANCE = /^\{"instance":\d+\}$/;

describe('a fault of one of two machines', function () {
  this.timeout(120_000);
  let machines: Machines;
  let a: Machine;
  let b: Machine;
  let kept: string;
  before(async () => {
    machines = await startMachines();
    ({ a, b } = machines);
    kept = await a.deploy({ path: '/kept', code: ANYTHING });
  });
  after(() => machines?.close());

  const loads: Load[] = [];
  async function loadOn(target: string): Promise<Load> {
    const load = await startLoad({
      targets: [target],
      request: () => ({ path: '/kept?do=sleep&ms=1', text: ANY_INSTANCE }),
    });
    loads.push(load);
    return load;
  }
  afterEach(async () => {
    for (const load of loads.splice(0)) await load.stop();
  });

  const at = (machine: Machine, path: string) => call(`${machine.gatewayUrl}${path}`);
  const nodesOf = ({ hostname }: Machine) =>
    withClient(machines.database.url, async (client) => {
      const sql = `SELECT nodes.kind, count(observations)::int AS observations FROM nodes
        LEFT JOIN observations ON node_id = id WHERE hostname = $1 GROUP BY id`;
      return (await client.query<{ kind: string; observations: number }>(sql, [hostname])).rows;
    });
  /** As if it had been lost for longer. */
  const letExpire = ({ hostname }: Machine) =>
    withClient(machines.database.url, (client) =>
      client.query(`UPDATE nodes SET heartbeat_at = heartbeat_at - interval '1 minute' WHERE hostname = $1`, [
        hostname,
      ]),
    );
  const kill = async (machine: Machine, ...names: ProcessName[]) => {
    for (const name of names) await machine.processes.get(name)?.end('SIGKILL');
  };
  async function define(path: string, number: number): Promise<string> {
    const endpoint = { name: path, path, method: 'GET', domain: '*', code: numbered(number) };
    return ((await must(a.api.post('/api/endpoints', endpoint))) as { id: string }).id;
  }
  it('a machine serves, and starts endpoints, when the gateway of the other is killed', async () => {
    const load = await loadOn(a.gatewayUrl);
    await kill(b, 'gateway');
    await a.deploy({ path: '/meanwhile', code: ANYTHING });
    expect((await at(a, '/meanwhile')).status).to.equal(200);
    await must(a.api.post(`/api/endpoints/${kept}/start`));
    // Nobody has waited for its row to expire.
    expect((await nodesOf(b)).filter(({ kind }) => kind === 'gateway')).to.have.length(1);
    expect(outcomes(await load.stop())).to.deep.equal({});
    await b.start('gateway');
    for (const path of ['/kept', '/meanwhile']) expect((await at(b, path)).status).to.equal(200);
    expect((await nodesOf(b)).filter(({ kind }) => kind === 'gateway')).to.have.length(1);
  });

  it('a machine does all the work when the other is lost, whose rows expire', async () => {
    const balancer = await startBalancer([a.gatewayUrl, b.gatewayUrl]);
    const load = await loadOn(balancer.url);
    await kill(b, 'gateway', 'worker', 'actor-host', 'web');
    const lostAt = performance.now();
    const alone = await a.deploy({ path: '/alone', code: numbered(7101) });
    expect((await at(a, '/alone')).text).to.equal('7101 ');
    // Only what was under way on the lost machine fails.
    expect(outcomes((await load.stop()).filter(({ sentAt }) => sentAt > lostAt))).to.deep.equal({});
    await balancer.close();
    expect(await nodesOf(b)).to.have.length(4);
    await letExpire(b);
    await eventually(async () => expect(await nodesOf(b)).to.deep.equal([]));
    await Promise.all((['web', 'worker', 'actor-host', 'gateway'] as const).map((name) => b.start(name)));
    for (const path of ['/kept', '/alone']) expect((await at(b, path)).status).to.equal(200);
    await must(b.api.post(`/api/endpoints/${alone}/stop`));
    expect((await at(a, '/alone')).status).to.equal(503);
  });

  it('two machines keep serving when one loses the artifact store; a failed start names the machine', async () => {
    const [first, second] = [await define('/first', 7102), await define('/second', 7103)];
    await b.processes.get('worker')?.end();
    await must(a.api.post(`/api/endpoints/${first}/compile`));
    await b.s3.down();
    expectFailure(
      await a.api.post(`/api/endpoints/${first}/start`),
      'handler_start_failed',
      /^On the machine machine-b: The artifact store cannot be used: connect ECONNREFUSED/,
    );
    // Neither begins with what only one could run.
    await eventually(async () => {
      for (const machine of [a, b]) expect((await at(machine, '/first')).status).to.equal(503);
    });
    // What it has it serves, and starts.
    for (const operation of ['stop', 'start']) await must(b.api.post(`/api/endpoints/${kept}/${operation}`));
    for (const machine of [a, b]) expect((await at(machine, '/kept')).status).to.equal(200);

    const worker = await b.start('worker');
    worker.logged.expectErrors(/build could not be carried out/);
    await a.processes.get('worker')?.end();
    expectFailure(
      await a.api.post(`/api/endpoints/${second}/compile`),
      'artifact_store_unavailable',
      /ECONNREFUSED/,
    );
    await a.start('worker');
    await b.s3.up();
    await must(a.api.post(`/api/endpoints/${second}/compile`));
    for (const id of [first, second]) await must(a.api.post(`/api/endpoints/${id}/start`));
    for (const machine of [a, b]) expect((await at(machine, '/first')).text).to.equal('7102 ');
  });

  it('a machine that loses PostgreSQL keeps serving, delays no other, and catches up afterwards', async () => {
    await b.postgres.down();
    const load = await loadOn(b.gatewayUrl);
    const id = await a.deploy({ path: '/without-b', code: ANYTHING });
    expect((await at(b, '/without-b')).status).to.equal(404);
    await b.postgres.up();
    await eventually(async () => expect((await at(b, '/without-b')).status).to.equal(200));
    expect(outcomes(await load.stop())).to.deep.equal({});
    await must(b.api.post(`/api/endpoints/${id}/stop`));
    for (const machine of [a, b]) expect((await at(machine, '/without-b')).status).to.equal(503);
  });
});
