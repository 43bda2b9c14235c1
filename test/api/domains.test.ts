import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { CollectionView } from '../../src/api/collections/collections.schema.js';
import { DomainView } from '../../src/api/domains/domains.schema.js';
import type { EndpointView } from '../../src/api/endpoints/endpoints.schema.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID, TIMESTAMP, UUID } from '../support/expect.js';
import { uniqueName } from '../support/names.js';

type Domain = Static<typeof DomainView>;
type Collection = Static<typeof CollectionView>;
type Endpoint = Static<typeof EndpointView>;

describe('domains', () => {
  let api: TestApi;
  let count = 0;

  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  async function create(fields: object = {}): Promise<Domain> {
    count += 1;
    return expectData(
      await api.post('/api/domains', { name: 'A', host: `d${count}.example.com`, ...fields }),
      201,
    );
  }

  async function createEndpoint(fields: object): Promise<Endpoint> {
    return expectData(
      await api.post('/api/endpoints', { name: 'E', path: '/x', method: 'GET', ...fields }),
      201,
    );
  }

  async function createCollection(domain: Domain, fields: object = {}): Promise<Collection> {
    return expectData(
      await api.post('/api/collections', { domain_id: domain.id, name: uniqueName('C'), ...fields }),
      201,
    );
  }

  it('creates a domain with just a name and a host', async () => {
    const domain = await create({ host: 'API.First.example' });
    expect(domain).to.have.all.keys(Object.keys(DomainView.properties));
    expect(domain).to.include({ name: 'A', host: 'api.first.example', description: null, enabled: true });
    expect(domain.id).to.match(UUID);
    expect(domain.created_at).to.match(TIMESTAMP);
    expect(domain.updated_at).to.match(TIMESTAMP);
  });

  it('creates a domain with all fields', async () => {
    const domain = await create({ description: 'Zeile 1\nZeile 2 ✓', enabled: false });
    expect(domain).to.include({ description: 'Zeile 1\nZeile 2 ✓', enabled: false });
  });

  it('shows a domain, and lists domains in the order in which they were created', async () => {
    const first = await create();
    const second = await create();
    expect(expectData(await api.get(`/api/domains/${first.id}`))).to.deep.equal(first);
    const ids = expectData<Domain[]>(await api.get('/api/domains')).map(({ id }) => id);
    expect(ids.indexOf(second.id)).to.equal(ids.indexOf(first.id) + 1);
  });

  it('changes only the given fields of a domain', async () => {
    const before = await create({ description: 'old' });
    const after = expectData<Domain>(await api.put(`/api/domains/${before.id}`, { name: 'B' }));
    expect(after).to.deep.equal({ ...before, name: 'B', updated_at: after.updated_at });
    expect(after.updated_at > before.updated_at).to.equal(true);
    const cleared = expectData<Domain>(await api.put(`/api/domains/${before.id}`, { description: null }));
    expect(cleared.description).to.equal(null);
    expect(expectData(await api.get(`/api/domains/${before.id}`))).to.deep.equal(cleared);
  });

  it('changes nothing of a domain when no field is given', async () => {
    const domain = await create();
    expect(expectData(await api.put(`/api/domains/${domain.id}`, {}))).to.deep.equal(domain);
  });

  it('keeps the host of a domain when it is given again in upper case', async () => {
    const domain = await create();
    const same = expectData<Domain>(
      await api.put(`/api/domains/${domain.id}`, { host: domain.host.toUpperCase() }),
    );
    expect(same.host).to.equal(domain.host);
  });

  it('warns of the members of a domain that it ignores', async () => {
    const response = await api.post('/api/domains', {
      name: 'A',
      host: 'warned.example',
      owner: 1,
      id: NO_ID,
    });
    expectData(response, 201);
    expect(response.body)
      .to.have.property('warnings')
      .that.deep.equals([
        'body.owner: is not a known field and was ignored',
        'body.id: cannot be set here and was ignored',
      ]);
  });

  it('deletes a domain with its collections, their endpoints and those on its host, and nothing else', async () => {
    const domain = await create();
    const collection = await createCollection(domain);
    const inCollection = await createEndpoint({
      domain: '*',
      path: `/in/${domain.host}`,
      collection_id: collection.id,
    });
    const byHost = await createEndpoint({ domain: domain.host, path: '/by-host' });
    const other = await createEndpoint({ domain: '*', path: `/other/${domain.host}` });
    const response = await api.delete(`/api/domains/${domain.id}`);
    expect(response.body).to.deep.equal({ ok: true, data: null });
    expectFailure(await api.get(`/api/domains/${domain.id}`), 'not_found');
    expectFailure(await api.get(`/api/collections/${collection.id}`), 'not_found');
    expectFailure(await api.get(`/api/endpoints/${inCollection.id}`), 'not_found');
    expectFailure(await api.get(`/api/endpoints/${byHost.id}`), 'not_found');
    expectData(await api.get(`/api/endpoints/${other.id}`));
    expectFailure(await api.delete(`/api/domains/${domain.id}`), 'not_found');
  });

  it('gives the new host of a domain to its endpoints, and to no others', async () => {
    const domain = await create();
    const collection = await createCollection(domain);
    const inCollection = await createEndpoint({
      domain: domain.host,
      path: '/in',
      collection_id: collection.id,
    });
    const byHost = await createEndpoint({ domain: domain.host, path: '/by-host' });
    const everywhere = await createEndpoint({ domain: '*', path: '/any', collection_id: collection.id });
    const elsewhere = await createEndpoint({ domain: `other-${domain.host}`, path: '/x' });
    const host = `new-${domain.host}`;
    expect(expectData<Domain>(await api.put(`/api/domains/${domain.id}`, { host })).host).to.equal(host);
    const domainOf = async ({ id }: Endpoint) =>
      expectData<Endpoint>(await api.get(`/api/endpoints/${id}`)).domain;
    expect(await domainOf(inCollection)).to.equal(host);
    expect(await domainOf(byHost)).to.equal(host);
    expect(await domainOf(everywhere)).to.equal('*');
    expect(await domainOf(elsewhere)).to.equal(elsewhere.domain);
  });

  it('gives the new host of a domain to the alerts about it, and to no others', async () => {
    const { id } = expectData<{ id: string }>(
      await api.post('/api/domains', { name: 'A', host: 'told.example' }),
      201,
    );
    const alertOn = async (scope: object | null) =>
      expectData<{ id: string }>(
        await api.post('/api/alerts', { on: 'crash_loop', url: 'https://93.184.215.14/', scope }),
        201,
      ).id;
    const alerts = [
      await alertOn({ domain: 'told.example' }),
      await alertOn({ domain: 'other.example' }),
      await alertOn(null),
    ];
    expectData(await api.put(`/api/domains/${id}`, { host: 'retold.example' }));
    const scopes: unknown[] = [];
    for (const alert of alerts) {
      scopes.push(expectData<{ scope: unknown }>(await api.get(`/api/alerts/${alert}`)).scope);
      expectData(await api.delete(`/api/alerts/${alert}`));
    }
    expect(scopes).to.deep.equal([{ domain: 'retold.example' }, { domain: 'other.example' }, null]);
    expectData(await api.delete(`/api/domains/${id}`));
  });

  it('refuses a new host of a domain where another endpoint has a route of one of its own', async () => {
    const domain = await create();
    const own = await createEndpoint({ domain: domain.host, path: '/items/{id}' });
    const other = await createEndpoint({ domain: 'occupied.example', path: '/items/{key}', name: 'Owner' });
    const response = await api.put(`/api/domains/${domain.id}`, { host: 'occupied.example', name: 'B' });
    expectFailure(response, 'route_taken', new RegExp(`"Owner" \\(${other.id}\\)`));
    expect(response.body).to.have.nested.property('details.endpoint_id', other.id);
    expect(expectData(await api.get(`/api/domains/${domain.id}`))).to.deep.equal(domain);
    expect(expectData(await api.get(`/api/endpoints/${own.id}`))).to.deep.equal(own);
  });

  it('refuses a host that another domain has, and names that domain', async () => {
    const owner = await create({ name: 'Owner' });
    const other = await create();
    const taken = new RegExp(`"Owner" \\(${owner.id}\\)`);
    expectFailure(
      await api.post('/api/domains', { name: 'B', host: owner.host.toUpperCase() }),
      'host_taken',
      taken,
    );
    expectFailure(await api.put(`/api/domains/${other.id}`, { host: owner.host }), 'host_taken', taken);
    expect(expectData(await api.get(`/api/domains/${other.id}`))).to.deep.equal(other);
  });

  it('creates only one of eight domains with the same host at once', async () => {
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => api.post('/api/domains', { name: 'A', host: 'race.example' })),
    );
    expect(responses.map(({ status }) => status).sort()).to.deep.equal([201, ...Array(7).fill(409)]);
  });

  describe('invalid domains', () => {
    const wrongFields: readonly [fields: object, message: RegExp][] = [
      [{ name: undefined }, /^body\.name: is required/],
      [{ name: '' }, /^body\.name: must not be empty/],
      [{ name: '  ' }, /^body\.name: must not be empty/],
      [{ name: 'a\nb' }, /^body\.name: must be one line/],
      [{ name: 'x'.repeat(256) }, /^body\.name: must have at most 255/],
      [{ name: 7 }, /^body\.name: must be a string, not a number/],
      [{ name: null }, /^body\.name: must be a string, not null/],
      [{ host: undefined }, /^body\.host: is required/],
      [{ host: '' }, /^body\.host: must be a hostname/],
      [{ host: '*' }, /^body\.host: must be a hostname/],
      [{ host: 'http://a.example' }, /^body\.host: must be a hostname.*without scheme/],
      [{ host: 'a.example:80' }, /^body\.host: must be a hostname/],
      [{ host: 'a.example/x' }, /^body\.host: must be a hostname/],
      [{ host: 'a..example' }, /^body\.host: must be a hostname/],
      [{ host: 'a.example.' }, /^body\.host: must be a hostname/],
      [{ host: '-a.example' }, /^body\.host: must be a hostname/],
      [{ host: 'a_b.example' }, /^body\.host: must be a hostname/],
      [{ host: `${'a'.repeat(64)}.example` }, /^body\.host: must be a hostname/],
      [{ host: `${'a.'.repeat(127)}ab` }, /^body\.host: must be a hostname/],
      [{ host: 'bücher.example' }, /^body\.host: .*xn--/],
      [{ host: ['a.example'] }, /^body\.host: must be a string, not an array/],
      [{ description: 5 }, /^body\.description: must be a string or null, not a number/],
      [{ description: 'a\u0000b' }, /^body\.description: must not have NUL/],
      [{ enabled: 'true' }, /^body\.enabled: must be a boolean, not a string/],
      [{ enabled: null }, /^body\.enabled: must be a boolean, not null/],
    ];

    for (const [fields, message] of wrongFields) {
      const shown = JSON.stringify(fields, (_key, value: unknown) =>
        value === undefined ? '(missing)' : value,
      );
      it(`refuses a domain with ${shown.slice(0, 60)}`, async () => {
        const existing = await create();
        const before = await api.get('/api/domains');
        expectFailure(
          await api.post('/api/domains', { name: 'A', host: 'fine.example', ...fields }),
          'invalid_input',
          message,
        );
        if (!Object.values(fields).includes(undefined)) {
          expectFailure(await api.put(`/api/domains/${existing.id}`, fields), 'invalid_input', message);
        }
        expect((await api.get('/api/domains')).body).to.deep.equal(before.body);
      });
    }

    it('refuses invalid and unknown ids of domains', async () => {
      for (const path of ['/api/domains/7', '/api/domains/7/collections']) {
        expectFailure(await api.get(path), 'invalid_input', /^path\.id: must be a UUID/);
      }
      expectFailure(await api.put('/api/domains/7', {}), 'invalid_input', /^path\.id/);
      expectFailure(await api.delete('/api/domains/%zz'), 'malformed_request', /percent-encoded/);
      const nothing = new RegExp(`domain ${NO_ID} does not exist`);
      expectFailure(await api.get(`/api/domains/${NO_ID}`), 'not_found', nothing);
      expectFailure(await api.get(`/api/domains/${NO_ID}/collections`), 'not_found', nothing);
      expectFailure(await api.put(`/api/domains/${NO_ID}`, { name: 'B' }), 'not_found', nothing);
      expectFailure(await api.delete(`/api/domains/${NO_ID}`), 'not_found', nothing);
    });
  });
});
