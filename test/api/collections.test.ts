import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import { CollectionView } from '../../src/api/collections/collections.schema.js';
import type { EndpointView } from '../../src/api/endpoints/endpoints.schema.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID, TIMESTAMP, UUID } from '../support/expect.js';
import { uniqueName } from '../support/names.js';

type Collection = Static<typeof CollectionView>;
type Endpoint = Static<typeof EndpointView>;

describe('collections', () => {
  let api: TestApi;
  let domainId: string;
  let otherDomainId: string;

  before(async () => {
    api = await startApi();
    domainId = await createDomain('shop.example');
    otherDomainId = await createDomain('other.example');
  });
  after(() => api.close());

  async function createDomain(host: string): Promise<string> {
    return expectData<{ id: string }>(await api.post('/api/domains', { name: 'D', host }), 201).id;
  }

  async function create(fields: object = {}): Promise<Collection> {
    return expectData(
      await api.post('/api/collections', { domain_id: domainId, name: uniqueName('C'), ...fields }),
      201,
    );
  }

  async function createEndpoint(fields: object): Promise<Endpoint> {
    return expectData(
      await api.post('/api/endpoints', {
        name: 'E',
        path: '/x',
        method: 'GET',
        domain: 'shop.example',
        ...fields,
      }),
      201,
    );
  }

  async function routeOf({ id }: Endpoint): Promise<{ route: string; route_key: string; version: number }> {
    return api.store.knex('endpoints').where({ id }).first('route', 'route_key', 'version');
  }

  it('creates a collection with just a domain and a name', async () => {
    const collection = await create({ name: 'C' });
    expect(collection).to.have.all.keys(Object.keys(CollectionView.properties));
    expect(collection).to.include({
      domain_id: domainId,
      name: 'C',
      description: null,
      base_path: null,
      enabled: true,
    });
    expect(collection.id).to.match(UUID);
    expect(collection.created_at).to.match(TIMESTAMP);
  });

  it('normalizes base paths of collections', async () => {
    for (const [given, stored] of [
      ['/shop', '/shop'],
      ['shop/', '/shop'],
      ['/v1/{tenant}/', '/v1/{tenant}'],
      ['/', null],
      ['', null],
      [null, null],
    ]) {
      expect((await create({ base_path: given })).base_path).to.equal(stored);
    }
  });

  it('lists all collections, and those of a domain by filter and by path', async () => {
    const own = await create({ description: 'text', enabled: false });
    const other = await create({ domain_id: otherDomainId });
    const idsAt = async (path: string) => expectData<Collection[]>(await api.get(path)).map(({ id }) => id);
    expect(await idsAt('/api/collections')).to.include.members([own.id, other.id]);
    expect(await idsAt(`/api/collections?domain_id=${otherDomainId}`)).to.deep.equal([other.id]);
    expect(await idsAt(`/api/domains/${otherDomainId}/collections`)).to.deep.equal([other.id]);
    expect(await idsAt(`/api/collections?domain_id=${NO_ID}`)).to.deep.equal([]);
    expect(expectData(await api.get(`/api/collections/${own.id}`))).to.deep.equal(own);
  });

  it('changes only the given fields of a collection', async () => {
    const before = await create({ description: 'old', base_path: '/keep' });
    const after = expectData<Collection>(
      await api.put(`/api/collections/${before.id}`, { name: 'B', enabled: false }),
    );
    expect(after).to.deep.equal({ ...before, name: 'B', enabled: false, updated_at: after.updated_at });
    expect(after.updated_at > before.updated_at).to.equal(true);
    const cleared = expectData<Collection>(
      await api.put(`/api/collections/${before.id}`, { description: null, base_path: null }),
    );
    expect(cleared).to.include({ description: null, base_path: null });
    expect(expectData(await api.put(`/api/collections/${before.id}`, {}))).to.deep.equal(cleared);
  });

  it('keeps a collection in its domain, and warns that it ignores another domain_id', async () => {
    const collection = await create();
    const response = await api.put(`/api/collections/${collection.id}`, { domain_id: otherDomainId });
    expect(expectData<Collection>(response).domain_id).to.equal(domainId);
    expect(response.body)
      .to.have.nested.property('warnings[0]')
      .that.matches(/^body\.domain_id/);
  });

  it('lists the endpoints of a collection with exactly the fields of a summary', async () => {
    const collection = await create({ base_path: '/summaries' });
    const { id } = await createEndpoint({
      collection_id: collection.id,
      path: '/{id}',
      code: 'fn',
      name: 'S',
    });
    expect(expectData(await api.get(`/api/collections/${collection.id}/endpoints`))).to.deep.equal([
      {
        id,
        name: 'S',
        path: '/{id}',
        method: 'GET',
        domain: 'shop.example',
        collection_id: collection.id,
        description: null,
        enabled: true,
      },
    ]);
    expect(expectData(await api.get(`/api/collections/${(await create()).id}/endpoints`))).to.deep.equal([]);
  });

  it('moves the endpoints of a collection with its base path', async () => {
    const collection = await create({ base_path: '/old' });
    const prefixed = await createEndpoint({ collection_id: collection.id, path: '/items/{id}' });
    const whole = await createEndpoint({ collection_id: collection.id, path: '/new/list' });
    expect(await routeOf(prefixed)).to.include({ route: '/old/items/{id}', route_key: '/old/items/{}' });
    expect(await routeOf(whole)).to.include({ route: '/old/new/list' });
    expectData(await api.put(`/api/collections/${collection.id}`, { base_path: '/new' }));
    expect(await routeOf(prefixed)).to.include({ route: '/new/items/{id}', route_key: '/new/items/{}' });
    expect(await routeOf(whole)).to.include({ route: '/new/list' });
    expectData(await api.put(`/api/collections/${collection.id}`, { base_path: null }));
    expect(await routeOf(prefixed)).to.include({ route: '/items/{id}' });
  });

  it('refuses a base path that would move an endpoint to the route of another one', async () => {
    const collection = await create({ base_path: '/mine' });
    const own = await createEndpoint({ collection_id: collection.id, path: '/a/{x}' });
    const other = await createEndpoint({ path: '/yours/a/{y}', name: 'Owner' });
    const before = await routeOf(own);
    expectFailure(
      await api.put(`/api/collections/${collection.id}`, { base_path: '/yours', name: uniqueName('B') }),
      'route_taken',
      new RegExp(
        `GET /yours/a/\\{y\\} on domain "shop.example" is taken by the endpoint "Owner" \\(${other.id}\\)`,
      ),
    );
    expect(expectData(await api.get(`/api/collections/${collection.id}`))).to.deep.equal(collection);
    expect(await routeOf(own)).to.deep.equal(before);
  });

  it('refuses a base path that would move two endpoints to the same route', async () => {
    const collection = await create({ base_path: '/one' });
    const first = await createEndpoint({ collection_id: collection.id, path: '/b', name: 'First' });
    const second = await createEndpoint({ collection_id: collection.id, path: '/two/b', name: 'Second' });
    const response = await api.put(`/api/collections/${collection.id}`, { base_path: '/two' });
    expectFailure(response, 'route_taken', /GET \/two\/b .*"(First|Second)"/);
    expect(await routeOf(first)).to.include({ route: '/one/b' });
    expect(await routeOf(second)).to.include({ route: '/one/two/b' });
  });

  it('refuses a base path with a parameter that an endpoint of the collection has', async () => {
    const collection = await create();
    await createEndpoint({ collection_id: collection.id, path: '/c/{id}', name: 'Has it' });
    expectFailure(
      await api.put(`/api/collections/${collection.id}`, { base_path: '/t/{id}' }),
      'invalid_input',
      /^body\.base_path: .*\{id\} twice.*"Has it"/,
    );
  });

  it('deletes a collection with its endpoints, and nothing else', async () => {
    const collection = await create();
    const inside = await createEndpoint({ collection_id: collection.id, path: '/inside' });
    const outside = await createEndpoint({ path: '/outside' });
    const response = await api.delete(`/api/collections/${collection.id}`);
    expect(response.status).to.equal(200);
    expect(response.body).to.deep.equal({ ok: true, data: null });
    expectFailure(await api.get(`/api/endpoints/${inside.id}`), 'not_found');
    expectData(await api.get(`/api/endpoints/${outside.id}`));
    expectData(await api.get(`/api/domains/${domainId}`));
    expectFailure(await api.delete(`/api/collections/${collection.id}`), 'not_found');
  });

  describe('invalid collections', () => {
    const wrongFields: readonly [fields: object, message: RegExp][] = [
      [{ name: undefined }, /^body\.name: is required/],
      [{ name: 1 }, /^body\.name: must be a string/],
      [{ description: {} }, /^body\.description: must be a string or null, not an object/],
      [{ base_path: 1 }, /^body\.base_path: must be a string or null/],
      [{ base_path: '/a//b' }, /^body\.base_path: has an empty segment/],
      [{ base_path: '/a b' }, /^body\.base_path: must not have spaces/],
      [{ base_path: '/a?b' }, /^body\.base_path: must not have a query/],
      [{ base_path: '/../b' }, /^body\.base_path: must not have "\." or "\.\."/],
      [{ base_path: '/{a' }, /^body\.base_path: has the segment "\{a"/],
      [{ enabled: 1 }, /^body\.enabled: must be a boolean/],
    ];

    for (const [fields, message] of wrongFields) {
      it(`refuses a collection whose ${Object.keys(fields).join()} is ${JSON.stringify(Object.values(fields)[0])}`, async () => {
        const existing = await create();
        const before = await api.get('/api/collections');
        expectFailure(
          await api.post('/api/collections', { domain_id: domainId, name: 'C', ...fields }),
          'invalid_input',
          message,
        );
        if (!Object.values(fields).includes(undefined)) {
          expectFailure(await api.put(`/api/collections/${existing.id}`, fields), 'invalid_input', message);
        }
        expect((await api.get('/api/collections')).body).to.deep.equal(before.body);
      });
    }

    it('refuses a collection of an invalid or unknown domain, and changes nothing', async () => {
      const before = await api.get('/api/collections');
      expectFailure(
        await api.post('/api/collections', { name: 'C' }),
        'invalid_input',
        /^body\.domain_id: is required/,
      );
      expectFailure(
        await api.post('/api/collections', { name: 'C', domain_id: 'x' }),
        'invalid_input',
        /^body\.domain_id: must be a UUID/,
      );
      expectFailure(
        await api.post('/api/collections', { name: 'C', domain_id: NO_ID }),
        'not_found',
        new RegExp(`domain ${NO_ID} does not exist`),
      );
      expectFailure(
        await api.get('/api/collections?domain_id=x'),
        'invalid_input',
        /^query\.domain_id: must be a UUID/,
      );
      expect((await api.get('/api/collections')).body).to.deep.equal(before.body);
    });

    it('refuses invalid and unknown ids of collections', async () => {
      for (const path of ['/api/collections/x', '/api/collections/x/endpoints']) {
        expectFailure(await api.get(path), 'invalid_input', /^path\.id/);
      }
      for (const path of [`/api/collections/${NO_ID}`, `/api/collections/${NO_ID}/endpoints`]) {
        expectFailure(await api.get(path), 'not_found', /collection .* does not exist/);
      }
      expectFailure(await api.put(`/api/collections/${NO_ID}`, { name: 'B' }), 'not_found');
      expectFailure(await api.delete(`/api/collections/${NO_ID}`), 'not_found');
    });
  });
});
