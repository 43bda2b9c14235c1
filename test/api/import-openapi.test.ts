import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { EndpointView } from '../../src/api/endpoints/endpoints.schema.js';
import type { OpenApiImported } from '../../src/api/imports/imports.schema.js';
import type { ErrorCode } from '../../src/errors.js';
import { startApi, type TestApi } from '../support/api.js';
import type { HttpResponse } from '../support/client.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID, UUID } from '../support/expect.js';
import { uniqueName } from '../support/names.js';

type Imported = Static<typeof OpenApiImported>;
type Endpoint = Static<typeof EndpointView>;

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly parameters?: readonly object[];
}

describe('importing OpenAPI documents', () => {
  let api: TestApi;
  let host: string;
  let domainId: string;
  let count = 0;

  before(async () => {
    api = await startApi();
  });
  after(() => api.close());
  beforeEach(async () => {
    host = `d${++count}.example`;
    domainId = await created('/api/domains', { name: 'D', host });
  });

  async function created(path: string, body: object): Promise<string> {
    return expectData<{ id: string }>(await api.post(path, body), 201).id;
  }

  const post = (body: object) => api.post('/api/import/openapi', body);
  const warningsOf = ({ body }: HttpResponse) => (body as { warnings?: string[] }).warnings ?? [];
  const importing = async (spec: string, more: object = {}) =>
    expectData<Imported>(await post({ spec, domain: host, ...more }));
  const endpoints = async () =>
    expectData<Endpoint[]>(await api.get(`/api/endpoints?domain=${host}`)).sort((left, right) =>
      left.name.localeCompare(right.name),
    );
  const rows = async () => {
    const tables = ['collections', 'endpoints', 'imports', 'import_handlers'];
    return Promise.all(
      tables.map(async (table) => Number((await api.store.knex(table).count())[0]?.['count'])),
    );
  };
  const uploads = async () => {
    const folder = join(api.config.DATA_DIR, 'uploads');
    const folders = await readdir(folder).catch(() => []);
    return (await Promise.all(folders.map((name) => readdir(join(folder, name))))).flat();
  };

  function spec(paths: Record<string, Record<string, Operation>>, more: object = {}): string {
    const withResponses = Object.fromEntries(
      Object.entries(paths).map(([path, item]) => [
        path,
        Object.fromEntries(
          Object.entries(item).map(([method, operation]) => [
            method,
            {
              ...operation,
              parameters: [
                ...(operation.parameters ?? []),
                ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
                  name,
                  in: 'path',
                  required: true,
                  schema: { type: 'string' },
                })),
              ],
              responses: { 200: { description: 'ok' } },
            },
          ]),
        ),
      ]),
    );
    return JSON.stringify({
      openapi: '3.0.3',
      info: { title: 'Shop', version: '1', description: 'What it sells' },
      servers: [{ url: 'https://shop.example/v1' }],
      paths: withResponses,
      ...more,
    });
  }

  const SHOP = {
    '/items': { get: { operationId: 'listItems', summary: 'All' }, post: { operationId: 'addItem' } },
    '/items/{id}': { get: {} },
  };

  it('an import creates endpoints and a collection with the title of the document', async () => {
    const answer = await post({
      spec: spec(SHOP),
      domain: host,
      domain_id: domainId,
      create_collection: true,
    });
    const imported = expectData<Imported>(answer);
    const { collection } = imported;
    expect(collection?.id).to.match(UUID);
    expect(collection).to.include({ name: 'Shop', base_path: '/v1' });
    expect(imported).to.include({ endpoints_created: 3, endpoints_updated: 0 });
    expect(imported.endpoints.map(({ name, path, method }) => ({ name, path, method }))).to.deep.equal([
      { name: 'listItems', path: '/items', method: 'GET' },
      { name: 'addItem', path: '/items', method: 'POST' },
      { name: 'GET /items/{id}', path: '/items/{id}', method: 'GET' },
    ]);
    expect(warningsOf(answer)).to.deep.equal([]);
    const stored = await endpoints();
    expect(stored.map(({ id }) => id)).to.have.members(imported.endpoints.map(({ id }) => id));
    for (const endpoint of stored) {
      expect(endpoint).to.include({
        domain: host,
        collection_id: collection?.id,
        status: 'created',
        enabled: true,
      });
      expect(endpoint.code).to.include('501');
    }
    expect(stored.map(({ description }) => description)).to.deep.equal([null, null, 'All']);
    expect(expectData(await api.get(`/api/collections/${collection?.id}`))).to.include({
      domain_id: domainId,
      description: 'What it sells',
      base_path: '/v1',
      enabled: true,
    });
  });

  it('imports a document in YAML', async () => {
    const yaml = `
openapi: 3.1.0
info: { title: Pets, version: "1" }
paths:
  /pets:
    get: { operationId: listPets, responses: { "200": { description: ok } } }
`;
    expect((await importing(yaml)).endpoints.map(({ name }) => name)).to.deep.equal(['listPets']);
  });

  it('an import without create_collection makes none, and puts the base path before the paths', async () => {
    const imported = await importing(spec(SHOP));
    expect(imported).to.include({ collection: null, endpoints_created: 3 });
    expect((await endpoints()).map(({ path }) => path)).to.deep.equal([
      '/v1/items',
      '/v1/items/{id}',
      '/v1/items',
    ]);
  });

  it('imports endpoints for all domains', async () => {
    const unique = { [`/all-${randomUUID()}`]: { get: { operationId: 'everywhere' } } };
    const imported = await importing(spec(unique), { domain: '*' });
    expect(expectData(await api.get(`/api/endpoints/${imported.endpoints[0]?.id}`))).to.include({
      domain: '*',
    });
  });

  describe('imports into an existing collection', () => {
    it('an import puts the base path of the document before the paths when the collection has none', async () => {
      const collection_id = await created('/api/collections', { domain_id: domainId, name: 'Mine' });
      const imported = await importing(spec(SHOP), { collection_id });
      expect(imported.collection).to.deep.equal({ id: collection_id, name: 'Mine', base_path: null });
      expect(imported.endpoints[0]?.path).to.equal('/v1/items');
    });

    it('an import keeps the base path of the collection, with a warning', async () => {
      const collection_id = await created('/api/collections', {
        domain_id: domainId,
        name: 'Mine',
        base_path: '/own',
      });
      const answer = await post({ spec: spec(SHOP), domain: host, domain_id: domainId, collection_id });
      expect(expectData<Imported>(answer).endpoints[0]?.path).to.equal('/items');
      expect(warningsOf(answer).join()).to.match(
        /"Mine" keeps its base path \/own.*\/v1.*PUT \/api\/collections/,
      );
      expect(
        (await api.store.knex('endpoints').where({ collection_id }).pluck('route')).sort(),
      ).to.deep.equal(['/own/items', '/own/items', '/own/items/{id}']);
    });

    it('an import reuses the collection with the title of the document', async () => {
      const domain_id = domainId;
      const first = await importing(spec(SHOP), { domain_id, create_collection: true });
      const again = await importing(spec({ '/more': { get: {} } }), { domain_id, create_collection: true });
      expect(again.collection).to.deep.equal(first.collection);
      expect(again).to.include({ endpoints_created: 1, endpoints_updated: 0 });
    });

    it('an imported path that begins like the base path has the route that the document says', async () => {
      const { endpoints: imported } = await importing(spec({ '/v1/x': { get: {} } }), {
        domain_id: domainId,
        create_collection: true,
      });
      const stored = await api.store.knex('endpoints').where({ id: imported[0]?.id }).first('route');
      expect(stored).to.deep.equal({ route: '/v1/v1/x' });
    });
  });

  describe('imports of the same document again', () => {
    it('an import updates changed endpoints, and leaves unchanged ones as they are', async () => {
      const first = await importing(spec(SHOP));
      const before = await endpoints();
      const again = await importing(spec(SHOP));
      expect(again).to.include({ endpoints_created: 0, endpoints_updated: 3 });
      expect(again.endpoints).to.deep.equal(first.endpoints);
      expect(await endpoints()).to.deep.equal(before);

      const renamed = spec({
        '/items': { get: { operationId: 'everything', summary: 'New' }, post: { operationId: 'addItem' } },
        '/items/{number}': { get: {} },
      });
      const third = await importing(renamed);
      expect(third.endpoints.map(({ id }) => id)).to.deep.equal(first.endpoints.map(({ id }) => id));
      const after = await endpoints();
      const byId = new Map(before.map((endpoint) => [endpoint.id, endpoint]));
      for (const endpoint of after) {
        const isChanged = endpoint.name !== 'addItem';
        expect(endpoint.updated_at !== byId.get(endpoint.id)?.updated_at, endpoint.name).to.equal(isChanged);
      }
      expect(after.map(({ name, path, description }) => [name, path, description])).to.deep.equal([
        ['addItem', '/v1/items', null],
        ['everything', '/v1/items', 'New'],
        ['GET /items/{number}', '/v1/items/{number}', null],
      ]);
      const versions = await api.store.knex('endpoints').where({ domain: host }).pluck('version');
      // Only the parameter of one route has another name now.
      expect(versions.sort()).to.deep.equal([1, 1, 2]);
    });

    it('an import replaces code that it has generated, and keeps code that a user wrote', async () => {
      const { endpoints: imported } = await importing(spec(SHOP));
      const [list, add, show] = imported.map(({ id }) => id);
      const written = 'use rust_edge_gateway_sdk::prelude::*; // mine';
      await api.put(`/api/endpoints/${list}`, { code: written });
      await api.put(`/api/endpoints/${show}`, { code: null });
      const parameter = { name: 'page', in: 'query', required: true, schema: { type: 'integer' } };
      const changed = {
        '/items': {
          get: { operationId: 'listItems', parameters: [parameter] },
          post: { operationId: 'addItem', parameters: [parameter] },
        },
        '/items/{id}': { get: { parameters: [parameter] } },
      };
      await importing(spec(changed));
      const codeOf = async (id: string | undefined) =>
        expectData<Endpoint>(await api.get(`/api/endpoints/${id}`)).code;
      expect(await codeOf(list)).to.equal(written);
      expect(await codeOf(add)).to.include('page');
      expect(await codeOf(show)).to.include('page');
      await importing(spec(SHOP));
      expect(await codeOf(list)).to.equal(written);
      expect(await codeOf(add)).not.to.include('page');
    });

    it('an import answers with the first 50 warnings of a kind, and shows all of them later', async () => {
      const many = Object.fromEntries(
        Array.from({ length: 60 }, (_, at) => [`/p${at}`, { get: {}, head: {} }]),
      );
      const answer = await post({ spec: spec(many), domain: host });
      const { import_id } = expectData<{ import_id: string }>(answer);
      expect(warningsOf(answer)).to.have.length(51);
      expect(warningsOf(answer)[50]).to.equal('… and 10 more operations that are left out');
      const imported = expectData<{ warnings: string[] }>(await api.get(`/api/imports/${import_id}`));
      expect(imported.warnings).to.have.length(60);
      expect(imported.warnings.at(-1)).to.match(/^HEAD \/p59: left out/);
    });

    it('an import leaves out an operation that matches the same requests as an earlier one', async () => {
      const paths = { '/x/{a}': { get: {} }, '/x/{b}': { get: {}, post: {} } };
      const answer = await post({ spec: spec(paths), domain: host });
      const { endpoints: made } = expectData<Imported>(answer);
      expect(made.map(({ name }) => name)).to.deep.equal(['GET /x/{a}', 'POST /x/{b}']);
      expect(warningsOf(answer)).to.deep.equal([
        'Left out, because an earlier operation matches the same requests: GET /x/{b} (like GET /x/{a})',
      ]);
      const again = expectData<Imported>(await post({ spec: spec(paths), domain: host }));
      expect(again.endpoints_created).to.equal(0);
    });

    it('an import names the endpoints that the document has lost, at most the first 50', async () => {
      await importing(spec(SHOP));
      const some = await post({ spec: spec({ '/items': SHOP['/items'] }), domain: host });
      expect(warningsOf(some)).to.have.length(1);
      expect(warningsOf(some)[0]).to.match(
        /"GET \/items\/\{id\}" \(GET \/v1\/items\/\{id\}, .*no longer in the document/,
      );
      const many = Object.fromEntries(
        Array.from({ length: 60 }, (_, number) => [`/p${number}`, { get: {} }]),
      );
      await importing(spec(many));
      const lost = await post({ spec: spec({ '/items': SHOP['/items'] }), domain: host });
      expect(warningsOf(lost)).to.have.length(51);
      expect(warningsOf(lost)[50]).to.equal('… and 11 more endpoints are no longer in the document');
      const other = await post({
        spec: spec({ '/o': { get: {} } }, { info: { title: 'Other', version: '1' } }),
        domain: host,
      });
      expect(warningsOf(other)).to.deep.equal([]);
    });

    it('completes six concurrent imports of the same document with one collection', async () => {
      const body = { spec: spec(SHOP), domain: host, domain_id: domainId, create_collection: true };
      const answers = await Promise.all(Array.from({ length: 6 }, () => post(body)));
      const imported = answers.map((answer) => expectData<Imported>(answer));
      expect(new Set(imported.map(({ collection }) => collection?.id)).size).to.equal(1);
      expect(imported.reduce((sum, { endpoints_created }) => sum + endpoints_created, 0)).to.equal(3);
      expect(await endpoints()).to.have.length(3);
    });
  });

  describe('documents that are refused', () => {
    const refused: Record<string, [() => object, ErrorCode, RegExp]> = {
      'without a document': [() => ({ spec: undefined }), 'invalid_input', /body\.spec: is required/],
      'with a document that is not text': [() => ({ spec: {} }), 'invalid_input', /body\.spec: must be/],
      'without a domain': [() => ({ domain: undefined }), 'invalid_input', /body\.domain: is required/],
      'with a domain that is not a hostname': [
        () => ({ domain: 'a b' }),
        'invalid_input',
        /body\.domain: must be a hostname/,
      ],
      'with a flag that is not a boolean': [
        () => ({ create_collection: 'yes' }),
        'invalid_input',
        /body\.create_collection: must be a boolean/,
      ],
      'with a domain that does not exist': [() => ({ domain_id: NO_ID }), 'not_found', /domain 0000/],
      'with a domain of another host': [
        () => ({ domain_id: domainId, domain: 'other.example' }),
        'domain_mismatch',
        /"other\.example".*"d\d+\.example"/,
      ],
      'whose collection is to be created without a domain_id': [
        () => ({ create_collection: true }),
        'invalid_input',
        /body\.domain_id: is required with create_collection/,
      ],
      'whose collection is both given and to be created': [
        () => ({ create_collection: true, domain_id: domainId, collection_id: NO_ID }),
        'invalid_input',
        /body\.collection_id: must not be given with create_collection/,
      ],
      'with a collection that does not exist': [
        () => ({ collection_id: NO_ID }),
        'not_found',
        /collection 0000/,
      ],
      'of Swagger 2.0': [
        () => ({ spec: JSON.stringify({ swagger: '2.0', info: { title: 'Old', version: '1' }, paths: {} }) }),
        'invalid_spec',
        /Swagger 2\.0/,
      ],
    };
    for (const [what, [body, code, message]] of Object.entries(refused)) {
      it(`refuses an import ${what}, and stores nothing`, async () => {
        const before = await rows();
        expectFailure(await post({ spec: spec(SHOP), domain: host, ...body() }), code, message);
        expect(await rows()).to.deep.equal(before);
        expect(await uploads()).to.deep.equal([]);
      });
    }

    it('refuses an import of a path with a parameter that the base path of the collection has', async () => {
      const base_path = '/{id}';
      const collection_id = await created('/api/collections', {
        domain_id: domainId,
        name: uniqueName('C'),
        base_path,
      });
      const before = await rows();
      const refusal = await post({ spec: spec(SHOP), domain: host, collection_id });
      expectFailure(
        refusal,
        'invalid_spec',
        /GET \/items\/\{id\}: with the base path \/\{id\}.*\{id\} twice/,
      );
      expect(await rows()).to.deep.equal(before);
    });

    it('refuses an import into a collection of another domain', async () => {
      const other = await created('/api/domains', { name: 'O', host: `o${count}.example` });
      const collection_id = await created('/api/collections', { domain_id: other, name: 'Theirs' });
      const before = await rows();
      const body = { spec: spec(SHOP), domain: host, collection_id };
      expectFailure(await post(body), 'domain_mismatch', /"Theirs".*belongs to "o\d+\.example"/);
      expectFailure(
        await post({ ...body, domain_id: domainId }),
        'invalid_input',
        /"Theirs".*not to the domain_id/,
      );
      expect(await rows()).to.deep.equal(before);
    });

    it('refuses an import of a route that an endpoint elsewhere has, in a collection or in none', async () => {
      const taken = await importing(spec({ '/items/{any}': { get: {} } }));
      const before = await rows();
      const intoOne = { spec: spec(SHOP), domain: host, domain_id: domainId, create_collection: true };
      const refusal = await post(intoOne);
      expectFailure(
        refusal,
        'route_taken',
        /GET \/v1\/items\/\{any\} .*"GET \/items\/\{any\}".*in no collection/,
      );
      expect(refusal.body).to.deep.include({ details: { endpoint_id: taken.endpoints[0]?.id } });
      expect(await rows()).to.deep.equal(before);

      await api.delete(`/api/endpoints/${taken.endpoints[0]?.id}`);
      const { collection } = await importing(spec(SHOP), intoOne);
      const filled = await rows();
      expectFailure(
        await post({ spec: spec(SHOP), domain: host }),
        'route_taken',
        new RegExp(`${collection?.id}`),
      );
      expect(await rows()).to.deep.equal(filled);
    });

    it('refuses an import whose body is not JSON, or cannot be decompressed', async () => {
      const before = await rows();
      const send = (body: Buffer | string, headers: Record<string, string>) =>
        api.send('POST', '/api/import/openapi', { body, headers });
      expectFailure(await send('{', {}), 'invalid_json');
      expectFailure(await send('x', { 'content-type': 'text/yaml' }), 'unsupported_media_type');
      expectFailure(await send('', {}), 'invalid_input', /body: is required/);
      expectFailure(
        await send('{}', { 'content-encoding': 'gzip' }),
        'invalid_input',
        /cannot be decompressed as gzip/,
      );
      const packed = gzipSync(JSON.stringify({ spec: spec(SHOP), domain: host }));
      expectFailure(
        await send(packed.subarray(0, -20), { 'content-encoding': 'gzip' }),
        'invalid_input',
        /cannot be decompressed/,
      );
      expectFailure(await send('{}', { 'content-encoding': 'zstd' }), 'unsupported_media_type', /zstd/);
      expect(await rows()).to.deep.equal(before);
      expect(await uploads()).to.deep.equal([]);
    });
  });

  it('accepts a compressed body of an import, and warns of unknown members', async () => {
    const body = JSON.stringify({ spec: spec(SHOP), domain: host, collection_id: null, dry_run: true });
    const packed: [string, Buffer][] = [
      ['gzip', gzipSync(body)],
      ['br', brotliCompressSync(body)],
    ];
    for (const [encoding, bytes] of packed) {
      const answer = await api.send('POST', '/api/import/openapi', {
        body: bytes,
        headers: { 'content-encoding': encoding },
      });
      expect(expectData<Imported>(answer).endpoints).to.have.length(3);
      expect(warningsOf(answer)).to.deep.equal(['body.dry_run: is not a known field and was ignored']);
    }
  });

  it('rolls an import back when a late statement fails', async () => {
    const before = await rows();
    // Fails for the last of many rows, after others are written.
    await api.store.knex.raw(
      `ALTER TABLE endpoints ADD CONSTRAINT for_the_test CHECK (name <> 'last-of-${count}') NOT VALID`,
    );
    api.logged.expectErrors(/for_the_test/);
    try {
      const many: Record<string, Record<string, Operation>> = Object.fromEntries(
        Array.from({ length: 250 }, (_, number) => [`/p${number}`, { get: { operationId: `p${number}` } }]),
      );
      many['/z'] = { get: { operationId: `last-of-${count}` } };
      const body = { spec: spec(many), domain: host, domain_id: domainId, create_collection: true };
      expectFailure(await post(body), 'internal_error');
      expect(await rows()).to.deep.equal(before);
    } finally {
      await api.store.knex.raw('ALTER TABLE endpoints DROP CONSTRAINT for_the_test');
    }
  });

  it('an import names the endpoint that got one of its routes meanwhile', async () => {
    // Uncommitted, and therefore not to be seen by the import, until its own row runs into it.
    const transaction = await api.store.knex.transaction();
    const id = randomUUID();
    const route = '/v1/items';
    const key = { id, name: 'Quick', path: route, method: 'GET', domain: host, route, route_key: route };
    await transaction('endpoints').insert({ ...key, source_key: 'x' });
    const before = await rows();
    const answer = post({ spec: spec(SHOP), domain: host });
    await waitingForLock();
    await transaction.commit();
    expectFailure(await answer, 'route_taken', /taken by the endpoint "Quick"/);
    expect(await rows()).to.deep.equal(before.map((number, table) => (table === 1 ? number + 1 : number)));
  });

  async function waitingForLock(): Promise<void> {
    await eventually(async () => {
      const { rows: waiting } = await api.store.knex.raw('SELECT 1 FROM pg_locks WHERE NOT granted');
      expect(waiting).not.to.deep.equal([]);
    });
  }

  it('an import sets the policy validate when the query says so, and keeps all others', async () => {
    const spec = (maximum: number, more: object = {}) =>
      JSON.stringify({
        openapi: '3.0.3',
        info: { title: 'V', version: '1' },
        paths: {
          '/v': {
            get: {
              operationId: 'v',
              parameters: [{ name: 'limit', in: 'query', schema: { type: 'integer', maximum } }],
              responses: { default: { description: 'Any' } },
            },
          },
          ...more,
        },
      });
    const send = (maximum: number, query: string) =>
      api.post(`/api/import/openapi${query}`, { spec: spec(maximum), domain: host });
    const policies = async () => {
      const [{ id } = { id: NO_ID }] = await endpoints();
      return expectData<Endpoint>(await api.get(`/api/endpoints/${id}`)).policies;
    };
    const validate = (mode: string, maximum: number) => ({
      mode,
      parameters: [{ in: 'query', name: 'limit', schema: { type: 'integer', maximum } }],
    });
    expectData(await send(1, ''));
    expect(await policies()).to.equal(null);
    expect(expectData<Imported>(await send(1, '?validate=report')).endpoints_updated).to.equal(1);
    expect(await policies()).to.deep.equal({ validate: validate('report', 1) });
    const [{ id } = { id: NO_ID }] = await endpoints();
    expectData(
      await api.put(`/api/endpoints/${id}`, { policies: { body_limit: 7, validate: validate('off', 3) } }),
    );
    // Off, or not asked for: endpoints keep what they have.
    expectData(await send(2, '?validate=off'));
    expectData(await send(2, ''));
    expect(await policies()).to.deep.equal({ body_limit: 7, validate: validate('off', 3) });
    expectData(await send(2, '?validate=enforce'));
    expect(await policies()).to.deep.equal({ body_limit: 7, validate: validate('enforce', 2) });
    const plan = expectData<{ endpoints: { change: string }[] }>(
      await send(2, '?validate=enforce&dry_run=true'),
    );
    expect(plan.endpoints.map(({ change }) => change)).to.deep.equal(['unchanged']);
    expectFailure(await send(2, '?validate=yes'), 'invalid_input', /query\.validate/);
  });
});
