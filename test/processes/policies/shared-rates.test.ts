/** Limits of rates over machines, with Redis; with real processes. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { call } from '../../support/http.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';
import { freePort } from '../../support/ports.js';
import type { TestProcess } from '../../support/processes.js';
import { startRedis, type TestRedis } from '../../support/redis.js';

const LIMIT = 1_000;

describe('the policy rate_limit over machines', function () {
  this.timeout(180_000);
  let redis: TestRedis;
  let one: PolicyStack;
  let second: TestProcess;
  let urls: readonly string[];
  before(async () => {
    redis = await startRedis();
    one = await startPolicyStack({ REDIS_URL: redis.url, TRUSTED_PROXIES: '127.0.0.1' });
    const port = await freePort();
    second = one.stack.launch('gateway', { GATEWAY_PORT: String(port) });
    await second.ready;
    urls = [one.stack.gatewayUrl, `http://127.0.0.1:${port}`];
  });
  after(async () => {
    await second?.end();
    await one?.close();
    await redis?.remove();
  });
  const from = (url: string | undefined, address: string) =>
    call(`${url}/shown`, { headers: { host: one.host, 'x-forwarded-for': address } });
  const rule = (more: object = {}) => ({
    rate_limit: { requests: LIMIT, window_seconds: 3600, by: 'address', ...more },
  });

  it('lets exactly so many through under load from both', async () => {
    await one.set(one.endpoint, rule());
    const statuses: number[] = [];
    const clients = Array.from({ length: 16 }, async (_, client) => {
      for (let count = 0; count < 100; count++)
        statuses.push((await from(urls[client % 2], '198.51.100.1')).status);
    });
    await Promise.all(clients);
    const admitted = statuses.filter((status) => status === 200).length;
    expect(admitted).to.be.within(LIMIT * 0.99, LIMIT * 1.01);
    expect(statuses.filter((status) => status === 429)).to.have.length(1600 - admitted);
    const refused = await from(urls[1], '198.51.100.1');
    expect(refused.headers['ratelimit']).to.match(/^"address-3600s";r=0;t=\d+$/);
    expect(Number(refused.headers['retry-after'])).to.be.within(3000, 3600);
    expect((await from(urls[0], '198.51.100.2')).status).to.equal(200);
  });

  it('lets requests through while Redis is away, or refuses them where the rule says so', async () => {
    await redis.stop();
    await eventually(async () => expect((await from(urls[0], '198.51.100.1')).status).to.equal(200));
    expectData(await one.stack.api.put(one.endpoint, { policies: rule({ on_failure: 'closed' }) }));
    const { status, text } = await from(urls[0], '198.51.100.3');
    expect([status, text]).to.deep.equal([
      503,
      '{"error":"Requests cannot be counted at the moment; try again later."}',
    ]);
    await redis.start();
    await eventually(async () => expect((await from(urls[0], '198.51.100.3')).status).to.equal(200));
  });
});
