/**
 * Networks that may call an endpoint, from the API to the log. Other cases are in
 * `rust/front/tests/front/policies`.
 */
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

  it('shows refusals of the policy ip in the log and in metrics', async () => {
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
