/** Who may plan and export what: names that are taken, permissions, and hosts. */
import { expect } from 'chai';
import type { Principal } from '../../src/api/access/principal.js';
import { requirePermissions } from '../../src/api/apply/permissions.js';
import { changedFields } from '../../src/apply/compare.js';
import type { EndpointObject } from '../../src/apply/objects.js';
import type { Permission } from '../../src/model/permission.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { ADMIN, addUser, makeToken, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';
import { askForPlan, type Files, linesOf, type ShownPlan } from '../support/plans.js';

const OWN = 'own.example';
const FOREIGN = 'foreign.example';
const folder = (text: string): Files => ({ 'edge.yaml': `{stack: s, ${text}}` });
const endpointAt = (host: string) => `endpoints: [{host: ${host}, method: GET, route: /new}]`;

describe('applies and exports', () => {
  let api: TestApi;
  let admin: Person;
  let editor: Person;
  before(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    for (const host of [OWN, FOREIGN]) {
      expectData(await api.post('/api/domains', { name: host, host }, admin), 201);
      const config = { host: '127.0.0.1', password: `password of ${host}` };
      const service = { name: `cache of ${host}`, service_type: 'redis', config, domains: [host] };
      expectData(await api.post('/api/services', service, admin), 201);
      expectData(
        await api.post(
          '/api/endpoints',
          { name: 'e', path: '/e', method: 'GET', domain: host, code: host },
          admin,
        ),
        201,
      );
    }
    editor = await addUser(api, admin, { email: 'editor@own.test', role: 'editor', domains: [OWN] });
  });
  after(() => api.close());

  it('refuses plans of an editor with objects of other hosts, and names the object', async () => {
    const planned = expectData<ShownPlan>(await askForPlan(api, folder(endpointAt(OWN)), '', editor));
    expect(linesOf(planned)).to.deep.equal([`create endpoint GET ${OWN}/new`]);
    for (const host of [FOREIGN, "'*'", 'no-domain.example'])
      expectFailure(
        await askForPlan(api, folder(endpointAt(host)), '', editor),
        'forbidden',
        /The endpoint "GET \S+\/new" is not of your hosts: own\.example/,
      );
    const shared = 'services: [{name: new, service_type: http, config: {base_url: "https://a.example"}}]';
    expectFailure(await askForPlan(api, folder(shared), '', editor), 'forbidden', /service "new"/);
    const taken = `services: [{name: cache of ${FOREIGN}, service_type: redis, config: {host: h}, domains: [${OWN}]}]`;
    expectFailure(
      await askForPlan(api, folder(taken), '&adopt=1', editor),
      'forbidden',
      /service "cache of foreign/,
    );
  });

  it('exports nothing of other hosts for an editor who is limited to hosts', async () => {
    const { files } = expectData<{ files: Files }>(await api.get('/api/export', editor));
    expect(Object.keys(files)).to.deep.equal(['edge.yaml', `${OWN}/e.rs`]);
    expect(files['edge.yaml']).to.not.match(/foreign|password of/);
    expectFailure(await api.get(`/api/export?domain=${FOREIGN}`, editor), 'not_found');
    expect(expectData<ShownPlan>(await askForPlan(api, files, '', editor)).changes).to.deep.equal([]);
    const openapi = (host: string) => api.get(`/api/export/openapi?domain=${host}`, editor);
    const { documents } = expectData<{ documents: { document: { paths: object } }[] }>(await openapi(OWN));
    expect(documents.map(({ document }) => Object.keys(document.paths))).to.deep.equal([['/e']]);
    for (const host of [FOREIGN, '*']) expectFailure(await openapi(host), 'not_found');
  });

  it('prunes nothing of other hosts for an editor who is limited to hosts', async () => {
    await api.store.knex('endpoints').update({ stack: 's' });
    const pruned = expectData<ShownPlan>(await askForPlan(api, folder('domains: []'), '&prune=1', editor));
    expect(linesOf(pruned)).to.deep.equal([`delete endpoint GET ${OWN}/e`]);
    await api.store.knex('endpoints').update({ stack: null });
  });

  const restored: EndpointObject = {
    kind: 'endpoint',
    method: 'GET',
    host: OWN,
    ...{ route: '/b', path: '/b', name: 'b', code: 'c', collection: null, collection_host: null },
    ...{ description: null, enabled: true, dependencies: null, limits: null, policies: null },
    ...{ ...ONE_FILE, variables: {}, bindings: {}, schedules: [], stack: null, running: 'other' },
  };
  const writing: ReadonlySet<Permission> = new Set(['endpoints:read', 'endpoints:write']);
  const writer = { permissions: writing } as unknown as Principal;

  it('demands the permission to deploy for a change that restores a running endpoint', async () => {
    const change = { action: 'create', id: null, before: null, after: restored, fields: [] } as const;
    const refused = await requirePermissions(writer, [change], {} as never).catch(String);
    expect(refused).to.match(/endpoints:deploy is missing/);
    const stopped = { ...change, after: { ...restored, running: false } } as const;
    await requirePermissions(writer, [stopped], {} as never);
  });

  it('demands the permission to deploy for each change of the source of a running endpoint', async () => {
    const before: EndpointObject = { ...restored, running: true };
    const refusal = (changed: Partial<EndpointObject>) => {
      const after = { ...before, ...changed };
      const change = {
        action: 'update',
        id: null,
        before,
        after,
        fields: changedFields(before, after),
      } as const;
      return requirePermissions(writer, [change], {} as never).then(() => undefined, String);
    };
    const sources: readonly Partial<EndpointObject>[] = [
      { code: 'd' },
      { entry: 'src/main.rs' },
      { files: { 'src/a.rs': { digest: '0'.repeat(64), size: 1 } } },
      { dependencies: { regex: '1' } },
    ];
    for (const source of sources) expect(await refusal(source)).to.match(/endpoints:deploy is missing/);
    expect(await refusal({ description: 'd' })).to.equal(undefined);
  });

  it('demands the permissions for all that a plan changes, and for all that an export shows', async () => {
    const reading = ['domains:read', 'endpoints:read', 'services:read'] as const;
    const some = await makeToken(api, admin, [...reading, 'endpoints:write', 'domains:write']);
    expectData(await askForPlan(api, folder(endpointAt(OWN)), '', some));
    for (const [text, permission] of [
      ['services: [{name: n, service_type: sqlite, config: {path: a}}]', 'services:write'],
      ['domains: [{host: n.example, variables: {A: b}}]', 'variables:read'],
      [`collections: [{host: ${OWN}, name: c}]`, 'collections:read'],
    ] as const)
      expectFailure(await askForPlan(api, folder(text), '', some), 'forbidden', new RegExp(permission));
    const running = {
      ...folder(`endpoints: [{host: ${OWN}, method: GET, route: /r, handler: r.rs}]`),
      'r.rs': '',
    };
    expectFailure(await askForPlan(api, running, '', some), 'forbidden', /endpoints:deploy/);
    // What is of a stack is removed with the permission for its kind only.
    await api.store.knex('services').update({ stack: 's' });
    expectFailure(
      await askForPlan(api, folder('domains: []'), '&prune=1', some),
      'forbidden',
      /services:write/,
    );
    await api.store.knex('services').update({ stack: null });
    const blind = await makeToken(api, admin, ['endpoints:read']);
    expectFailure(await api.get('/api/export', blind), 'forbidden', /services:read/);
    const openapi = await api.get(`/api/export/openapi?domain=${OWN}`, blind);
    expectFailure(openapi, 'forbidden', /domains:read/);
  });

  it('refuses to send a stored secret to another host for an editor who may not see it', async () => {
    const moved = (host: string) =>
      folder(
        `services: [{name: cache of ${OWN}, service_type: redis, active: false, domains: [${OWN}], config: {host: ${host}, password: {stored: true}}}]`,
      );
    await api.store.knex('services').update({ stack: 's' });
    const everywhere = await addUser(api, admin, { email: 'editor@all.test', role: 'editor' });
    expectFailure(
      await askForPlan(api, moved('evil.example'), '', everywhere),
      'invalid_folder',
      /config\.password: has to be sent again, because config\.host changes/,
    );
    expectData(await askForPlan(api, moved('127.0.0.1'), '', everywhere));
    expectData(await askForPlan(api, moved('other.example'), '', admin));
  });
});

describe('names', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  it('refuses a service whose name another service has', async () => {
    const service = (name: string) =>
      api.post('/api/services', { name, service_type: 'sqlite', config: { path: 'a.db' } });
    const { id } = expectData<{ id: string }>(await service('one'), 201);
    const other = expectData<{ id: string }>(await service('two'), 201).id;
    for (const response of [await service('one'), await api.put(`/api/services/${other}`, { name: 'one' })]) {
      expectFailure(response, 'name_taken', new RegExp(`"one" is taken by the service ${id}`));
      expect(response.body).to.have.deep.property('details', { service_id: id });
    }
    expectData(await api.put(`/api/services/${id}`, { name: 'one' }));
  });

  it('refuses a collection whose name another collection of its domain has', async () => {
    const domain = async (host: string) =>
      expectData<{ id: string }>(await api.post('/api/domains', { name: host, host }), 201).id;
    const [a, b] = [await domain('a.example'), await domain('b.example')];
    const collection = (domain_id: string, name: string) => api.post('/api/collections', { domain_id, name });
    const { id } = expectData<{ id: string }>(await collection(a, 'one'), 201);
    const other = expectData<{ id: string }>(await collection(a, 'two'), 201).id;
    expectData(await collection(b, 'one'), 201);
    for (const response of [
      await collection(a, 'one'),
      await api.put(`/api/collections/${other}`, { name: 'one', base_path: '/x' }),
    ])
      expectFailure(
        response,
        'name_taken',
        new RegExp(`"one" is taken by the collection ${id} of the domain`),
      );
  });
});
