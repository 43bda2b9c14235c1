/** Objects are made for a stack, and show it; only applies change it. */
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';

interface Made {
  readonly id: string;
  readonly stack: string | null;
}

describe('the stack of an object', () => {
  let api: TestApi;
  let domain_id: string;

  before(async () => {
    api = await startApi();
    const domain = { name: 'D', host: 'owners.example' };
    domain_id = expectData<Made>(await api.post('/api/domains', domain), 201).id;
  });
  after(() => api.close());

  const bodies = () => ({
    domains: { name: 'E', host: 'more.owners.example' },
    collections: { name: 'C', domain_id },
    endpoints: { name: 'E', path: '/owned', method: 'GET', domain: 'owners.example' },
    services: { name: 'S', service_type: 'sqlite', config: { path: 'owned.db' } },
  });

  for (const kind of ['domains', 'collections', 'endpoints', 'services'] as const)
    it(`the stack of ${kind} is set when they are made, and not changed later`, async () => {
      const body = bodies()[kind];
      for (const stack of ['', ' shop', 'sh op', 'a'.repeat(64), 5])
        expectFailure(await api.post(`/api/${kind}`, { ...body, stack }), 'invalid_input', /body\.stack/);
      const made = expectData<Made>(await api.post(`/api/${kind}`, { ...body, stack: 'shop' }), 201);
      expect(made.stack).to.equal('shop');
      expectData(await api.put(`/api/${kind}/${made.id}`, { name: 'Other', stack: 'mine' }));
      expect(expectData<Made>(await api.get(`/api/${kind}/${made.id}`)).stack).to.equal('shop');
      expectData(await api.delete(`/api/${kind}/${made.id}`));
      const free = expectData<Made>(await api.post(`/api/${kind}`, body), 201);
      expect(free.stack).to.equal(null);
    });
});
