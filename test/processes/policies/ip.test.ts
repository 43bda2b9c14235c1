/** Networks that may call an endpoint, also behind proxies; with real processes. */
import { request } from 'node:http';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

describe('the policy ip', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    // The tests come from 127.0.0.1, as a trusted proxy.
    one = await startPolicyStack({ TRUSTED_PROXIES: '127.0.0.1,192.0.2.0/24' });
  });
  after(() => one?.close());
  const from = async (forwarded: string) =>
    (await one.send({ headers: { 'x-forwarded-for': forwarded } })).status;

  it('counts the address that trusted proxies tell, v4 and v6', async () => {
    await one.set(one.domain, {
      ip: { allow: ['198.51.100.0/24', '2001:db8::/32'], deny: ['198.51.100.7', '2001:db8:bad::/48'] },
    });
    for (const [address, status] of [
      ['198.51.100.1', 200],
      ['198.51.100.7', 403],
      ['198.51.101.1', 403],
      ['2001:db8::1', 200],
      ['2001:db8:bad::1', 403],
      ['2001:db9::1', 403],
      ['::ffff:198.51.100.1', 200],
      ['::ffff:198.51.100.7', 403],
      // Through two proxies.
      ['198.51.100.1, 192.0.2.9', 200],
      // A stranger says that it is somebody else.
      ['198.51.100.1, 203.0.113.9', 403],
      ['nonsense', 403],
    ] as const)
      expect(await from(address), address).to.equal(status);
    expect((await one.send()).status).to.equal(403);
  });

  it('does not believe a stranger that is no proxy', async () => {
    await one.set(one.domain, { ip: { allow: ['198.51.100.0/24'] } });
    const status = await new Promise<number>((resolve, reject) => {
      const sent = request(
        `${one.stack.gatewayUrl}/shown`,
        {
          localAddress: '127.0.0.2',
          headers: { host: one.host, 'x-forwarded-for': '198.51.100.1', forwarded: 'for=198.51.100.1' },
        },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        },
      );
      sent.on('error', reject);
      sent.end();
    });
    expect(status).to.equal(403);
  });

  it('tells of refusals in the log and the figures', async () => {
    await one.set(one.domain, { ip: { deny: ['203.0.113.0/24'] } });
    expect(await from('203.0.113.5')).to.equal(403);
    const id = one.endpoint.split('/').pop();
    await eventually(async () => {
      const { items } = expectData<{
        items: { message: string; fields: Record<string, unknown> | null }[];
      }>(await one.stack.api.get(`/api/logs?endpoint_id=${id}&limit=100`));
      const entry = items.find(({ fields }) => fields?.['policy'] === 'ip');
      expect(entry?.message).to.equal('This address may not call this endpoint.');
    });
    const metrics = await fetch(`${one.stack.apiUrl}/metrics`);
    expect(await metrics.text()).to.match(/edge_gateway_policy_answers_total\{policy="ip"\} [1-9]/);
  });
});
