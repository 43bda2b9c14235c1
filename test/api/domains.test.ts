import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';

describe('domains', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  it('creates and shows a domain', async () => {
    const created = await api.post('/api/domains', { name: 'Main', host: 'API.example.com' });
    expect(created.status, JSON.stringify(created.body)).to.equal(201);
    expect(created.body).to.nested.include({
      ok: true,
      'data.host': 'api.example.com',
      'data.enabled': true,
    });
    const listed = await api.get('/api/domains');
    expect(listed.status).to.equal(200);
    expect(listed.body).to.have.nested.property('data.length', 1);
  });
});
