/**
 * Broken object level authorization: ids and hosts of others in every parameter of every route, in bodies and in
 * imports. What is of others does not exist, and stays as it is.
 */
import { expect } from 'chai';
import { KIND_OF_MEMBER, kindsInPath } from '../../src/api/access/references.js';
import { ROUTES } from '../../src/api/app.js';
import { PERMISSIONS_OF_ROLE, type Permission } from '../../src/model/permission.js';
import { ADMIN, addUser, makeToken, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import type { HttpResponse } from '../support/client.js';
import { type DomainObjects, fillDomain, pathWith, SMALL_SPEC } from '../support/domain-objects.js';
import { expectData, expectFailure } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { uniqueName } from '../support/names.js';
import { zipOf } from '../support/zip.js';

const OWN = 'own.example';
const FOREIGN = 'foreign.example';
const TABLES = [
  ...['domains', 'collections', 'endpoints', 'services', 'endpoint_services', 'schedules', 'domain_keys'],
  ...['alerts', 'jobs', 'users', 'tokens', 'sessions', 'imports'],
];
const HOOK = 'https://93.184.215.14/hook';

describe('objects of others', () => {
  let api: TestApi;
  let admin: Person;
  let own: DomainObjects;
  let foreign: DomainObjects;
  const people = new Map<string, Person>();

  before(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    for (const role of ['admin', 'editor', 'viewer'] as const)
      people.set(role, await addUser(api, admin, { email: `${role}@own.test`, role, domains: [OWN] }));
    own = await fillDomain(api, admin, OWN);
    foreign = await fillDomain(api, admin, FOREIGN);
  });
  after(() => api.close());

  const editor = () => people.get('editor') as Person;
  /** Everything that is stored, but for what each request writes. */
  const stored = async () => {
    const rows = await Promise.all(
      TABLES.map(async (table) => [
        table,
        await api.store.knex(table).orderBy(table === 'endpoint_services' ? 'endpoint_id' : 'id'),
      ]),
    );
    return JSON.stringify(rows, (name, value) =>
      name === 'seen_at' || name === 'last_used_at' ? undefined : value,
    );
  };
  /** Fails when what is stored changes meanwhile. */
  const unchanged = async (work: () => Promise<void>) => {
    const before = await stored();
    await work();
    expect(await stored()).to.equal(before);
  };

  for (const role of ['admin', 'editor', 'viewer'] as const)
    it(`the role ${role} gets 404 for ids of others in paths, also with own ids beside them`, () =>
      unchanged(async () => {
        for (const { method, path, permission } of ROUTES) {
          const parameters = [...path.matchAll(/\{(\w*id)\}/g)].flatMap(([, name]) => name ?? []);
          if (kindsInPath(path).length === 0) continue;
          if (!PERMISSIONS_OF_ROLE[role].has(permission as Permission)) continue;
          for (const theirs of parameters) {
            const place = pathWith(path, (name) => (name === theirs ? foreign : own));
            const response = await api.send(method, place, {
              ...people.get(role),
              // What is right otherwise, so that nothing else is wrong.
              ...(method !== 'GET' && { body: {} }),
            });
            const what = `${method} ${path} with another ${theirs}: ${JSON.stringify(response.body)}`;
            expect(response.status, what).to.equal(404);
          }
        }
      }));

  it('finds schedules and keys only below the endpoint or domain that they belong to', async () => {
    for (const path of [
      `/api/endpoints/${own['endpoints']}/schedules/${own['schedules']}/runs`,
      `/api/domains/${own['domains']}/keys`,
    ])
      expectData(await api.get(path, editor()));
    const wrong = `/api/endpoints/${own['endpoints']}/schedules/${foreign['schedules']}`;
    expectFailure(await api.put(wrong, { enabled: false }, editor()), 'not_found');
    expectFailure(
      await api.delete(`/api/domains/${own['domains']}/keys/${foreign['keys']}`, editor()),
      'not_found',
    );
    // Nor by those who see both: a schedule is of one endpoint, a key of one domain.
    expectFailure(await api.get(wrong, admin), 'not_found');
    expectFailure(await api.put(wrong, { enabled: false }, admin), 'not_found');
    expectFailure(
      await api.delete(`/api/domains/${own['domains']}/keys/${foreign['keys']}`, admin),
      'not_found',
    );
  });

  it('each member of a query or body that names an object or a host is one that is checked', () => {
    const names = new Set<string>();
    const collect = (schema: Schema | undefined) => {
      if (!schema) return;
      for (const [name, member] of Object.entries(schema.properties ?? {})) {
        if (member.format === 'uuid' || member.format?.startsWith('hostname')) names.add(name);
        collect(member);
      }
      for (const inner of schema.anyOf ?? []) collect(inner);
      if (schema.items?.format?.startsWith('hostname')) names.add('hosts');
      collect(schema.items);
    };
    for (const { query, body, form } of ROUTES)
      for (const schema of [query, body, form]) collect(schema as Schema);
    // Lists of hosts are checked by the routes of services, users and tokens, which have tests of their own.
    names.delete('hosts');
    expect([...names].filter((name) => !Object.hasOwn(KIND_OF_MEMBER, name))).to.deep.equal([]);
    expect([...names]).to.include.members([
      'endpoint_id',
      'collection_id',
      'domain_id',
      'service_id',
      'domain',
    ]);
  });

  it('refuses or ignores foreign ids and hosts that come twice, in lists, or in other spellings', () =>
    unchanged(async () => {
      const endpoint = { name: 'x', path: '/x', method: 'GET' };
      for (const [path, body] of [
        ['/api/endpoints', { ...endpoint, domain: FOREIGN.toUpperCase() }],
        ['/api/endpoints', { ...endpoint, domain: [FOREIGN] }],
        ['/api/endpoints', { ...endpoint, domain: `${FOREIGN}.` }],
        ['/api/endpoints', { ...endpoint, domain: OWN, collection_id: [foreign['collections']] }],
        [
          '/api/endpoints',
          { ...endpoint, domain: OWN, collection_id: foreign['collections']?.toUpperCase() },
        ],
        ['/api/collections', { name: 'c', domain_id: { $ne: null } }],
      ] as const)
        expect((await api.post(path, body, editor())).status, JSON.stringify(body)).to.be.oneOf([400, 404]);
      for (const query of [
        `domain=${OWN}&domain=${FOREIGN}`,
        `domain=${FOREIGN}&domain=${OWN}`,
        `domain[]=${FOREIGN}`,
        `domain=${FOREIGN.toUpperCase()}`,
        `collection_id=${foreign['collections']?.toUpperCase()}`,
      ]) {
        const response = await api.get(`/api/endpoints?${query}`, editor());
        expect(JSON.stringify(response.body), query).not.to.include(foreign['endpoints']);
      }
      const doubled = `{"name":"x","path":"/x","method":"GET","domain":"${OWN}","domain":"${FOREIGN}"}`;
      expectFailure(await api.post('/api/endpoints', doubled, editor()), 'not_found');
    }));

  describe('imports with objects of others', () => {
    const bundle = (query: string, files: Record<string, string>, by: Person) => {
      const zip = zipOf({ 'openapi.json': SMALL_SPEC, 'handlers/i.rs': '// i', ...files });
      const form = multipart([{ name: 'bundle', filename: 'a.zip', content: zip }]);
      return api.post(`/api/import/bundle?${query}`, form.body, {
        headers: { ...form.headers, ...by.headers },
      });
    };
    const targets = () => [
      { domain: FOREIGN },
      { domain: FOREIGN, domain_id: foreign['domains'] },
      { domain: OWN, domain_id: foreign['domains'] },
      { domain: OWN, collection_id: foreign['collections'] },
      { domain: FOREIGN, collection_id: foreign['collections'] },
      { domain: FOREIGN, collection_id: own['collections'] },
      { domain: FOREIGN, domain_id: own['domains'] },
      { domain: OWN, domain_id: foreign['domains'], create_collection: true },
      { domain: '*' },
      { domain: '*', collection_id: own['collections'] },
      { domain: '*', domain_id: own['domains'], create_collection: true },
    ];

    for (const dry_run of ['', 'dry_run=true'])
      it(`imports no document into a domain or collection of others (query "${dry_run}")`, () =>
        unchanged(async () => {
          for (const target of targets()) {
            const response = await api.post(
              `/api/import/openapi?${dry_run}`,
              { spec: SMALL_SPEC, ...target },
              editor(),
            );
            expectFailure(response, 'not_found');
          }
        }));

    for (const dry_run of ['', '&dry_run=true'])
      it(`imports no bundle into a domain or collection of others (query "${dry_run}")`, () =>
        unchanged(async () => {
          for (const target of targets()) {
            const query = Object.entries(target)
              .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
              .join('&');
            expectFailure(await bundle(`${query}${dry_run}`, {}, editor()), 'not_found');
          }
        }));

    it('refuses a bundle that binds a service of others as if it did not exist', () =>
      unchanged(async () => {
        const refused: HttpResponse[] = [];
        for (const name of [`s ${FOREIGN}`, 'nothing']) {
          const manifest = { 'bundle.yaml': `bindings: { db: "${name}" }` };
          const target = `domain=${OWN}&domain_id=${own['domains']}&create_collection=true&dry_run=true`;
          const response = await bundle(target, manifest, editor());
          expectFailure(response, 'invalid_bundle', /there is no service with the name/);
          refused.push(response);
        }
        const [theirs, none] = refused.map(({ body }) => JSON.stringify(body).replace(/\\"[^"]*\\"/, 'NAME'));
        expect(theirs).to.equal(none);
      }));

    it('a bundle binds a service that is for its domain', async () => {
      const service = { name: 'db', service_type: 'redis', config: { host: '127.0.0.1', port: 1 } };
      const created = await api.post('/api/services', { ...service, domains: [OWN] }, admin);
      const ours = expectData<{ id: string }>(created, 201).id;
      const manifest = { 'bundle.yaml': 'bindings: { db: db }' };
      const target = `domain=${OWN}&domain_id=${own['domains']}&create_collection=true`;
      const done = expectData<{ endpoints: { id: string }[] }>(await bundle(target, manifest, editor()));
      const bound = await api.get(`/api/endpoints/${done.endpoints[0]?.id}/services`, editor());
      expect(expectData<{ service_id: string }[]>(bound).map(({ service_id }) => service_id)).to.deep.equal([
        ours,
      ]);
      expectData(await api.delete(`/api/services/${ours}`, admin));
    });

    it('refuses a bundle that compiles or starts handlers without the permission to deploy', async () => {
      const importer = await makeToken(api, editor(), [
        'imports:write',
        'endpoints:write',
        'collections:write',
      ]);
      const target = `domain=${OWN}&domain_id=${own['domains']}&create_collection=true`;
      for (const query of ['&compile=true', '&compile=true&start=true', '&compile=1&dry_run=1'])
        expectFailure(await bundle(target + query, {}, importer), 'forbidden', /endpoints:deploy/);
      expectData(await bundle(target, {}, importer));
    });
  });

  it('refuses alerts of services that are shared with other domains to an editor of one domain', async () => {
    const config = { host: '127.0.0.1', port: 1 };
    const service = (domains: readonly string[]) =>
      api.post('/api/services', { name: uniqueName('x'), service_type: 'redis', config, domains }, admin);
    const shared = [
      expectData<{ id: string }>(await service([]), 201).id,
      expectData<{ id: string }>(await service([OWN, FOREIGN]), 201).id,
    ];
    const mine = expectData<{ id: string }>(await service([OWN]), 201).id;
    const alertFor = (service_id: string, by: Person) =>
      api.post('/api/alerts', { on: 'service_unreachable', url: HOOK, scope: { service_id } }, by);
    const own_alert = expectData<{ id: string }>(await alertFor(mine, editor()), 201).id;
    for (const id of shared) {
      expectFailure(await alertFor(id, editor()), 'forbidden');
      const scope = { service_id: id };
      expectFailure(await api.put(`/api/alerts/${own_alert}`, { scope }, editor()), 'forbidden');
      const alert = expectData<{ id: string }>(await alertFor(id, admin), 201).id;
      const at = `/api/alerts/${alert}`;
      for (const response of [
        await api.get(at, editor()),
        await api.get(`${at}/events`, editor()),
        await api.put(at, { enabled: false }, editor()),
        await api.delete(at, editor()),
      ])
        expectFailure(response, 'not_found');
      expect(JSON.stringify((await api.get('/api/alerts', editor())).body)).not.to.include(alert);
    }
    expectData(await api.put(`/api/alerts/${own_alert}`, { enabled: false }, editor()));
  });

  it('lets nobody have the endpoints of others by making the domain of their host', async () => {
    const [host, other] = ['unmade.example', 'mine.example'];
    const person = await addUser(api, admin, {
      email: 'maker@own.test',
      role: 'editor',
      domains: [host, other],
    });
    const mine = expectData<{ id: string }>(
      await api.post('/api/domains', { name: other, host: other }, person),
      201,
    );
    const theirs = { name: 'theirs', path: '/', method: 'GET', domain: host };
    const { id } = expectData<{ id: string }>(await api.post('/api/endpoints', theirs, admin), 201);
    const files = { 'edge.yaml': JSON.stringify({ stack: 'taken', domains: [{ host, name: host }] }) };
    await unchanged(async () => {
      for (const response of [
        await api.post('/api/domains', { name: host, host: host.toUpperCase() }, person),
        await api.put(`/api/domains/${mine.id}`, { host }, person),
        await api.post('/api/apply?dry_run=true', { files }, person),
      ])
        expectFailure(response, 'forbidden', /has endpoints of others/);
    });
    expectFailure(await api.get(`/api/endpoints/${id}`, person), 'not_found');
    // Whoever sees them makes the domain.
    expectData(await api.post('/api/domains', { name: host, host }, admin), 201);
    expectData(await api.get(`/api/endpoints/${id}`, person));
  });

  it('refuses the name of a foreign service without saying which service has it', async () => {
    const config = { base_url: 'https://93.184.215.14/' };
    const mine = expectData<{ id: string }>(
      await api.post('/api/services', { name: uniqueName('x'), service_type: 'http', config }, editor()),
      201,
    );
    const taken = { name: `s ${FOREIGN}`, service_type: 'http', config };
    for (const response of [
      await api.post('/api/services', taken, editor()),
      await api.put(`/api/services/${mine.id}`, { name: taken.name }, editor()),
    ]) {
      expectFailure(response, 'name_taken', /is taken by another service$/);
      expect(JSON.stringify(response.body)).not.to.include(foreign['services']);
    }
    expectData(await api.delete(`/api/services/${mine.id}`, editor()));
  });

  it('refuses access to the user, tokens and sessions of an admin to people of one domain', async () => {
    const token = await makeToken(api, admin, ['domains:read']);
    const [session] = expectData<{ id: string }[]>(await api.get('/api/sessions', admin));
    await unchanged(async () => {
      for (const person of people.values()) {
        expectFailure(await api.delete(`/api/tokens/${token.id}`, person), 'not_found');
        expectFailure(await api.delete(`/api/sessions/${session?.id}`, person), 'not_found');
        for (const [method, body] of [
          ['GET', undefined],
          ['PUT', { name: 'x' }],
          ['DELETE', undefined],
        ] as const)
          expectFailure(
            await api.send(method, `/api/users/${admin.id}`, { ...person, ...(body && { body }) }),
            'forbidden',
          );
        expect(JSON.stringify((await api.get('/api/tokens', person)).body)).not.to.include(token.id);
      }
    });
  });
});

interface Schema {
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
}
