/** What a gateway keeps of the policy `validate` of endpoints. */
import { expect } from 'chai';
import { compactEndpoint } from '../../src/gateway/compact-endpoint.js';
import type { RoutedEndpoint } from '../../src/store/endpoint-runs.js';

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
  it('keeps the policy validate in the form of the front, and not among the other policies', () => {
    const { own_policies, validate } = compactEndpoint(row({ own_policies: policy('enforce') }));
    expect(own_policies).to.equal('{"body_limit":1}');
    const { mode, parameters, schemas } = JSON.parse(validate ?? 'null');
    expect([mode, schemas, parameters[0].shape]).to.deep.equal([
      'enforce',
      [{ const: ['a'] }],
      { schema: 0, types: ['string'] },
    ]);
  });

  it('applies the nearest policy validate', () => {
    const validate = (policies: Partial<RoutedEndpoint>) => compactEndpoint(row(policies)).validate;
    const domain_policies = policy('enforce', 'of the domain');
    const collection_policies = policy('report', 'of the collection');
    expect(validate({ domain_policies, collection_policies })).to.include('of the collection');
    expect(validate({ domain_policies, collection_policies: '{"body_limit":1}' })).to.include(
      'of the domain',
    );
    expect(validate({ domain_policies, own_policies: '{"validate":null}' })).to.equal(null);
    expect(validate({ domain_policies, own_policies: policy('off') })).to.equal(null);
    expect(validate({ own_policies: '{"cors":{"origins":["*"]}}' })).to.equal(null);
  });

  it('makes a policy validate that cannot be enforced unusable, so that it lets nobody in', () => {
    const own_policies =
      '{"validate":{"mode":"enforce","parameters":[{"in":"query","name":"a","schema":7}]}}';
    expect(JSON.parse(compactEndpoint(row({ own_policies })).validate ?? '')).to.have.all.keys('unusable');
  });
});
