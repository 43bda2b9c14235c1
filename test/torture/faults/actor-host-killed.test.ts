/** The actor host is killed while handlers call services. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { REDIS_READER } from '../../support/faults/service-handlers.js';
import { type LoadFailure, startLoad } from '../../support/load.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { activeService, bind, createService } from '../../support/test-services.js';

const CLIENTS = 6;
/** The error of a call that the fault has interrupted, or that was made while there was no actor host. */
const CLEAR =
  /^Backend unavailable: the pool "cache": the (actor host of this machine cannot be reached: .+|actor host closed the connection, what the call did is not known|connection with the actor host broke.+)$/;

interface ServiceView {
  readonly active: boolean;
}

describe('an actor host that is killed under load', () => {
  let stack: Stack;
  let redis: TestRedis;
  let serviceId: string;
  let idleId: string;
  before(async () => {
    redis = await startRedis();
    stack = await startStack();
    const { hostname: host, port } = new URL(redis.url);
    const config = { host, port: Number(port) };
    serviceId = await activeService(stack.api, 'redis', config);
    idleId = await createService(stack.api, 'redis', config, 'never active');
    const endpointId = await stack.deploy({ path: '/cached', code: REDIS_READER });
    await bind(stack.api, endpointId, serviceId, 'cache');
  });
  after(async () => {
    await stack?.close();
    await redis?.remove();
  });

  const isActive = async (id: string) =>
    ((await must(stack.api.get(`/api/services/${id}`))) as ServiceView).active;

  it('a killed actor host fails calls with a clear error, and serves the same services after its restart', async () => {
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: CLIENTS,
      request: () => ({ path: '/cached', text: 'value' }),
    });
    await stack.processes.get('actor-host')?.end('SIGKILL');
    await eventually(() => expect(load.failures().length).to.be.greaterThan(CLIENTS * 5));
    const startedAt = performance.now();
    await stack.start('actor-host');
    const first = await eventually(() => {
      const served = load.firstServedAfter(startedAt);
      if (served === undefined) throw new Error('no call works again');
      return served;
    });
    // From then on all do.
    const served = load.served();
    await eventually(() => expect(load.served()).to.be.greaterThan(served + CLIENTS * 20));
    const failures = await load.stop();
    for (const failure of failures) expectClear(failure);
    expect(failures.filter(({ sentAt }) => sentAt > first)).to.deep.equal([]);
    expect({ used: await isActive(serviceId), idle: await isActive(idleId) }).to.deep.equal({
      used: true,
      idle: false,
    });
  });
});

function expectClear({ status, what }: LoadFailure): void {
  expect(status, what).to.equal(503);
  expect(what).to.match(CLEAR);
}
