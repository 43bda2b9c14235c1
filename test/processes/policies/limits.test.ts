/**
 * Limits of bodies and times for whole domains, from the API to the client. Other cases are in
 * `rust/front/tests/front/policies`.
 */
import { expect } from 'chai';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

describe('the policies body_limit and timeout', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack({ GATEWAY_BODY_LIMIT_BYTES: '2000', REQUEST_TIMEOUT_MS: '2000' });
  });
  after(() => one?.close());

  it('refuses bodies that are longer than the policy body_limit allows', async () => {
    await one.set(one.domain, { body_limit: 100 });
    const status = async (length: number) =>
      (await one.send({ method: 'POST', body: 'x'.repeat(length) })).status;
    expect([await status(100), await status(101)]).to.deep.equal([200, 413]);
  });

  it('ends requests that exceed the policy timeout, which never allows more than the gateway', async () => {
    await one.set(one.domain, { timeout: 100 });
    const late = await one.send({ path: '/shown?sleep=10000' });
    expect([late.status, late.text]).to.deep.equal([
      504,
      '{"error":"The handler did not answer within 100 ms."}',
    ]);
    await one.set(one.domain, { timeout: 3_600_000 });
    const { status, text } = await one.send({ path: '/shown?sleep=10000' });
    expect([status, text]).to.deep.equal([504, '{"error":"The handler did not answer within 2000 ms."}']);
  });
});
