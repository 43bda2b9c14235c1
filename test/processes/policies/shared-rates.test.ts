/** Limits of rates over machines, with Redis; with real processes. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { call } from '../../support/http.js';
import { AUDIENCE, ISSUER, type KeyServer, newKey, serveKeys, signToken } from '../../support/issuer.js';
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
  let issuer: KeyServer | undefined;
  let urls: readonly string[];
  before(async () => {
    redis = await startRedis();
    one = await startPolicyStack({
      ...{ REDIS_URL: redis.url, TRUSTED_PROXIES: '127.0.0.1', ALLOW_PRIVATE_URLS: 'true' },
    });
    const port = await freePort();
    second = one.stack.launch('gateway', { GATEWAY_PORT: String(port) });
    await second.ready;
    urls = [one.stack.gatewayUrl, `http://127.0.0.1:${port}`];
  });
  after(async () => {
    await second?.end();
    await one?.close();
    await issuer?.close();
    await redis?.remove();
  });
  const from = (url: string | undefined, address: string, more: Record<string, string> = {}) =>
    call(`${url}/shown`, { headers: { host: one.host, 'x-forwarded-for': address, ...more } });
  const rule = (more: object = {}) => ({
    rate_limit: { requests: LIMIT, window_seconds: 3600, by: 'address', ...more },
  });

  it('admits a rate limit to within one percent under load from two gateways', async () => {
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

  it('counts rates by address before it looks at credentials, and by subject afterwards', async () => {
    const known = await newKey('ES256', 'known');
    const keys = await serveKeys([known.jwk]);
    issuer = keys;
    const limit = (requests: number, by: string) => ({ requests, window_seconds: 3600, by });
    await one.set(one.endpoint, {
      auth: { jwt: { issuer: ISSUER, audience: AUDIENCE, jwks_url: keys.url } },
      rate_limit: [limit(3, 'address'), limit(2, 'subject')],
    });
    const send = async (address: string, token: string) =>
      from(urls[0], address, { authorization: `Bearer ${token}` });
    const ada = await signToken(known);
    const first = await send('192.0.2.1', ada);
    expect([first.status, first.headers['ratelimit']?.toString().match(/"\w+-3600s";r=\d/g)]).to.deep.equal([
      200,
      ['"address-3600s";r=2', '"subject-3600s";r=1'],
    ]);
    const statuses = [];
    for (const [address, sub] of [
      ['192.0.2.2', 'ada'],
      ['192.0.2.2', 'ada'],
      ['192.0.2.1', 'bob'],
      ['192.0.2.1', 'eve'],
      ['192.0.2.1', 'eve'],
    ] as const)
      statuses.push((await send(address, sub === 'ada' ? ada : await signToken(known, { sub }))).status);
    expect(statuses).to.deep.equal([200, 429, 200, 200, 429]);
    const forged = await signToken(await newKey('ES256', 'forged'));
    const { asked } = keys;
    expect((await send('192.0.2.1', forged)).status).to.equal(429);
    // No key was looked for: that of another address, which may, is.
    expect(keys.asked).to.equal(asked);
    const refused = await send('192.0.2.3', forged);
    expect([refused.status, refused.headers['ratelimit']?.toString().match(/r=\d/g)]).to.deep.equal([
      401,
      ['r=2'],
    ]);
    await eventually(() => expect(keys.asked).to.be.greaterThan(asked));
    await one.set(one.endpoint, null);
  });

  it('counts callers beyond those that fit into Redis by itself', async () => {
    const ownerId = one.endpoint.split('/').at(-1);
    await one.set(one.endpoint, { rate_limit: { requests: 2, window_seconds: 3600, by: 'header:x-team' } });
    const ask = async (team: string) => (await from(urls[0], '198.51.100.1', { 'x-team': team })).status;
    const admitted = [await ask('known'), await ask('known')];
    const queries = new Redis(redis.url);
    try {
      const counter = `edge-gateway:rate-callers:${ownerId} header:x-team 3600`;
      expect(await queries.get(counter)).to.equal('1');
      await queries.incrby(counter, 100_000);
      const callers = () => queries.keys('edge-gateway:rate:*');
      const known = (await callers()).length;
      expect([
        ...admitted,
        await ask('known'),
        await ask('new'),
        await ask('new'),
        await ask('new'),
      ]).to.deep.equal([...[200, 200, 429], ...[200, 200, 429]]);
      expect(await callers()).to.have.length(known);
    } finally {
      queries.disconnect();
    }
  });

  it('admits requests while Redis is away, or refuses them where the rate limit says so', async () => {
    await one.set(one.endpoint, rule());
    await redis.stop();
    await eventually(async () => expect((await from(urls[0], '198.51.100.9')).status).to.equal(200));
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
