import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import { ENDPOINT_DEFAULTS, EndpointView } from '../../src/api/endpoints/endpoints.schema.js';
import type { ErrorCode } from '../../src/errors.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID, TIMESTAMP, UUID } from '../support/expect.js';
import { keyOf } from '../support/one-file.js';

type Endpoint = Static<typeof EndpointView>;

/** How what is stored as null is shown. */
const SHOWN_DEFAULTS = { edition: '2021', entry: 'handler.rs', files: {} };

describe('endpoints', () => {
  let api: TestApi;
  let domainId: string;
  let collectionId: string;
  let count = 0;

  before(async () => {
    api = await startApi();
    domainId = await idOf('/api/domains', { name: 'D', host: 'shop.example' });
    collectionId = await idOf('/api/collections', { name: 'C', domain_id: domainId, base_path: '/shop' });
  });
  after(() => api.close());

  async function idOf(path: string, body: object): Promise<string> {
    return expectData<{ id: string }>(await api.post(path, body), 201).id;
  }

  function fields(more: object = {}): object {
    count += 1;
    return { name: 'E', path: `/p${count}`, method: 'GET', domain: '*', ...more };
  }

  async function create(more: object = {}): Promise<Endpoint> {
    return expectData(await api.post('/api/endpoints', fields(more)), 201);
  }

  async function rowOf(id: string): Promise<{ route: string; version: number; source_key: string }> {
    return api.store.knex('endpoints').where({ id }).first('route', 'version', 'source_key');
  }

  it('creates an endpoint with just a name, a path, a method and a domain', async () => {
    const endpoint = await create({ path: '/minimal/{id}' });
    expect(endpoint).to.have.all.keys(Object.keys(EndpointView.properties));
    expect(endpoint).to.deep.include({ name: 'E', path: '/minimal/{id}', method: 'GET', domain: '*' });
    expect(endpoint).to.deep.include({ ...ENDPOINT_DEFAULTS, ...SHOWN_DEFAULTS });
    expect(endpoint).to.include({ status: 'created', needs_compile: false, running: false });
    for (const none of ['last_error', 'pid', 'build_id']) expect(endpoint).to.have.property(none, null);
    expect(endpoint.id).to.match(UUID);
    expect(endpoint.created_at).to.match(TIMESTAMP);
    expect(endpoint.updated_at).to.match(TIMESTAMP);
  });

  describe('the code of an endpoint', () => {
    const CODE = 'use rust_edge_gateway_sdk::prelude::*;\n// "ü" \u{1f980}\n';
    const rust = (type: string) => ({ headers: { 'content-type': type } });

    it('shows and stores the code of an endpoint as text', async () => {
      const { id } = await create();
      const none = await api.get(`/api/endpoints/${id}/code`);
      expect(none).to.include({ status: 200, body: undefined });
      expect(none.headers['content-type']).to.equal('text/x-rust; charset=utf-8');
      for (const type of ['text/x-rust', 'text/plain; charset=utf-8']) {
        const changed = await api.put(`/api/endpoints/${id}/code`, CODE, rust(type));
        expect(expectData<Endpoint>(changed)).to.include({ id, code: CODE });
        expect((await api.get(`/api/endpoints/${id}/code`)).body).to.equal(CODE);
        await api.put(`/api/endpoints/${id}/code`, '// another', rust(type));
      }
    });

    it('shows and stores the code of an endpoint as JSON', async () => {
      const { id } = await create();
      const asJson = async () =>
        expectData(
          await api.get(`/api/endpoints/${id}/code`, {
            headers: { accept: 'application/json, text/plain, */*' },
          }),
        );
      expect(await asJson()).to.deep.equal({ code: null });
      expectData(await api.put(`/api/endpoints/${id}/code`, { code: CODE }));
      expect(await asJson()).to.deep.equal({ code: CODE });
      expectData(await api.put(`/api/endpoints/${id}/code`, { code: null }));
      expect(await asJson()).to.deep.equal({ code: null });
    });

    it('refuses code of an endpoint that is not UTF-8', async () => {
      const { id } = await create({ code: CODE });
      const path = `/api/endpoints/${id}/code`;
      for (const type of ['text/x-rust', 'text/x-rust; charset=latin1'])
        expectFailure(
          await api.put(path, Buffer.from('// \u00e9', 'latin1'), rust(type)),
          'invalid_input',
          /^body: it is not UTF-8; send it as UTF-8$/,
        );
      expectFailure(
        await api.put(path, Buffer.from('{"code": "// \u00e9"}', 'latin1'), rust('application/json')),
        'invalid_json',
        /^The body is not valid JSON: it is not UTF-8$/,
      );
      expect((await api.get(path)).body).to.equal(CODE);
      await api.put(path, Buffer.from('\ufeff// \u00e9'), rust('text/x-rust'));
      expect((await api.get(path)).body).to.equal('// \u00e9');
    });

    it('refuses code of an endpoint in other media types, and code that is not valid', async () => {
      const { id } = await create({ code: CODE });
      const path = `/api/endpoints/${id}/code`;
      const put = (body: unknown, type: string) => api.put(path, body, rust(type));
      expectFailure(
        await put(CODE, 'application/xml'),
        'unsupported_media_type',
        /application\/json or text\/x-rust/,
      );
      expectFailure(await put({ cod: '' }, 'application/json'), 'invalid_input', /did you mean "code"/);
      expectFailure(await put({}, 'application/json'), 'invalid_input', /^body\.code: is required/);
      expectFailure(await put('a\u0000', 'text/x-rust'), 'invalid_input', /^body\.code: must not have NUL/);
      expectFailure(
        await put('', 'text/x-rust'),
        'invalid_input',
        /^body: is required, a JSON object or text\/x-rust$/,
      );
      expectFailure(await api.get(`/api/endpoints/${NO_ID}/code`), 'not_found', /./);
      expectFailure(await api.put(`/api/endpoints/${NO_ID}/code`, { code: CODE }), 'not_found', /./);
      expect((await api.get(path)).body).to.equal(CODE);
    });
  });

  it('refuses a member of an endpoint that is almost a known one, and names both', async () => {
    const { id } = await create();
    for (const [wrong, meant] of [
      ['dependancies', 'dependencies'],
      ['dependecies', 'dependencies'],
      ['mehtod', 'method'],
      ['Enabled', 'enabled'],
      ['pth', 'path'],
    ]) {
      const refused = new RegExp(`^body\\.${wrong}: is not known; did you mean "${meant}"\\?$`);
      expectFailure(await api.put(`/api/endpoints/${id}`, { [`${wrong}`]: {} }), 'invalid_input', refused);
      expectFailure(await api.post('/api/endpoints', { [`${wrong}`]: {} }), 'invalid_input', refused);
    }
    for (const other of ['pt', 'notes', 'code_url', 'x'.repeat(100_000)])
      expectData(await api.put(`/api/endpoints/${id}`, { [other]: 1 }));
  });

  it('accepts every member of an endpoint that it returns', async () => {
    const shown = await create({ code: 'fn main() {}', dependencies: { regex: '1' } });
    const changed = expectData<Endpoint>(
      await api.put(`/api/endpoints/${shown.id}`, { ...shown, description: 'edited' }),
    );
    expect({ ...changed, updated_at: shown.updated_at }).to.deep.equal({ ...shown, description: 'edited' });
  });

  it('creates an endpoint with all fields, and shows it as it was created', async () => {
    const given = {
      name: 'Alles ✓',
      path: '/items/{id}',
      method: 'PATCH',
      domain: 'Shop.Example',
      collection_id: collectionId,
      description: 'two\nlines',
      code: 'fn main() { println!("ü"); }',
      dependencies: {
        serde: '1',
        regex: { version: '>=1.2, <2', features: ['std', 'unicode-case'], optional: false },
        'tokio-util': { version: '*', 'default-features': false },
      },
      limits: { memory_mb: 128, timeout_ms: 500 },
      enabled: false,
    };
    const endpoint = await create(given);
    expect(endpoint).to.deep.include({ ...given, domain: 'shop.example', status: 'created' });
    expect(expectData(await api.get(`/api/endpoints/${endpoint.id}`))).to.deep.equal(endpoint);
    const listed = expectData<Endpoint[]>(await api.get('/api/endpoints'));
    expect(listed.find(({ id }) => id === endpoint.id)).to.deep.equal(endpoint);
  });

  it('creates endpoints of every method on the same path', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
      expect((await create({ path: '/every-method', method })).method).to.equal(method);
    }
  });

  it('creates an endpoint on a hostname that has no domain', async () => {
    expect((await create({ domain: 'nobody.example' })).domain).to.equal('nobody.example');
  });

  it('lists endpoints by domain, collection and enabled, alone and together', async () => {
    const one = await create({ domain: 'filter.example', enabled: false });
    const two = await create({ domain: 'filter.example' });
    const three = await create({ domain: 'shop.example', collection_id: collectionId });
    const idsAt = async (query: string) =>
      expectData<Endpoint[]>(await api.get(`/api/endpoints?${query}`)).map(({ id }) => id);
    expect(await idsAt('domain=Filter.example')).to.deep.equal([one.id, two.id]);
    expect(await idsAt('domain=filter.example&enabled=false')).to.deep.equal([one.id]);
    expect(await idsAt('enabled=true&domain=filter.example')).to.deep.equal([two.id]);
    expect(await idsAt(`collection_id=${collectionId}`))
      .to.include(three.id)
      .and.not.include(one.id);
    expect(await idsAt('enabled=false'))
      .to.include(one.id)
      .and.not.include(two.id);
    expect(await idsAt('domain=*')).to.not.include.members([one.id]);
    expect(await idsAt('domain=unknown.example')).to.deep.equal([]);
    expectFailure(
      await api.get('/api/endpoints?enabled=yes'),
      'invalid_input',
      /^query\.enabled: must be true or false, not "yes"/,
    );
    expectFailure(
      await api.get('/api/endpoints?enabled=true&enabled=false'),
      'invalid_input',
      /^query\.enabled/,
    );
    expectFailure(await api.get('/api/endpoints?collection_id=1'), 'invalid_input', /^query\.collection_id/);
    expectFailure(await api.get('/api/endpoints?domain=a/b'), 'invalid_input', /^query\.domain/);
    const misspelt = await api.get('/api/endpoints?enable=true');
    expect(misspelt.body)
      .to.have.nested.property('warnings[0]')
      .that.matches(/^query\.enable:/);
  });

  describe('changes of endpoints', () => {
    it('changes only the given fields of an endpoint', async () => {
      const before = await create({ code: 'fn a() {}', description: 'old', dependencies: { a: '1' } });
      const after = expectData<Endpoint>(await api.put(`/api/endpoints/${before.id}`, { name: 'B' }));
      expect(after).to.deep.equal({ ...before, name: 'B', updated_at: after.updated_at });
      expect(after.updated_at > before.updated_at).to.equal(true);
      expect(expectData(await api.put(`/api/endpoints/${before.id}`, {}))).to.deep.equal(after);
    });

    it('changes every field of an endpoint', async () => {
      const { id } = await create();
      const changes = {
        name: 'N',
        path: '/changed/{x}',
        method: 'DELETE',
        domain: 'shop.example',
        collection_id: collectionId,
        description: 'd',
        code: 'fn b() {}',
        ...{ edition: '2024', entry: 'src/b.rs', files: { 'src/a.rs': '// a' } },
        dependencies: { b: '2' },
        limits: { concurrent_requests: 2 },
        enabled: false,
      };
      const after = expectData<Endpoint>(await api.put(`/api/endpoints/${id}`, changes));
      expect(after).to.deep.include(changes);
      expect(expectData(await api.get(`/api/endpoints/${id}`))).to.deep.equal(after);
      const cleared = ENDPOINT_DEFAULTS;
      const shown = { ...cleared, ...SHOWN_DEFAULTS };
      expect(expectData<Endpoint>(await api.put(`/api/endpoints/${id}`, cleared))).to.deep.include(shown);
    });

    it('changes the route of an endpoint with its path and its collection', async () => {
      const { id } = await create({ path: '/r/{a}', collection_id: collectionId });
      expect((await rowOf(id)).route).to.equal('/shop/r/{a}');
      expectData(await api.put(`/api/endpoints/${id}`, { path: '/shop/s/{a}' }));
      expect((await rowOf(id)).route).to.equal('/shop/s/{a}');
      expectData(await api.put(`/api/endpoints/${id}`, { collection_id: null, path: '/s/{a}' }));
      expect((await rowOf(id)).route).to.equal('/s/{a}');
    });

    it('changes the source key of an endpoint with its code and dependencies, and keeps its status', async () => {
      const { id } = await create({ code: 'a' });
      expect((await rowOf(id)).source_key).to.equal(keyOf('a', null));
      expectData(await api.put(`/api/endpoints/${id}`, { code: 'b', dependencies: { c: '1' } }));
      expect((await rowOf(id)).source_key).to.equal(keyOf('b', { c: '1' }));
      await api.store
        .knex('endpoints')
        .where({ id })
        .update({ status: 'compiled', artifact: 'x', artifact_source_key: keyOf('b', { c: '1' }) });
      expect(expectData(await api.get(`/api/endpoints/${id}`))).to.include({ needs_compile: false });
      expect(expectData(await api.put(`/api/endpoints/${id}`, { code: 'c' }))).to.include({
        status: 'compiled',
        needs_compile: true,
      });
      expect(expectData(await api.put(`/api/endpoints/${id}`, { code: 'b' }))).to.include({
        needs_compile: false,
      });
    });

    it('increments the revision of an endpoint only when a change affects gateways', async () => {
      const { id } = await create();
      const revisionAfter = async (changes: object) => {
        expectData(await api.put(`/api/endpoints/${id}`, changes));
        return (await rowOf(id)).version;
      };
      expect(await revisionAfter({ name: 'B', code: 'c', description: 'd' })).to.equal(1);
      expect(await revisionAfter({ enabled: false })).to.equal(2);
      expect(await revisionAfter({ enabled: false })).to.equal(2);
      expect(await revisionAfter({ path: '/versioned' })).to.equal(3);
      expect(await revisionAfter({ method: 'POST' })).to.equal(4);
      expect(await revisionAfter({ domain: 'shop.example' })).to.equal(5);
      expect(await revisionAfter({ collection_id: collectionId })).to.equal(6);
      expect(await revisionAfter({ limits: { processes: 20, open_files: 50 } })).to.equal(7);
      expect(await revisionAfter({ limits: { open_files: 50, processes: 20 } })).to.equal(7);
      expect(await revisionAfter({ limits: null })).to.equal(8);
    });

    it('ignores members of an endpoint that a request cannot set, and warns of them', async () => {
      const before = await create();
      const response = await api.put(`/api/endpoints/${before.id}`, {
        id: NO_ID,
        status: 'running',
        created_at: '2000-01-01T00:00:00Z',
      });
      expect(expectData(response)).to.deep.equal(before);
      expect(response.body).to.have.property('warnings').with.lengthOf(3);
    });
  });

  it('deletes an endpoint once, and answers 404 afterwards', async () => {
    const { id } = await create();
    expect(expectData(await api.delete(`/api/endpoints/${id}`))).to.deep.equal({ id, deleted: true });
    expectFailure(await api.delete(`/api/endpoints/${id}`), 'not_found');
    expectFailure(await api.get(`/api/endpoints/${id}`), 'not_found');
  });

  it('shows the processes of an endpoint on live gateways', async () => {
    const { id } = await create();
    const { knex } = api.store;
    const addNode = (nodeId: string, ageSeconds: number) =>
      knex('nodes').insert({
        id: nodeId,
        kind: 'gateway',
        hostname: 'h',
        pid: 1,
        heartbeat_at: knex.raw('now() - make_interval(secs => ?)', [ageSeconds]),
      });
    const observe = (nodeId: string, state: string, pid: number | null) =>
      knex('observations').insert({
        ...{ node_id: nodeId, endpoint_id: id, state, version: 1 },
        serving: JSON.stringify(pid === null ? [] : [{ version: pid, pid }]),
      });
    const [dead, failing, first, second] = [1, 2, 3, 4].map((digit) => NO_ID.replace(/0$/, String(digit)));
    if (!dead || !failing || !first || !second) throw new Error('four ids');
    await addNode(dead, 3600);
    await observe(dead, 'running', 11);
    await addNode(failing, 0);
    await observe(failing, 'failed', null);
    expect(expectData(await api.get(`/api/endpoints/${id}`))).to.include({ running: false, pid: null });
    await addNode(first, 0);
    await observe(first, 'running', 33);
    await addNode(second, 0);
    await observe(second, 'running', 44);
    expect(expectData(await api.get(`/api/endpoints/${id}`))).to.include({ running: true, pid: 33 });
    const [listed] = expectData<Endpoint[]>(await api.get('/api/endpoints')).filter((one) => one.id === id);
    expect(listed).to.include({ running: true, pid: 33, running_version: 33 });
    await knex('nodes').delete();
  });

  describe('routes of endpoints', () => {
    it('refuses the route of another endpoint by domain, method and path, parameter names aside', async () => {
      const owner = await create({
        name: 'Owner',
        domain: 'unique.example',
        path: '/u/{id}/x',
        method: 'PUT',
      });
      const taken = new RegExp(
        `PUT /u/\\{id\\}/x on domain "unique.example" is taken by the endpoint "Owner" \\(${owner.id}\\)`,
      );
      for (const path of ['/u/{id}/x', '/u/{other}/x', '/u/{id}/x/', '/%75/{id}/x']) {
        const response = await api.post(
          '/api/endpoints',
          fields({ domain: 'UNIQUE.example', path, method: 'PUT' }),
        );
        expectFailure(response, 'route_taken', taken);
        expect(response.body).to.have.nested.property('details.endpoint_id', owner.id);
      }
      const other = await create({ domain: 'unique.example', path: '/u/{id}/x', method: 'GET' });
      expectFailure(
        await api.put(`/api/endpoints/${other.id}`, { method: 'PUT', name: 'B' }),
        'route_taken',
        taken,
      );
      expect(expectData(await api.get(`/api/endpoints/${other.id}`))).to.deep.equal(other);
      await create({ domain: 'unique.example', path: '/u/{id}/y', method: 'PUT' });
      await create({ domain: 'unique.example', path: '/U/{id}/x', method: 'PUT' });
      await create({ domain: '*', path: '/u/{id}/x', method: 'PUT' });
    });

    it('tells routes apart by the text beside their parameters', async () => {
      const json = { domain: 'mixed.example', path: '/m/{id}.json' };
      await create(json);
      for (const path of ['/m/{other}.json', '/m/{id}%2ejson'])
        expectFailure(
          await api.post('/api/endpoints', fields({ ...json, path })),
          'route_taken',
          /\{id\}\.json/,
        );
      for (const path of ['/m/{id}', '/m/{id}.xml', '/m/{name}.{format}', '/m/{*rest}'])
        await create({ ...json, path });
      expectFailure(
        await api.post('/api/endpoints', fields({ ...json, path: '/m/{*all}' })),
        'route_taken',
        /rest/,
      );
    });

    it('refuses a route that another endpoint has with the base path of its collection', async () => {
      await create({ domain: 'shop.example', path: '/base/x', collection_id: collectionId });
      expectFailure(
        await api.post('/api/endpoints', fields({ domain: 'shop.example', path: '/shop/base/x' })),
        'route_taken',
        /\/shop\/base\/x/,
      );
      await create({ domain: 'shop.example', path: '/base/x' });
    });

    it('creates only one of eight endpoints with the same route at once', async () => {
      const responses = await Promise.all(
        Array.from({ length: 8 }, () => api.post('/api/endpoints', fields({ path: '/race' }))),
      );
      expect(responses.map(({ status }) => status).sort()).to.deep.equal([201, ...Array(7).fill(409)]);
    });
  });

  it('refuses an endpoint on another domain than that of its collection, "*" aside', async () => {
    expectFailure(
      await api.post('/api/endpoints', fields({ domain: 'other.example', collection_id: collectionId })),
      'domain_mismatch',
      /"other\.example".*"shop\.example"/,
    );
    const inside = await create({ domain: '*', collection_id: collectionId });
    expectFailure(
      await api.put(`/api/endpoints/${inside.id}`, { domain: 'other.example' }),
      'domain_mismatch',
    );
    expectData(await api.put(`/api/endpoints/${inside.id}`, { domain: 'shop.example' }));
    const outside = await create({ domain: 'other.example' });
    expectFailure(
      await api.put(`/api/endpoints/${outside.id}`, { collection_id: collectionId }),
      'domain_mismatch',
    );
    expect(expectData(await api.get(`/api/endpoints/${outside.id}`))).to.deep.equal(outside);
  });

  it('refuses a path with a parameter that the base path of the collection has', async () => {
    const tenant = await idOf('/api/collections', { name: 'T', domain_id: domainId, base_path: '/t/{id}' });
    expectFailure(
      await api.post('/api/endpoints', fields({ path: '/x/{id}', collection_id: tenant })),
      'invalid_input',
      /^body\.path: with the base path \/t\/\{id\} of the collection, it has the parameter \{id\} twice/,
    );
    await create({ path: '/t/{id}/x', collection_id: tenant });
  });

  describe('invalid endpoints', () => {
    const wrongFields: readonly [fields: object, message: RegExp, code?: ErrorCode][] = [
      [{ name: undefined }, /^body\.name: is required/],
      [{ name: '' }, /^body\.name: must not be empty/],
      [{ path: undefined }, /^body\.path: is required/],
      [{ path: '' }, /^body\.path: must start with "\/"/],
      [{ path: 'items' }, /^body\.path: must start with "\/"/],
      [{ path: '/a//b' }, /^body\.path: has an empty segment/],
      [{ path: '/a%2f..' }, /^body\.path: must not have "\." or "\.\." between slashes/],
      [{ path: '/{id' }, /^body\.path: has the segment "\{id"/],
      [{ path: '/id}' }, /^body\.path: has the segment "id\}"/],
      [{ path: '/{a}{b}' }, /^body\.path: has the segment "\{a\}\{b\}"; there must be text between/],
      [{ path: '/{*a}/b' }, /^body\.path: has text after \{\*…\}, which matches all the rest of a path/],
      [{ path: '/a{*b}' }, /^body\.path: has the segment "a\{\*b\}"; \{\*b\} fills a whole segment/],
      [{ path: '/{a}.*' }, /^body\.path: must not have wildcards .*\{\*name\} at the end/],
      [{ path: '/{}' }, /^body\.path: has a parameter named ""/],
      [{ path: '/{1a}' }, /^body\.path: has a parameter named "1a"/],
      [{ path: '/{id}/{id}' }, /^body\.path: has the parameter \{id\} twice/],
      [{ path: '/a?b=1' }, /^body\.path: must not have a query/],
      [{ path: '/a#b' }, /^body\.path: must not have a query/],
      [{ path: '/a/../b' }, /^body\.path: must not have "\." or/],
      [{ path: '/a/%2e%2E/b' }, /^body\.path: must not have "\." or/],
      [{ path: '/a b' }, /^body\.path: must not have spaces/],
      [{ path: '/a\u0000b' }, /^body\.path: must not have control/],
      [{ path: '/a%00b' }, /^body\.path: must not have control/],
      [{ path: '/a%zz' }, /^body\.path: has the segment "a%zz"/],
      [{ path: '/a/:id' }, /^body\.path: .*a parameter is written \{id\}/],
      [{ path: '/a/*' }, /^body\.path: must not have wildcards/],
      [{ path: `/${'a'.repeat(2048)}` }, /^body\.path: must have at most 2048/],
      [{ path: `/${'é'.repeat(1000)}` }, /^body\.path: must have at most 2048/],
      [{ path: 7 }, /^body\.path: must be a string/],
      [{ method: undefined }, /^body\.method: is required/],
      [{ method: 'get' }, /^body\.method: must be one of GET, POST, PUT, DELETE, PATCH, not "get"/],
      [{ method: 'HEAD' }, /^body\.method: must be one of/],
      [{ method: 'TRACE' }, /^body\.method: must be one of/],
      [{ method: 1 }, /^body\.method: must be a string/],
      [{ domain: undefined }, /^body\.domain: is required/],
      [{ domain: '' }, /^body\.domain: must be a hostname .* or "\*" for all domains/],
      [{ domain: '*.example.com' }, /^body\.domain: must be a hostname/],
      [{ domain: 'a b' }, /^body\.domain: must be a hostname/],
      [{ domain: 'a.example:8080' }, /^body\.domain: must be a hostname/],
      [{ collection_id: 'x' }, /^body\.collection_id: must be a UUID/],
      [{ collection_id: 7 }, /^body\.collection_id: must be a string or null/],
      [{ collection_id: NO_ID }, /collection 0.* does not exist/, 'not_found'],
      [{ description: 1 }, /^body\.description/],
      [{ code: {} }, /^body\.code: must be a string or null, not an object/],
      [{ code: 'a\u0000' }, /^body\.code: must not have NUL/],
      [{ enabled: 'no' }, /^body\.enabled: must be a boolean/],
      [{ edition: '2018' }, /^body\.edition: must be one of 2021, 2024/],
      [{ edition: 2024 }, /^body\.edition: must be a string or null/],
      [{ dependencies: [] }, /^body\.dependencies: must be an object or null/, 'invalid_dependency'],
      [{ dependencies: 'serde' }, /^body\.dependencies: must be an object/, 'invalid_dependency'],
      [
        { dependencies: { serde: 1 } },
        /^body\.dependencies\.serde: must be a string or an object/,
        'invalid_dependency',
      ],
      [
        { dependencies: { 'a b': '1' } },
        /^body\.dependencies\.a b: is not a crate name/,
        'invalid_dependency',
      ],
      [{ dependencies: { '': '1' } }, /is not a crate name/, 'invalid_dependency'],
      [{ dependencies: { '../x': '1' } }, /is not a crate name/, 'invalid_dependency'],
      [{ dependencies: { std: '1' } }, /\.std: must not be listed/, 'invalid_dependency'],
      [
        { dependencies: { 'rust-edge-gateway-sdk': '1' } },
        /\.rust-edge-gateway-sdk: must not be listed/,
        'invalid_dependency',
      ],
      [
        { dependencies: { serde: 'latest' } },
        /\.serde: must be a Cargo version.*"latest"/,
        'invalid_dependency',
      ],
      [{ dependencies: { serde: '' } }, /\.serde: must be a Cargo version/, 'invalid_dependency'],
      [{ dependencies: { serde: '1"\n[x]' } }, /\.serde: must be a Cargo version/, 'invalid_dependency'],
      [{ dependencies: { serde: {} } }, /\.serde\.version: is required/, 'invalid_dependency'],
      [
        { dependencies: { serde: { version: 1 } } },
        /\.serde\.version: must be a string/,
        'invalid_dependency',
      ],
      [
        { dependencies: { serde: { version: 'newest' } } },
        /\.serde\.version: must be a Cargo/,
        'invalid_dependency',
      ],
      [{ dependencies: { a: { path: '/etc' } } }, /\.a\.path: must be relative/, 'invalid_dependency'],
      [{ dependencies: { serde: { path: 'a' } } }, /\.serde\.path: is not acc/, 'invalid_dependency'],
      [{ dependencies: { a: { path: 'a' } } }, /\.a\.path: there is no a\/Cargo/, 'invalid_dependency'],
      [{ dependencies: { a: { path: '.' } } }, /\.a\.path: there is no src\/lib/, 'invalid_dependency'],
      [{ dependencies: { a: { git: 'x' } } }, /\.a\.git: must be the URL/, 'invalid_dependency'],
      [
        { dependencies: { a: { git: 'https://git.example/x' } } },
        /\.a\.git: is not of a host that the operator allows: crates may be from crates\.io only/,
        'invalid_dependency',
      ],
      [
        { dependencies: { serde: { version: '1', registry: 'x' } } },
        /\.serde\.registry: /,
        'invalid_dependency',
      ],
      [
        { dependencies: { serde: { version: '1', package: 'x' } } },
        /\.serde\.package: /,
        'invalid_dependency',
      ],
      [
        { dependencies: { serde: { version: '1', features: 'derive' } } },
        /\.serde\.features: must be an array/,
        'invalid_dependency',
      ],
      [
        { dependencies: { serde: { version: '1', features: ['a"b'] } } },
        /\.serde\.features\.0: must be the name of a crate feature/,
        'invalid_dependency',
      ],
      [
        { dependencies: { serde: { version: '1', optional: 1 } } },
        /\.serde\.optional: must be a b/,
        'invalid_dependency',
      ],
      [{ limits: [] }, /^body\.limits: must be an object or null/],
      [{ limits: { memory: 100 } }, /\.memory: is not accepted; possible are memory_mb, processes/],
      [{ limits: { memory_mb: 15 } }, /\.memory_mb: must be at least 16/],
      [{ limits: { memory_mb: 100.5 } }, /\.memory_mb: must be an integer/],
      [{ limits: { memory_mb: '100' } }, /\.memory_mb: must be an integer, not a string/],
      [{ limits: { processes: null } }, /\.processes: must be an integer, not null/],
      [{ limits: { memory_mb: 1025 } }, /\.memory_mb: must be at most 1024.*HANDLER_MEMORY_MB/],
      [{ limits: { open_files: 9_999 } }, /\.open_files: must be at most 1024.*HANDLER_OPEN_FILES/],
      [{ limits: { processes: 513 } }, /\.processes: must be at most 512.*HANDLER_PROCESSES/],
      [{ limits: { timeout_ms: 30_001 } }, /\.timeout_ms: must be at most 30000.*REQUEST_TIMEOUT_MS/],
      [{ limits: { concurrent_requests: 4097 } }, /\.concurrent_requests: must be at most 4096/],
      [{ limits: { cpu_percent: 0 } }, /\.cpu_percent: must be at least 1/],
    ];

    for (const [wrong, message, code = 'invalid_input'] of wrongFields) {
      const [value]: unknown[] = Object.values(wrong);
      const title = `refuses an endpoint whose ${Object.keys(wrong).join()} is ${JSON.stringify(value)}`;
      it(title.slice(0, 100), async () => {
        const existing = await create();
        const before = await api.get('/api/endpoints');
        expectFailure(await api.post('/api/endpoints', fields(wrong)), code, message);
        if (!Object.values(wrong).includes(undefined)) {
          expectFailure(await api.put(`/api/endpoints/${existing.id}`, wrong), code, message);
        }
        expect((await api.get('/api/endpoints')).body).to.deep.equal(before.body);
      });
    }

    it('refuses invalid and unknown ids of endpoints', async () => {
      expectFailure(await api.get('/api/endpoints/x'), 'invalid_input', /^path\.id/);
      expectFailure(await api.put('/api/endpoints/x', {}), 'invalid_input', /^path\.id/);
      expectFailure(await api.delete('/api/endpoints/x'), 'invalid_input', /^path\.id/);
      expectFailure(await api.get(`/api/endpoints/${NO_ID}`), 'not_found', /endpoint .* does not exist/);
      expectFailure(await api.put(`/api/endpoints/${NO_ID}`, { name: 'B' }), 'not_found');
      expectFailure(await api.delete(`/api/endpoints/${NO_ID}`), 'not_found');
    });
  });
});
