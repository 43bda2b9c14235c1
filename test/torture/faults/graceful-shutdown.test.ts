/** Graceful shutdown: each process gets SIGTERM while it has work, finishes that, and exits with code 0. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { REDIS_READER } from '../../support/faults/service-handlers.js';
import { numbered, slowToCompile } from '../../support/handler-sources.js';
import { type LoadFailure, outcomes, startLoad } from '../../support/load.js';
import { freePort } from '../../support/ports.js';
import { handlerCompilersOf } from '../../support/process-state.js';
import { must, type ProcessName, type Stack, startStack } from '../../support/processes.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { activeService, bind } from '../../support/test-services.js';

const CLEANLY = { code: 0, signal: null };
const CLIENTS = 8;
/** The errors of handlers' calls while the actor host ends, and after that. */
const GONE =
  /^(Service inactive: the pool "cache": the service "redis \d+" is not active|Backend unavailable: the pool "cache": the actor host of this machine cannot be reached: .+)/;

describe('SIGTERM under load', function () {
  this.timeout(120_000);
  let stack: Stack;
  let redis: TestRedis;
  let created = 0;
  before(async () => {
    redis = await startRedis();
    stack = await startStack();
    await stack.deploy({ path: '/number', method: 'POST', code: numbered(1) });
    const { hostname: host, port } = new URL(redis.url);
    const serviceId = await activeService(stack.api, 'redis', { host, port: Number(port) });
    await bind(stack.api, await stack.deploy({ path: '/cached', code: REDIS_READER }), serviceId, 'cache');
  });
  after(async () => {
    await stack?.close();
    await redis?.remove();
  });

  const running = (name: ProcessName) => {
    const process = stack.processes.get(name);
    if (!process) throw new Error(`no ${name}`);
    return process;
  };
  const create = async (code: string) => {
    const path = `/ending/${++created}`;
    const endpoint = { name: path, path, method: 'GET', domain: '*', code };
    return ((await must(stack.api.post('/api/endpoints', endpoint))) as { id: string }).id;
  };
  const compilers = () => handlerCompilersOf(running('worker').pid);
  const compileSlowly = async (number: number) => {
    const id = await create(slowToCompile(300_000, number));
    const answer = must(stack.api.post(`/api/endpoints/${id}/compile`));
    await eventually(() => expect(compilers()).not.to.deep.equal([]));
    return answer;
  };
  const REFUSED = (failures: readonly LoadFailure[]) =>
    failures.every(({ what }) => what.startsWith('ECONNREFUSED'));

  it('loses no request when one gateway of two gets SIGTERM', async () => {
    const port = await freePort();
    const startSecond = async () => {
      const launched = stack.launch('gateway', { GATEWAY_PORT: String(port) });
      await launched.ready;
      return launched;
    };
    const second = await startSecond();
    const load = await startLoad({
      targets: [stack.gatewayUrl, `http://127.0.0.1:${port}`],
      clients: CLIENTS,
      request: (client, number) => {
        const body = `${client}/${number}`;
        // Some are under way when the signal comes.
        return { path: `/number?ms=${number % 7 === 0 ? 200 : 0}`, method: 'POST', body, text: `1 ${body}` };
      },
    });
    const expectProgress = async () => {
      const served = load.served();
      await eventually(() => expect(load.served()).to.be.greaterThan(served + CLIENTS * 20));
    };
    try {
      await expectProgress();
      expect(await running('gateway').end()).to.deep.equal(CLEANLY);
      await expectProgress();
      await stack.start('gateway');
      // All clients are with the other one now.
      expect(await second.end()).to.deep.equal(CLEANLY);
      await expectProgress();
    } finally {
      await second.end();
      await load.stop();
    }
    expect(outcomes(load.failures())).to.deep.equal({});
  });

  it('finishes every accepted compile when a worker gets SIGTERM and another one starts', async () => {
    const ids = await Promise.all(
      Array.from({ length: 6 }, (_, at) => create(slowToCompile(1_500_000, 30 + at))),
    );
    const answers = ids.map((id) => must(stack.api.post(`/api/endpoints/${id}/compile`)));
    await eventually(() => expect(compilers()).not.to.deep.equal([]));
    expect(await running('worker').end()).to.deep.equal(CLEANLY);
    await stack.start('worker');
    for (const answer of answers) expect(await answer).to.include({ status: 'compiled' });
  });

  it('the management API answers accepted requests after SIGTERM', async () => {
    const compiled = compileSlowly(50);
    const load = await startLoad({
      targets: [stack.apiUrl],
      clients: CLIENTS,
      request: () => ({ path: '/api/endpoints', text: /"\/number"/ }),
    });
    await eventually(() => expect(compilers()).not.to.deep.equal([]));
    const ended = await running('web').end();
    expect(await compiled).to.include({ status: 'compiled' });
    await eventually(() => expect(load.failures()).not.to.deep.equal([]));
    await stack.start('web');
    const failures = await load.stop();
    expect(ended).to.deep.equal(CLEANLY);
    expect(REFUSED(failures), JSON.stringify(outcomes(failures))).to.equal(true);
  });

  it('the actor host finishes its calls after SIGTERM; later ones fail with an error', async () => {
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: CLIENTS,
      request: () => ({ path: '/cached', text: 'value' }),
    });
    const ended = await running('actor-host').end();
    await eventually(() => expect(load.failures()).not.to.deep.equal([]));
    await stack.start('actor-host');
    const served = load.served();
    await eventually(() => expect(load.served()).to.be.greaterThan(served + CLIENTS * 10));
    const failures = await load.stop();
    expect(ended).to.deep.equal(CLEANLY);
    // A call can arrive at the moment at which its connection is closed: its outcome is unknown.
    const isCut = ({ what }: LoadFailure) => what.includes('what the call did is not known');
    expect(failures.filter(isCut).length).to.be.at.most(CLIENTS);
    for (const failure of failures) {
      expect(failure.status, failure.what).to.equal(503);
      if (!isCut(failure)) expect(failure.what).to.match(GONE);
    }
  });
});
