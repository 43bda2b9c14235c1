/** Plans of folders: what they would change, what stands against them, and what is wrong with them. */
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';
import { askForPlan, type Files, fieldsOf, linesOf, type ShownPlan } from '../support/plans.js';
import { zipOf } from '../support/zip.js';

const CODE = 'fn main() {}\n';
const SHOP: Files = {
  'edge.yaml': `
stack: shop
secrets: [DB_PASSWORD]
services:
  - name: shop cache
    service_type: redis
    config: {host: h, password: {secret: DB_PASSWORD}}
domains:
  - host: API.shop.example
    variables: {GREETING: hi}
collections:
  - {host: api.shop.example, name: pets, base_path: pets/}
endpoints:
  - host: api.shop.example
    method: GET
    route: /hello
    handler: src/hello.rs
    limits: {timeout_ms: 1000}
    bindings: {cache: shop cache}
    schedules: [{cron: '@hourly', body: {a: 1}}]
  - {host: api.shop.example, method: GET, collection: pets, path: '/{id}', name: getPet}
`,
  'src/hello.rs': CODE,
};

describe('the plan of an apply', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
    expectData(await api.put('/api/secrets/DB_PASSWORD', { value: 'never shown' }));
  });
  after(() => api.close());

  const plan = async (files: Files, query = '') => expectData<ShownPlan>(await askForPlan(api, files, query));
  const create = async (path: string, body: object) =>
    expectData<{ id: string }>(await api.post(path, body), 201).id;
  const own = (table: string, id: string, stack: string | null) =>
    api.store.knex(table).where({ id }).update({ stack });
  const yaml = (text: string, more: Files = {}): Files => ({ 'edge.yaml': text, ...more });

  it('lists what an apply would create, in the order of writing, field by field', async () => {
    const planned = await plan(SHOP);
    expect(planned.stack).to.equal('shop');
    expect(linesOf(planned)).to.deep.equal([
      'create service shop cache',
      'create domain api.shop.example',
      'create collection api.shop.example/pets',
      'create endpoint GET api.shop.example/hello',
      'create endpoint GET api.shop.example/pets/{id}',
    ]);
    expect(fieldsOf(planned, 'api.shop.example/pets')).to.deep.include(['base_path', null, '/pets']);
    const fields = fieldsOf(planned, 'GET api.shop.example/hello');
    expect(fields).to.deep.include(['limits', null, { timeout_ms: 1000 }]);
    expect(fields).to.deep.include(['running', null, true]);
    expect(JSON.stringify(fields)).to.match(/"code",null,"sha256:[0-9a-f]{64}"/);
    expect(fieldsOf(planned, 'GET api.shop.example/pets/{id}')).to.deep.include(['running', null, false]);
    expect(JSON.stringify(planned)).to.not.include('never shown');
  });

  it('a plan has the same hash for the same folder as JSON and as a ZIP, with or without an outer folder', async () => {
    const { plan_hash } = await plan(SHOP);
    expect(plan_hash).to.match(/^[0-9a-f]{64}$/);
    const folder = Object.fromEntries(Object.entries(SHOP).map(([path, text]) => [`shop/${path}`, text]));
    for (const files of [SHOP, folder]) {
      const body = zipOf(files);
      const response = await api.send('POST', '/api/apply?dry_run=true', {
        body,
        headers: { 'content-type': 'application/zip' },
      });
      expect(expectData<ShownPlan>(response).plan_hash).to.equal(plan_hash);
    }
    const moved = { ...SHOP, 'src/hello.rs': '// other\n' };
    expect((await plan(moved)).plan_hash).to.not.equal(plan_hash);
  });

  it('a plan refuses schedules that take more than the domain may have, and says where', async () => {
    const schedule = { cron: '@daily', body: 'x'.repeat(400_000) };
    const endpoint = {
      host: 'large.example',
      method: 'POST',
      route: '/',
      schedules: Array(3).fill(schedule),
    };
    const content = { stack: 'large', domains: [{ host: 'large.example' }], endpoints: [endpoint] };
    const tight = await startApi({ config: { JOBS_QUEUED_MB: 1 } });
    try {
      const refused = await askForPlan(tight, yaml(JSON.stringify(content)));
      expectFailure(refused, 'invalid_folder', /edge\.yaml.*schedules: .*"large\.example".*JOBS_QUEUED_MB/);
    } finally {
      await tight.close();
    }
  });

  it('a plan takes fewer schedules where there are more than the domain may have, and no more', async () => {
    const folder = (bodies: readonly number[]) => {
      const schedules = bodies.map((length) => ({ cron: '@daily', body: 'x'.repeat(length) }));
      const endpoint = { host: 'over.example', method: 'POST', route: '/', schedules };
      return { stack: 'over', domains: [{ host: 'over.example' }], endpoints: [endpoint] };
    };
    const tight = await startApi({ config: { JOBS_QUEUED_MB: 1 } });
    const planOf = (bodies: readonly number[]) => askForPlan(tight, yaml(JSON.stringify(folder(bodies))));
    try {
      const domain = { name: 'over', host: 'over.example' };
      const { id: of } = expectData<{ id: string }>(await tight.post('/api/domains', domain), 201);
      const endpoint = { name: 'E', path: '/', method: 'POST', domain: 'over.example' };
      const { id } = expectData<{ id: string }>(await tight.post('/api/endpoints', endpoint), 201);
      const schedule = { cron: '@daily', body: 'x'.repeat(900_000) };
      expectData(await tight.post(`/api/endpoints/${id}/schedules`, schedule), 201);
      // As accepted under another setting.
      const body = Buffer.alloc(2_000_000, 'x');
      await tight.store.knex('schedules').where({ endpoint_id: id }).update({ body });
      await tight.store.knex('domains').where({ id: of }).update({ stack: 'over' });
      await tight.store.knex('endpoints').where({ id }).update({ stack: 'over' });
      expectData(await planOf([1_500_000]));
      expectFailure(await planOf([1_500_000, 600_000]), 'invalid_folder', /JOBS_QUEUED_MB/);
    } finally {
      await tight.close();
    }
  });

  it('a plan changes nothing in the database', async () => {
    await plan(SHOP);
    for (const table of ['domains', 'collections', 'endpoints', 'services'])
      expect(await api.store.knex(table).where({ stack: 'shop' }), table).to.deep.equal([]);
    expect(await api.store.knex('domains').where({ host: 'api.shop.example' })).to.deep.equal([]);
  });

  it('a plan shows which fields of an object change, and a diff of its code', async () => {
    const domain = await create('/api/domains', { name: 'c.example', host: 'c.example' });
    const path = { path: '/pets/{id}', method: 'GET', domain: 'c.example' };
    const id = await create('/api/endpoints', {
      ...path,
      name: 'pets',
      code: 'a\nb\nc\n',
      limits: { timeout_ms: 5 },
    });
    await own('domains', domain, 'c');
    await own('endpoints', id, 'c');
    const planned = await plan(
      yaml(
        `
stack: c
domains: [{host: c.example, policies: {timeout: 7}}]
endpoints:
  - {host: c.example, method: GET, route: '/pets/{pet}', name: pets, handler: a.rs, running: false,
     limits: {timeout_ms: 6, idle_ms: 5}}
`,
        { 'a.rs': 'a\nB\nc\n' },
      ),
    );
    expect(linesOf(planned)).to.deep.equal([
      'update domain c.example',
      'update endpoint GET c.example/pets/{pet}',
    ]);
    expect(fieldsOf(planned, 'c.example')).to.deep.equal([['policies', null, { timeout: 7 }]]);
    const fields = fieldsOf(planned, 'GET c.example/pets/{pet}');
    expect(fields).to.deep.include(['route', '/pets/{id}', '/pets/{pet}']);
    expect(fields).to.deep.include(['limits.timeout_ms', 5, 6]);
    expect(fields).to.deep.include(['limits.idle_ms', null, 5]);
    const code = planned.changes[1]?.fields.find((field) => field.path === 'code');
    expect(code?.diff).to.equal('@@ -1,3 +1,3 @@\n a\n-b\n+B\n c');
  });

  describe('plans with objects of others', () => {
    let ids: Readonly<Record<'domains' | 'endpoints' | 'services', string>>;
    const HOST = 'owned.example';
    const files = (stack: string) =>
      yaml(`
stack: ${stack}
services: [{name: owned, service_type: sqlite, config: {path: a.db}, active: false}]
domains: [{host: ${HOST}}]
endpoints: [{host: ${HOST}, method: GET, route: /a}]
`);

    before(async () => {
      const endpoint = { name: 'GET /a', path: '/a', method: 'GET', domain: HOST };
      const config = { path: 'a.db' };
      ids = {
        domains: await create('/api/domains', { name: HOST, host: HOST }),
        endpoints: await create('/api/endpoints', endpoint),
        services: await create('/api/services', { name: 'owned', service_type: 'sqlite', config }),
      };
    });
    const ownAll = async (stack: string | null) => {
      for (const [table, id] of Object.entries(ids)) await own(table, id, stack);
    };

    it('reports a conflict for each object that no stack owns, unless the plan adopts them', async () => {
      await ownAll(null);
      const response = await askForPlan(api, files('mine'));
      expectFailure(
        response,
        'apply_conflict',
        /edge\.yaml:4: the domain "owned\.example" exists, and belongs to no stack/,
      );
      const { details } = response.body as { details: { conflicts: { kind: string; name: string }[] } };
      expect(details.conflicts.map(({ kind, name }) => `${kind} ${name}`)).to.have.members([
        ...['service owned', `domain ${HOST}`, `endpoint GET ${HOST}/a`],
      ]);
      const adopted = await plan(files('mine'), '&adopt=true');
      expect(adopted.changes.flatMap(({ fields }) => fields)).to.deep.equal(
        adopted.changes.map(() => ({ path: 'stack', before: null, after: 'mine' })),
      );
      expect(adopted.changes).to.have.length(3);
    });

    it('reports a conflict for an object that another stack owns, also with adopt or prune', async () => {
      await ownAll('theirs');
      for (const query of ['', '&adopt=true', '&prune=true'])
        expectFailure(
          await askForPlan(api, files('mine'), query),
          'apply_conflict',
          /belongs to the stack "theirs"/,
        );
      expect((await plan(files('theirs'))).changes).to.deep.equal([]);
    });

    it('a plan leaves an object alone that the folder does not claim, while it is as the folder says', async () => {
      await ownAll('theirs');
      const unclaimed = (name: string, stack: string) =>
        yaml(`{stack: mine, domains: [{host: ${HOST}, name: ${name}, stack: ${stack}}]}`);
      expect((await plan(unclaimed(HOST, 'theirs'))).changes).to.deep.equal([]);
      expectFailure(
        await askForPlan(api, unclaimed('other', 'theirs')),
        'apply_conflict',
        /not as the folder says/,
      );
      await ownAll(null);
      expect((await plan(unclaimed(HOST, 'null'))).changes).to.deep.equal([]);
      expectFailure(await askForPlan(api, unclaimed('other', 'null')), 'apply_conflict');
      expect(fieldsOf(await plan(unclaimed('other', 'null'), '&adopt=1'), HOST)).to.deep.equal([
        ['name', HOST, 'other'],
        ['stack', null, 'mine'],
      ]);
      // Where it is missing, it is made, for whom it belongs to.
      const created = await plan(yaml('{stack: mine, domains: [{host: new.example, stack: theirs}]}'));
      expect(fieldsOf(created, 'new.example')).to.deep.include(['stack', null, 'theirs']);
    });

    it('a plan removes only objects of its own stack, and only with prune, in an order that is possible', async () => {
      await ownAll('mine');
      const empty = yaml('stack: mine');
      const kept = await plan(empty);
      expect(kept.changes).to.deep.equal([]);
      expect(kept.warnings.join()).to.match(
        /endpoint "GET owned\.example\/a".*They stay, unless it is applied with prune/,
      );
      const secret = { value: 'never shown' };
      expectData(await api.put(`/api/endpoints/${ids.endpoints}/secrets/GREETING`, secret));
      const pruned = await plan(empty, '&prune=true');
      expect(pruned.warnings.join()).to.include(
        '"GET owned.example/a": its secrets are removed with it: GREETING',
      );
      expect(linesOf(pruned)).to.deep.equal([
        `delete endpoint GET ${HOST}/a`,
        `delete domain ${HOST}`,
        'delete service owned',
      ]);
      expect((await plan(yaml('stack: nobody'), '&prune=true')).changes).to.deep.equal([]);
    });

    it('reports a conflict when prune would remove a domain or service that an object of others uses', async () => {
      await ownAll('mine');
      await own('endpoints', ids.endpoints, 'theirs');
      expectFailure(
        await askForPlan(api, yaml('stack: mine'), '&prune=true'),
        'apply_conflict',
        /endpoint "GET owned\.example\/a" stays, but is in the domain "owned\.example", which would be removed/,
      );
      const bound = { service_id: ids.services, pool_id: 'db' };
      expectData(await api.post(`/api/endpoints/${ids.endpoints}/services`, bound), 201);
      await own('domains', ids.domains, null);
      expectFailure(
        await askForPlan(api, yaml('stack: mine'), '&prune=true'),
        'apply_conflict',
        /has the service "owned" bound/,
      );
    });
  });

  it('a plan moves the endpoints of a collection with its base path, unless others own them', async () => {
    const domain_id = await create('/api/domains', { name: 'd', host: 'moved.example' });
    const collection_id = await create('/api/collections', { domain_id, name: 'pets', base_path: '/old' });
    const endpoint = { method: 'GET', domain: 'moved.example', collection_id };
    const listed = await create('/api/endpoints', { ...endpoint, name: 'a', path: '/a' });
    const other = await create('/api/endpoints', { ...endpoint, name: 'b', path: '/b' });
    await own('domains', domain_id, 'm');
    await own('collections', collection_id, 'm');
    for (const id of [listed, other]) await own('endpoints', id, 'm');
    const files = yaml(`
stack: m
collections: [{host: moved.example, name: pets, base_path: /new}]
endpoints: [{host: moved.example, method: GET, collection: pets, path: /a, name: a}]
`);
    const planned = await plan(files);
    expect(linesOf(planned)).to.deep.equal([
      'update collection moved.example/pets',
      'update endpoint GET moved.example/new/a',
      'update endpoint GET moved.example/new/b',
    ]);
    expect(fieldsOf(planned, 'GET moved.example/new/b')).to.deep.equal([['route', '/old/b', '/new/b']]);
    await own('endpoints', other, null);
    expectFailure(await askForPlan(api, files), 'apply_conflict', /would move with the base path/);
  });

  describe('configs of services in plans', () => {
    const redis = (config: string, more = '') =>
      yaml(
        `{stack: s, services: [{name: kept, service_type: redis, active: false, config: ${config} ${more}}]}`,
      );
    before(async () => {
      const config = { host: 'h', password: 'a literal' };
      await own(
        'services',
        await create('/api/services', { name: 'kept', service_type: 'redis', config }),
        's',
      );
    });

    it('shows no secret of a config of a service in a plan, and refuses secrets in files', async () => {
      expectFailure(
        await askForPlan(api, redis('{host: h, password: mine}')),
        'invalid_folder',
        /edge\.yaml:1: services\.0: config\.password: a file has no secrets/,
      );
      const kept = await plan(redis('{host: h, password: {stored: true}, pool_size: 3}'));
      expect(fieldsOf(kept, 'kept')).to.deep.equal([['config.pool_size', 10, 3]]);
      const referring = await plan(redis('{host: h, password: {secret: DB_PASSWORD}}'));
      expect(fieldsOf(referring, 'kept')).to.deep.equal([
        ['config.password.stored', true, null],
        ['config.password.secret', null, 'DB_PASSWORD'],
      ]);
      expect(JSON.stringify([kept, referring])).to.not.match(/a literal|never shown/);
    });

    it('refuses {stored: true} in a config when nothing is stored, and names secrets that are missing', async () => {
      const fresh =
        '{stack: s, services: [{name: fresh, service_type: redis, config: {host: h, password: {stored: true}}}]}';
      expectFailure(
        await askForPlan(api, yaml(fresh)),
        'invalid_folder',
        /config\.password: \{stored: true\} .* there is none/,
      );
      expectFailure(
        await askForPlan(api, redis('{host: h, password: {secret: NOT_SET}}')),
        'invalid_folder',
        /NOT_SET/,
      );
      expectFailure(
        await askForPlan(api, yaml('{stack: s, secrets: [DB_PASSWORD, NOT_SET, NOR_THIS]}')),
        'invalid_folder',
        /secrets: NOT_SET, NOR_THIS must be set first/,
      );
      expectFailure(
        await askForPlan(
          api,
          yaml('{stack: s, services: [{name: kept, service_type: sqlite, config: {path: a}}]}'),
        ),
        'invalid_folder',
        /service_type: must stay "redis"/,
      );
    });
  });

  it('refuses a variable with the name of a secret of the same owner', async () => {
    const id = await create('/api/domains', { name: 'v.example', host: 'v.example' });
    expectData(await api.put(`/api/domains/${id}/secrets/KEY`, { value: 'x' }));
    expectFailure(
      await askForPlan(
        api,
        yaml('{stack: s, domains: [{host: v.example, variables: {KEY: x}}]}'),
        '&adopt=1',
      ),
      'invalid_folder',
      /variables\.KEY: is a secret/,
    );
  });
});
