/** All routes x all roles x own and foreign domains, from the definitions of the routes. */
import { expect } from 'chai';
import { kindsInPath } from '../../src/api/access/references.js';
import { ROUTES } from '../../src/api/app.js';
import { PAGES } from '../../src/api/middleware/authorize.js';
import { PERMISSIONS, PERMISSIONS_OF_ROLE, type Permission, ROLES } from '../../src/model/permission.js';
import { ADMIN, addUser, makeToken, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import type { HttpResponse } from '../support/client.js';
import { type DomainObjects, fillDomain, pathWith, SMALL_SPEC } from '../support/domain-objects.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';

const OWN = 'own.example';
const FOREIGN = 'foreign.example';

describe('access to all routes', () => {
  let api: TestApi;
  let admin: Person;
  const people = new Map<string, Person>();
  /** Ids of objects of each domain, by the segment of their paths. */
  const objects: Record<string, DomainObjects> = {};

  before(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    for (const role of ROLES) {
      people.set(role, await addUser(api, admin, { email: `${role}@all.test`, role }));
      people.set(
        `${role} of ${OWN}`,
        await addUser(api, admin, { email: `${role}@own.test`, role, domains: [OWN] }),
      );
    }
    for (const host of [OWN, FOREIGN]) objects[host] = await fillDomain(api, admin, host);
  });
  after(() => api.close());

  const call = (method: string, path: string, person?: Person): Promise<HttpResponse> =>
    api.send(method, path, { ...(person && { headers: person.headers }) });

  const pathOf = (path: string, host: string) => pathWith(path, () => objects[host] ?? {});

  it('every route names a permission that exists, and only those for health and signing in are public', () => {
    const known: readonly string[] = [...PERMISSIONS, 'authenticated', 'public'];
    for (const { method, path, permission } of [...ROUTES, ...PAGES.map((page) => ({ ...page, method: '' }))])
      expect(known, `${method} ${path}`).to.include(permission);
    expect(
      ROUTES.filter(({ permission }) => permission === 'public').map(
        ({ method, path }) => `${method} ${path}`,
      ),
    ).to.deep.equal([
      ...['GET /api/health', 'GET /api/session', 'POST /api/session', 'DELETE /api/session'],
      ...['GET /api/session/oidc', 'GET /api/session/oidc/callback'],
    ]);
  });

  it('every id in the path of a route is that of an object that is checked, or is below one', () => {
    // Users, sessions and tokens belong to no domain; who may see them is decided by their owner.
    const ownerless = /^\/api\/(users|sessions|tokens)\/\{id\}(\/sessions)?$/;
    for (const { path } of ROUTES) {
      if (!/\{\w*id\}/.test(path) || ownerless.test(path)) continue;
      expect(kindsInPath(path), path).not.to.have.length(0);
    }
  });

  it('every route that is not public answers 401 without a credential, or with a wrong one', async () => {
    for (const { method, path, permission } of ROUTES) {
      if (permission === 'public') continue;
      for (const headers of [
        {},
        { authorization: 'Bearer wrong' },
        { authorization: `Bearer egw_${'0'.repeat(36)}` },
        { cookie: 'egw_session=wrong' },
      ]) {
        const response = await api.send(method, pathOf(path, OWN), { headers });
        expect(response.status, `${method} ${path}`).to.equal(401);
      }
    }
    for (const { path, permission } of PAGES)
      if (permission !== 'public') expect((await call('GET', path)).status, path).to.equal(401);
  });

  for (const role of ROLES) {
    it(`the role ${role} gets 403 exactly where the permission is missing`, async () => {
      const may = PERMISSIONS_OF_ROLE[role];
      for (const { method, path, permission } of ROUTES) {
        const isMissing =
          permission !== 'public' && permission !== 'authenticated' && !may.has(permission as Permission);
        // What is allowed is not done: unknown objects and empty bodies change nothing.
        if (!isMissing && method === 'DELETE' && path !== '/api/session') continue;
        if (!isMissing && method === 'DELETE') continue;
        const target = isMissing ? pathOf(path, OWN) : path.replace(/\{(\w+)[.}]+/g, NO_ID);
        if (/\/api\/logs$|events$/.test(path) && !isMissing) continue;
        const response = await call(method, target, people.get(role));
        const place = `${role} ${method} ${path}: ${JSON.stringify(response.body)}`;
        if (isMissing) expect(response.status, place).to.equal(403);
        else expect(response.status, place).not.to.be.oneOf([401, 403]);
      }
    });

    it(`the role ${role} with one domain gets 404 for objects of another domain at every route`, async () => {
      const person = people.get(`${role} of ${OWN}`);
      for (const { method, path, permission } of ROUTES) {
        const kinds = kindsInPath(path);
        if (kinds.length === 0 || !PERMISSIONS_OF_ROLE[role].has(permission as Permission)) continue;
        const response = await call(method, pathOf(path, FOREIGN), person);
        expect(response.status, `${method} ${path}: ${JSON.stringify(response.body)}`).to.equal(404);
        if (method !== 'GET' || path.endsWith('/events') || path.includes('{version}')) continue;
        const own = await call(method, pathOf(path, OWN), person);
        expect(own.status, `${method} ${path}: ${JSON.stringify(own.body)}`).to.equal(200);
      }
      for (const { method, path, isOfInstallation } of ROUTES) {
        if (!isOfInstallation) continue;
        expect((await call(method, pathOf(path, OWN), person)).status, `${method} ${path}`).to.equal(403);
      }
    });

    it(`the role ${role} with one domain gets lists that have nothing of another domain`, async () => {
      const person = people.get(`${role} of ${OWN}`);
      const foreign = [...Object.values(objects[FOREIGN] ?? {}), FOREIGN];
      for (const { method, path, permission } of ROUTES) {
        if (method !== 'GET' || path.includes('{') || permission === 'public') continue;
        if (!PERMISSIONS_OF_ROLE[role].has(permission as Permission)) continue;
        const response = await call('GET', path, person);
        const text = JSON.stringify(response.body);
        for (const id of foreign) expect(text, `${path} ${response.status}`).not.to.include(id);
      }
      const stats = await call('GET', '/api/stats', person);
      expect(expectData(stats)).to.include({ endpoints_total: 2, requests_handled: 0 });
    });
  }

  it('shows the queue dashboard and the metrics only to an admin without limits to domains', async () => {
    for (const [who, person] of people) {
      const expected = who === 'admin' ? 200 : 403;
      expect((await call('GET', '/queues', person)).status, who).to.equal(expected);
      expect((await call('GET', '/metrics', person)).status, who).to.equal(expected);
    }
  });

  it('shows the crates of the SDK to whoever has a credential, which cargo sends without a scheme', async () => {
    const path = '/crates/config.json';
    for (const [who, person] of people) {
      const { status, body } = await call('GET', path, person);
      expect(status, who).to.equal(200);
      expect(body).to.include({ 'auth-required': true });
    }
    const { token } = await makeToken(api, admin, ['domains:read']);
    for (const [authorization, expected] of [
      [token, 200],
      [`Bearer ${token}`, 200],
      [`egw_${'0'.repeat(36)}`, 401],
      ['wrong', 401],
    ] as const) {
      const response = await api.send('GET', path, { headers: { authorization } });
      expect(response.status, authorization).to.equal(expected);
    }
    // Nowhere else.
    const elsewhere = await api.send('GET', '/api/domains', { headers: { authorization: token } });
    expect(elsewhere.status).to.equal(401);
  });

  it('answers 404 to foreign ids and hosts in queries and bodies', async () => {
    const editor = people.get(`editor of ${OWN}`) as Person;
    const { domains, collections, endpoints, services } = objects[FOREIGN] as DomainObjects;
    const own = objects[OWN] as DomainObjects;
    const endpoint = { name: 'x', path: '/x', method: 'GET' };
    for (const [method, path, body] of [
      ['GET', `/api/endpoints?domain=${FOREIGN}`],
      ['GET', `/api/endpoints?collection_id=${collections}`],
      ['GET', `/api/collections?domain_id=${domains}`],
      ['GET', `/api/logs?endpoint_id=${endpoints}`],
      ['GET', `/api/logs?domain=${FOREIGN}`],
      ['GET', `/api/logs?collection_id=${collections}`],
      ['GET', `/api/series?endpoint_id=${endpoints}`],
      ['GET', `/api/series?domain=${FOREIGN}`],
      ['GET', `/api/route?host=${FOREIGN}&path=/e`],
      ['GET', `/api/minio/objects?service=${services}`],
      ['POST', '/api/domains', { name: 'd', host: FOREIGN }],
      ['POST', '/api/domains', { name: 'd', host: 'new.example' }],
      ['PUT', `/api/domains/${own['domains']}`, { host: 'new.example' }],
      ['POST', '/api/collections', { name: 'c', domain_id: domains }],
      ['POST', '/api/endpoints', { ...endpoint, domain: FOREIGN }],
      ['POST', '/api/endpoints', { ...endpoint, domain: '*' }],
      ['POST', '/api/endpoints', { ...endpoint, domain: OWN, collection_id: collections }],
      ['PUT', `/api/endpoints/${own['endpoints']}`, { domain: FOREIGN }],
      ['PUT', `/api/endpoints/${own['endpoints']}`, { domain: '*' }],
      ['PUT', `/api/endpoints/${own['endpoints']}`, { collection_id: collections }],
      ['POST', `/api/endpoints/${own['endpoints']}/services`, { service_id: services, pool_id: 'p' }],
      ['DELETE', `/api/endpoints/${own['endpoints']}/services/${services}`],
      ['POST', '/api/import/openapi', { spec: SMALL_SPEC, domain: FOREIGN }],
      ['POST', '/api/import/openapi', { spec: SMALL_SPEC, domain: '*' }],
      [
        'POST',
        '/api/import/openapi',
        { spec: SMALL_SPEC, domain: OWN, domain_id: domains, create_collection: true },
      ],
      [
        'POST',
        '/api/alerts',
        { on: 'crash_loop', url: 'https://93.184.215.14/', scope: { domain: FOREIGN } },
      ],
      [
        'POST',
        '/api/alerts',
        { on: 'crash_loop', url: 'https://93.184.215.14/', scope: { endpoint_id: endpoints } },
      ],
    ] as const) {
      const response = await api.send(method, path, { ...editor, ...(body && { body }) });
      expectFailure(response, 'not_found');
    }
    expectFailure(
      await api.post('/api/alerts', { on: 'crash_loop', url: 'https://93.184.215.14/' }, editor),
      'forbidden',
    );
  });

  it('lets only people without limits to domains share services, and use what only the machine reaches', async () => {
    const editor = people.get(`editor of ${OWN}`) as Person;
    const config = { host: '127.0.0.1', port: 1 };
    const redis = { name: 'mine', service_type: 'redis', config };
    const sqlite = { name: 'file', service_type: 'sqlite', config: { path: 'x.db' } };
    expectFailure(await api.post('/api/services', sqlite, editor), 'forbidden');
    const file = expectData<{ id: string }>(
      await api.post('/api/services', { ...sqlite, domains: [OWN] }, admin),
      201,
    );
    const moved = { config: { path: 'y.db' } };
    expectFailure(await api.put(`/api/services/${file.id}`, moved, editor), 'forbidden');
    expectData(await api.put(`/api/services/${file.id}`, { name: 'renamed' }, editor));
    const http = (allow_private_addresses: boolean) => ({
      ...{ name: 'http', service_type: 'http' },
      config: { base_url: 'http://api.example', allow_private_addresses },
    });
    expectFailure(await api.post('/api/services', http(true), editor), 'forbidden');
    for (const domains of [[], [FOREIGN]])
      expectFailure(await api.post('/api/services', { ...http(false), domains }, editor), 'forbidden');
    const { id } = expectData<{ id: string }>(await api.post('/api/services', http(false), editor), 201);
    const { config: inner } = http(true);
    expectFailure(await api.put(`/api/services/${id}`, { config: inner }, editor), 'forbidden');
    const made = await api.get(`/api/services/${id}`, editor);
    expect(expectData<{ domains: string[] }>(made).domains).to.deep.equal([OWN]);
    // All other types connect to any address: to this machine's database and queues, too.
    for (const domains of [undefined, [OWN]])
      expectFailure(await api.post('/api/services', { ...redis, domains }, editor), 'forbidden');
    const theirs = expectData<{ id: string }>(
      await api.post('/api/services', { ...redis, domains: [OWN] }, admin),
      201,
    );
    const aimed = { config: { host: 'localhost', port: 6379 } };
    expectFailure(await api.put(`/api/services/${theirs.id}`, aimed, editor), 'forbidden');
    expectData(await api.put(`/api/services/${theirs.id}`, { name: 'renamed redis', config }, editor));

    const shared = expectData<{ id: string }>(await api.post('/api/services', redis, admin), 201);
    expect((await api.get(`/api/services/${shared.id}`, editor)).status).to.equal(200);
    expectFailure(await api.put(`/api/services/${shared.id}`, { name: 'x' }, editor), 'forbidden');
    expectFailure(await api.delete(`/api/services/${shared.id}`, editor), 'forbidden');
    // Nor does an admin bind a service to an endpoint of a domain that it is not for.
    const bound = { service_id: objects[OWN]?.['services'], pool_id: 'p' };
    const foreign = `/api/endpoints/${objects[FOREIGN]?.['endpoints']}/services`;
    expectFailure(await api.post(foreign, bound, admin), 'not_found');
  });

  it('refuses to delete a collection or domain with an endpoint that the editor may not see', async () => {
    const editor = people.get(`editor of ${OWN}`) as Person;
    const everywhere = { name: 'any', path: '/any', method: 'GET', domain: '*' };
    const collection_id = objects[OWN]?.['collections'];
    const created = await api.post('/api/endpoints', { ...everywhere, collection_id }, admin);
    const { id } = expectData<{ id: string }>(created, 201);
    for (const path of [`/api/collections/${collection_id}`, `/api/domains/${objects[OWN]?.['domains']}`])
      expectFailure(await api.delete(path, editor), 'forbidden');
    expectFailure(await api.get(`/api/endpoints/${id}`, editor), 'not_found');
    expectData(await api.delete(`/api/endpoints/${id}`, admin));
  });

  it('refuses to cancel a build for an editor while an endpoint of another domain waits for it, too', async () => {
    const editor = people.get(`editor of ${OWN}`) as Person;
    const { endpoints: endpoint, builds: build } = objects[OWN] ?? {};
    const { endpoints: foreign, builds: foreignBuild } = objects[FOREIGN] ?? {};
    const builds = (id: string | undefined, build_id: string | undefined) =>
      api.store.knex('endpoints').where({ id }).update({ build_id });
    await api.store.knex('builds').where({ id: build }).update({ state: 'queued' });
    await builds(foreign, build);
    expectData(await api.get(`/api/builds/${build}`, editor));
    expectFailure(
      await api.post(`/api/builds/${build}/cancel`, {}, editor),
      'forbidden',
      /shared with others/,
    );
    await builds(foreign, foreignBuild);
    const ownedBy = (owner: string) => api.store.knex('builds').where({ id: build }).update({ owner });
    // As by an apply of another domain, which no endpoint shows before it is compiled.
    await ownedBy(FOREIGN);
    expectFailure(await api.post(`/api/builds/${build}/cancel`, {}, editor), 'forbidden');
    await ownedBy(OWN);
    const cancelled = expectData<object>(await api.post(`/api/builds/${build}/cancel`, {}, editor));
    expect(cancelled).to.include({ state: 'failed', error_code: 'build_cancelled' });
    expect(expectData(await api.get(`/api/endpoints/${endpoint}`, editor))).to.include({ last_error: null });
  });
});
