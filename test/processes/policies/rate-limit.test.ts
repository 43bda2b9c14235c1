/**
 * Limits of rates, from the API to the client. Other cases are in `rust/front/tests/front/policies`.
 */
import { expect } from 'chai';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

describe('the policy rate_limit', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack({ TRUSTED_PROXIES: '127.0.0.1', GATEWAY_CONCURRENCY: '4' });
  });
  after(() => one?.close());
  const limit = (requests: number, by: string, window_seconds = 3600) => ({ requests, window_seconds, by });
  const from = (address: string, headers: Record<string, string> = {}) =>
    one.send({ headers: { 'x-forwarded-for': address, ...headers } });

  it('admits exactly as many requests as a rate limit allows, over all threads, and says what is left', async () => {
    await one.set(one.endpoint, { rate_limit: limit(100, 'address') });
    const first = await from('198.51.100.1');
    expect(first.headers).to.include({
      'ratelimit-policy': '"address-3600s";q=100;w=3600',
      ratelimit: '"address-3600s";r=99;t=3600',
    });
    const answers = await Promise.all(Array.from({ length: 299 }, () => from('198.51.100.1')));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(99);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).to.have.length(200);
    expect(Number(refused[0]?.headers['retry-after'])).to.be.within(3500, 3600);
    expect(refused[0]?.headers['ratelimit']).to.match(/^"address-3600s";r=0;t=\d+$/);
    expect((await from('198.51.100.2')).status).to.equal(200);
  });

  it('counts a rate limit of a domain over all its endpoints, and several limits together', async () => {
    await one.set(one.endpoint, null);
    await one.set(one.domain, { rate_limit: [limit(3, 'address'), limit(2, 'header:x-tenant')] });
    const send = async (method: string, tenant: string) =>
      (await one.send({ method, headers: { 'x-forwarded-for': '192.0.2.77', 'x-tenant': tenant } })).status;
    expect([await send('GET', '1'), await send('POST', '1'), await send('GET', '1')]).to.deep.equal([
      200, 200, 429,
    ]);
    expect(await send('POST', '2')).to.equal(429);
    await one.set(one.domain, null);
  });
});
