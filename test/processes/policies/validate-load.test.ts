/** The policy `validate` while much is to be checked; over HTTP, with real processes. */
import { expect } from 'chai';
import { type PolicyStack, problemsOf, startPolicyStack } from '../../support/policies.js';

describe('the policy validate under load', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack();
  });
  after(() => one?.close());

  const set = (validate: object, owner = one.endpoint) =>
    one.set(owner, { validate: { mode: 'enforce', ...validate } });
  const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
    one.send({ method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });

  it('checks large bodies without keeping others waiting', async () => {
    const content = {
      'application/json': { schema: { type: 'array', uniqueItems: true, items: { type: 'integer' } } },
    };
    await set({ body: { content } }, one.post);
    const numbers = Array.from({ length: 400_000 }, (_, at) => at);
    const { status, text } = await post(JSON.stringify(numbers));
    expect([status, JSON.parse(text).bytes]).to.deep.equal([200, JSON.stringify(numbers).length]);
    expect(problemsOf((await post(JSON.stringify([...numbers, 7]))).text)).to.deep.equal([
      'body: must have no equal items, as 7 and 400000 are',
    ]);
  });
});
