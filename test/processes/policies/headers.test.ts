/**
 * Changed headers, redirects and maintenance, from the API to the client. Other cases are in
 * `rust/front/tests/front/policies`.
 */
import { expect } from 'chai';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

describe('the policies headers, redirect and maintenance', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack();
  });
  after(() => one?.close());

  it('removes, sets and adds headers of requests before handlers get them', async () => {
    await one.set(one.domain, {
      headers: { request: { remove: ['X-Admin'], set: { 'X-Tenant': 'ours' }, add: { Via: 'the edge' } } },
    });
    const { headers } = await one.shown({
      headers: { 'x-admin': '1', 'X-ADMIN': '2', 'x-tenant': 'theirs', via: 'a proxy', 'x-other': 'kept' },
    });
    expect(headers).to.include({ 'x-tenant': 'ours', via: 'a proxy, the edge', 'x-other': 'kept' });
    expect(headers).not.to.have.property('x-admin');
  });

  it('redirects requests, and keeps path and query where the policy says so', async () => {
    await one.set(one.domain, { redirect: { to: 'https://new.example/v2/', status: 308, keep_path: true } });
    const { status, headers, text } = await one.send({ path: '/shown?a=%20b' });
    expect([status, headers['location'], text]).to.deep.equal([
      308,
      'https://new.example/v2/shown?a=%20b',
      '',
    ]);
    await one.set(one.domain, { redirect: { to: 'https://new.example/' }, maintenance: {} });
    const again = await one.send({ path: '/shown?a=b' });
    expect([again.status, again.headers['location']]).to.deep.equal([307, 'https://new.example/']);
  });

  it('announces maintenance, but only to authorized callers', async () => {
    await one.set(one.domain, { maintenance: { message: 'Back at noon.', retry_after_seconds: 90 } });
    const { status, headers, text } = await one.send();
    expect([status, headers['retry-after'], text]).to.deep.equal([503, '90', '{"error":"Back at noon."}']);
    await one.set(one.domain, { maintenance: {}, auth: { api_key: {} } });
    expect((await one.send()).status).to.equal(401);
    await one.set(one.domain, null);
    expect((await one.send()).status).to.equal(200);
  });
});
