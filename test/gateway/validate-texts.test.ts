/** What a gateway keeps of the policy `validate` of endpoints. */
import { expect } from 'chai';
import { extractValidate, ValidateTexts } from '../../src/gateway/policies/validate-texts.js';
import { compiledText } from '../../src/model/policies/validate-text.js';
import type { RoutedEndpoint } from '../../src/store/endpoint-runs.js';
import { Threads } from '../../src/threads/threads.js';

const policy = (mode: string, text = 'a') =>
  JSON.stringify({
    body_limit: 1,
    validate: { mode, parameters: [{ in: 'query', name: 'a', schema: { const: text } }] },
  });

function row(policies: Partial<RoutedEndpoint>): RoutedEndpoint {
  return {
    ...{ id: 'one', version: 1, domain: 'a.example', method: 'GET', route: '/', routed: true, limits: null },
    ...{
      domain_policies: null,
      collection_policies: null,
      own_policies: null,
      domain_id: null,
      collection_id: null,
    },
    ...{ deployment: null, environment: null, stopped: false, failed: false },
    ...policies,
  };
}

describe('the policy validate in a gateway', () => {
  let threads: Threads;
  let texts: ValidateTexts;
  before(() => {
    threads = new Threads();
    texts = new ValidateTexts(threads);
  });
  after(() => threads.close());

  /** The policies of a row without `validate`, and that as the front takes it. */
  async function read(policies: Partial<RoutedEndpoint>) {
    const { domain, own_policies, validate } = extractValidate(row(policies));
    return { own_policies, validate: validate && (await texts.compiled(domain, validate)) };
  }

  it('keeps the policy validate in the form of the front, and not among the other policies', async () => {
    const { own_policies, validate } = await read({ own_policies: policy('enforce') });
    expect(own_policies).to.equal('{"body_limit":1}');
    const { mode, parameters, schemas } = JSON.parse(validate ?? 'null');
    expect([mode, schemas, parameters[0].shape]).to.deep.equal([
      'enforce',
      [{ const: ['a'] }],
      { schema: 0, types: ['string'] },
    ]);
  });

  it('applies the nearest policy validate', async () => {
    const validate = async (policies: Partial<RoutedEndpoint>) => (await read(policies)).validate;
    const domain_policies = policy('enforce', 'of the domain');
    const collection_policies = policy('report', 'of the collection');
    expect(await validate({ domain_policies, collection_policies })).to.include('of the collection');
    expect(await validate({ domain_policies, collection_policies: '{"body_limit":1}' })).to.include(
      'of the domain',
    );
    expect(await validate({ domain_policies, own_policies: '{"validate":null}' })).to.equal(null);
    expect(await validate({ domain_policies, own_policies: policy('off') })).to.equal(null);
    expect(await validate({ own_policies: '{"cors":{"origins":["*"]}}' })).to.equal(null);
  });

  it('makes a policy validate that cannot be enforced unusable, so that it lets nobody in', async () => {
    const own_policies =
      '{"validate":{"mode":"enforce","parameters":[{"in":"query","name":"a","schema":7}]}}';
    const { validate } = await read({ own_policies });
    expect(JSON.parse(validate ?? '')).to.have.all.keys('unusable');
  });

  it('compiles a long policy validate in a thread, with the result of a short one', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, at) => [`member${at}`, { type: 'string', maxLength: 9 }]),
    );
    const body = { content: { 'application/json': { schema: { type: 'object', properties } } } };
    const long = JSON.stringify({ mode: 'enforce', body });
    const { validate } = await read({ own_policies: `{"validate":${long}}` });
    expect(validate).to.equal(compiledText(long)).and.include('member2999');
  });
});
