/** Limits of bodies and times for whole domains; with real processes. */
import { expect } from 'chai';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

describe('the policies body_limit and timeout', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack({ GATEWAY_BODY_LIMIT_BYTES: '2000', REQUEST_TIMEOUT_MS: '2000' });
  });
  after(() => one?.close());

  it('refuse longer bodies, with a length and in chunks, but never allow more than the gateway', async () => {
    await one.set(one.domain, { body_limit: 100 });
    const post = (body: string | Buffer[]) => one.send({ method: 'POST', body });
    expect((await post('x'.repeat(100))).status).to.equal(200);
    const large = await post('x'.repeat(101));
    expect([large.status, large.text]).to.deep.equal([
      413,
      '{"error":"The body is larger than the 100 bytes this gateway accepts."}',
    ]);
    expect((await post([Buffer.alloc(60), Buffer.alloc(60)])).status).to.equal(413);
    await one.set(one.domain, { body_limit: 1_000_000 });
    expect((await post('x'.repeat(2000))).status).to.equal(200);
    expect((await post('x'.repeat(2001))).status).to.equal(413);
    await one.set(one.domain, { body_limit: 0 });
    expect((await post('')).status).to.equal(200);
    expect((await post('x')).status).to.equal(413);
  });

  it('end requests that take longer, but never allow more than the gateway', async () => {
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
