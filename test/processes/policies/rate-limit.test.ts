/** Limits of rates, exact over all threads of the front; with real processes. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';
import { RawConnection } from '../../support/raw-http.js';

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

  it('lets exactly so many through, over all threads, and tells what is left', async () => {
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

  it('counts on when policies change, and when its window is over anew', async () => {
    await one.set(one.endpoint, { rate_limit: limit(100, 'address'), ip: { deny: ['10.0.0.0/8'] } });
    expect((await from('198.51.100.1')).status).to.equal(429);
    await one.set(one.endpoint, { rate_limit: limit(2, 'address', 1) });
    expect([(await from('::1')).status, (await from('::1')).status]).to.deep.equal([200, 200]);
    await eventually(async () => expect((await from('::1')).status).to.equal(200));
  });

  it('counts networks of IPv6 as one, and callers by a header', async () => {
    await one.set(one.endpoint, { rate_limit: limit(1, 'address') });
    const statuses = [];
    for (const address of ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1'])
      statuses.push((await from(address)).status);
    expect(statuses).to.deep.equal([200, 429, 200]);
    await one.set(one.endpoint, { rate_limit: limit(1, 'header:X-Tenant') });
    const tenant = async (name: string) => (await from('10.0.0.1', { 'x-tenant': name })).status;
    expect([await tenant('a'), await tenant('a'), await tenant('b')]).to.deep.equal([200, 429, 200]);
  });

  it('of a domain is one for all its endpoints; several count together', async () => {
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

  it('does not believe what a client says of where it comes from before the proxy', async () => {
    await one.set(one.endpoint, { rate_limit: limit(1, 'address') });
    expect((await from('6.6.6.6, 203.0.113.50')).status).to.equal(200);
    expect((await from('7.7.7.7, 203.0.113.50')).status).to.equal(429);
  });

  it('counts a stranger that is no proxy by its own address, whatever it says', async () => {
    await one.set(one.endpoint, { rate_limit: limit(2, 'address') });
    const statuses = [];
    for (const said of ['6.6.6.6', '7.7.7.7', '127.0.0.1', '8.8.8.8, 127.0.0.1']) {
      const connection = await RawConnection.open(one.stack.gatewayUrl, '127.0.0.2');
      connection.send(
        `GET /shown HTTP/1.1\r\nHost: ${one.host}\r\nX-Forwarded-For: ${said}\r\nForwarded: for=${said.split(',')[0]}\r\n` +
          'X-Real-IP: 9.9.9.9\r\nConnection: close\r\n\r\n',
      );
      statuses.push((await connection.answered(1))[0]?.status);
      connection.close();
    }
    expect(statuses).to.deep.equal([200, 200, 429, 429]);
  });
});
