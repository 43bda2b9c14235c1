/** Where endpoints may be: hosts that have a domain, and domains that their services are for. */
import { expect } from 'chai';
import { ADMIN, addUser, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';

const A = 'a.example';
const B = 'b.example';
const NO_DOMAIN = 'nodomain.example';

describe('endpoints that are made and moved', () => {
  let api: TestApi;
  let admin: Person;
  let editor: Person;
  let domain: string;

  before(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    const domains = [A, NO_DOMAIN];
    editor = await addUser(api, admin, { email: 'e@example.test', role: 'editor', domains });
    domain = await make('/api/domains', { name: A, host: A });
    await make('/api/domains', { name: B, host: B });
  });
  after(() => api.close());

  const make = async (path: string, body: object, by = admin): Promise<string> =>
    expectData<{ id: string }>(await api.post(path, body, by), 201).id;
  const endpoint = (name: string, host: string) => ({ name, path: `/${name}`, method: 'GET', domain: host });

  it('refuses an endpoint on a host without a domain to an editor who is limited to hosts', async () => {
    const created = await api.post('/api/endpoints', endpoint('hidden', NO_DOMAIN), editor);
    expectFailure(created, 'not_found', /no domain with the host "nodomain\.example"; create it first/);
    const id = await make('/api/endpoints', endpoint('mine', A), editor);
    const moved = await api.put(`/api/endpoints/${id}`, { domain: NO_DOMAIN.toUpperCase() }, editor);
    expectFailure(moved, 'not_found', /create it first/);
    const paths = { '/i': { get: { operationId: 'i', responses: { 200: { description: 'ok' } } } } };
    const spec = JSON.stringify({ openapi: '3.0.3', info: { title: 'I', version: '1' }, paths });
    expectFailure(
      await api.post('/api/import/openapi', { spec, domain: NO_DOMAIN }, editor),
      'not_found',
      /create it first/,
    );
    // Those who see everything may, as before.
    const free = await make('/api/endpoints', endpoint('free', NO_DOMAIN));
    expectFailure(await api.get(`/api/endpoints/${free}`, editor), 'not_found');
    // With it they would get what others have there.
    expectData(await api.delete(`/api/endpoints/${free}`, admin));
    // They may make the domain, and what is theirs then exists.
    const made = await make('/api/domains', { name: 'n', host: NO_DOMAIN }, editor);
    expectData(await api.put(`/api/endpoints/${id}`, { domain: NO_DOMAIN }, editor));
    expectData(await api.get(`/api/endpoints/${id}`, editor));
    expectData(await api.delete(`/api/domains/${made}`, editor));
  });

  describe('endpoints with a service that is for certain domains', () => {
    let service: string;
    let bound: string;
    before(async () => {
      const redis = { name: 'of A', service_type: 'redis', config: { host: '127.0.0.1', port: 1 } };
      service = await make('/api/services', { ...redis, domains: [A] });
      bound = await make('/api/endpoints', endpoint('bound', A));
      const binding = { service_id: service, pool_id: 'main' };
      expectData(await api.post(`/api/endpoints/${bound}/services`, binding, admin), 201);
    });
    const hostOf = async () =>
      expectData<{ domain: string }>(await api.get(`/api/endpoints/${bound}`, admin)).domain;

    it('refuses to move an endpoint to a domain that its service is not for, and to all domains', async () => {
      for (const host of [B, '*']) {
        const moved = await api.put(`/api/endpoints/${bound}`, { domain: host }, admin);
        expectFailure(moved, 'service_not_for_domain', new RegExp(`${service}.*"main".*unbind it first`));
      }
      expect(await hostOf()).to.equal(A);
      expectData(await api.put(`/api/endpoints/${bound}`, { name: 'renamed' }, admin));
    });

    it('refuses a new host of a domain while a service of its endpoints is not for that host', async () => {
      const rename = (host: string) => api.put(`/api/domains/${domain}`, { host }, admin);
      expectFailure(await rename('other.example'), 'service_not_for_domain', /"main"/);
      expect(await hostOf()).to.equal(A);
      expectData(await api.get(`/api/domains/${domain}`, editor));
      expectData(await api.put(`/api/services/${service}`, { domains: [A, 'other.example'] }, admin));
      expectData(await rename('other.example'));
      expect(await hostOf()).to.equal('other.example');
      expectData(await rename(A));
      expectData(await api.put(`/api/services/${service}`, { domains: [A] }, admin));
    });

    it('moves an endpoint to another domain when its service is unbound', async () => {
      expectData(await api.delete(`/api/endpoints/${bound}/services/${service}`, admin));
      expectData(await api.put(`/api/endpoints/${bound}`, { domain: B }, admin));
      expect(await hostOf()).to.equal(B);
    });
  });
});
