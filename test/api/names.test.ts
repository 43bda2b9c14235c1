/** `GET /api/resolve`: objects by their names. */
import { expect } from 'chai';
import { ADMIN, addUser, makeToken, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';

describe('names of objects', () => {
  let api: TestApi;
  let admin: Person;
  const ids: Record<string, string> = {};

  before(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    const make = async (key: string, path: string, body: object) => {
      const { id } = expectData<{ id: string }>(await api.post(path, body, admin), 201);
      ids[key] = id;
      return id;
    };
    for (const host of ['api.test', 'other.test']) {
      const domain_id = await make(host, '/api/domains', { name: host, host });
      const collection_id = await make(`${host} shop`, '/api/collections', {
        ...{ name: 'shop', base_path: '/v1', domain_id },
      });
      const endpoint = { method: 'GET', domain: host };
      await make(`${host} pet`, '/api/endpoints', {
        ...{ ...endpoint, name: 'getPet', path: '/pets/{id}', collection_id },
      });
      await make(`${host} slash`, '/api/endpoints', { ...endpoint, name: 'GET /a/b', path: '/a/b' });
    }
    await make('twin', '/api/endpoints', {
      name: 'getPet',
      method: 'GET',
      path: '/twin',
      domain: 'other.test',
    });
    await make('pet of all', '/api/endpoints', {
      ...{ name: 'petOfAll', method: 'GET', domain: '*', path: '/pets/{id}' },
      collection_id: ids['api.test shop'],
    });
    await make('own', '/api/endpoints', {
      ...{ name: 'petOfAll', method: 'GET', domain: 'other.test', path: '/own' },
    });
    await make('other of all', '/api/endpoints', {
      ...{ name: 'petOfAll', method: 'GET', domain: '*', path: '/others/{id}' },
      collection_id: ids['other.test shop'],
    });
    await make('any', '/api/endpoints', { name: 'any', method: 'POST', path: '/any', domain: '*' });
    await make('redis', '/api/services', {
      ...{ name: 'cache', service_type: 'redis', config: { host: '127.0.0.1', port: 1 } },
    });
  });
  after(() => api.close());

  const resolve = (kind: string, name: string, person = admin) =>
    api.get(`/api/resolve?${new URLSearchParams({ kind, name })}`, person);

  for (const [kind, name, key] of [
    ['endpoint', 'api.test/shop/getPet', 'api.test pet'],
    ['endpoint', 'API.test/getPet', 'api.test pet'],
    ['endpoint', 'GET api.test/v1/pets/{id}', 'api.test pet'],
    ['endpoint', 'GET api.test/v1/pets/{anything}', 'api.test pet'],
    ['endpoint', 'api.test/GET /a/b', 'api.test slash'],
    ['endpoint', 'GET other.test/a/b', 'other.test slash'],
    ['endpoint', 'GET */v1/pets/{id}', 'pet of all'],
    ['endpoint', 'api.test/petOfAll', 'pet of all'],
    ['endpoint', 'other.test/petOfAll', 'own'],
    ['endpoint', 'other.test/shop/petOfAll', 'other of all'],
    ['endpoint', '*/any', 'any'],
    ['endpoint', 'POST */any', 'any'],
    ['collection', 'other.test/shop', 'other.test shop'],
    ['domain', 'Other.Test', 'other.test'],
    ['service', 'cache', 'redis'],
  ] as const) {
    it(`finds the ${kind} ${name}`, async () => {
      const found = expectData<{ id: string; kind: string }>(await resolve(kind, name));
      expect([found.id, found.kind]).to.deep.equal([ids[key], kind]);
      expect(expectData<{ id: string }>(await resolve(kind, ids[key] ?? '')).id).to.equal(ids[key]);
    });
  }

  it('lists the endpoints that an ambiguous name can mean', async () => {
    const response = await resolve('endpoint', 'other.test/getPet');
    expectFailure(response, 'ambiguous_name', /GET other\.test\/v1\/pets\/\{id\} .*GET other\.test\/twin/);
    const { details } = response.body as { details: { ids: string[] } };
    expect(details.ids).to.have.members([ids['other.test pet'], ids['twin']]);
  });

  it('names the nearest object when none has the name', async () => {
    for (const [kind, name, nearest] of [
      ['endpoint', 'api.test/shop/getPets', /Was it api\.test\/shop\/getPet/],
      ['endpoint', 'GET api.test/v1/pet/{id}', /Was it GET api\.test\/v1\/pets\/\{id\}/],
      ['collection', 'api.test/shp', /Was it api\.test\/shop/],
      ['domain', 'aip.test', /Was it api\.test/],
      ['service', 'cahce', /Was it cache\?/],
      ['service', 'something else', /^There is no service something else$/],
    ] as const)
      expectFailure(await resolve(kind, name), 'not_found', nearest);
    expectFailure(await resolve('domain', NO_ID), 'not_found');
    for (const name of ['', '/', 'GET ', '%', "x' OR 1=1 --", 'a/../b', 'x'.repeat(3000)])
      expect((await resolve('endpoint', name)).status, name.slice(0, 20)).to.be.oneOf([400, 404]);
    expectFailure(await resolve('thing', 'x'), 'invalid_input');
  });

  it('resolves names only with the permission of the kind, and shows nothing of other domains', async () => {
    const reader = await makeToken(api, admin, ['domains:read']);
    expect((await resolve('domain', 'api.test', reader)).status).to.equal(200);
    for (const kind of ['endpoint', 'collection', 'service'])
      expectFailure(await resolve(kind, 'api.test/x', reader), 'forbidden', /s:read/);
    const permissions = ['endpoints:read', 'collections:read', 'domains:read'] as const;
    const limited = await makeToken(api, admin, [...permissions], ['api.test']);
    expect((await resolve('endpoint', 'api.test/shop/getPet', limited)).status).to.equal(200);
    for (const [kind, name] of [
      ['endpoint', 'other.test/shop/getPet'],
      ['endpoint', 'GET other.test/a/b'],
      ['endpoint', ids['other.test pet'] ?? ''],
      ['endpoint', '*/any'],
      ['collection', 'other.test/shop'],
      ['domain', 'other.test'],
    ] as const) {
      const response = await resolve(kind, name, limited);
      expectFailure(response, 'not_found');
      expect((response.body as { error: string }).error.split('Was it')[1] ?? '').not.to.include(
        'other.test',
      );
    }
  });

  it('shows nodes and queues only with the permission metrics:read', async () => {
    const listed = expectData<{ nodes: unknown[]; queues: unknown[] }>(await api.get('/api/nodes', admin));
    expect(listed.nodes).to.deep.equal([]);
    expect(listed.queues).not.to.have.length(0);
    const reader = await makeToken(api, admin, ['statistics:read']);
    expectFailure(await api.get('/api/nodes', reader), 'forbidden');
  });
});
