/** Endpoints as OpenAPI documents, which change nothing when they are imported again. */
import { expect } from 'chai';
import type { ValidatePolicy } from '../../src/model/policies/validate.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { type Exported, endpointsOf, expectNoChange, exportedDocuments } from '../support/openapi-export.js';
import { zipOf } from '../support/zip.js';

const CODE = 'fn main() {}\n';
const RESPONSES = { 200: { description: 'ok', content: { 'application/json': { example: { $ref: 'x' } } } } };
const PETS = {
  openapi: '3.1.0',
  info: { title: 'Pets', version: '7', description: 'All pets', license: { name: 'MIT' } },
  servers: [{ url: 'https://pets.example/v1' }, { url: '/other' }],
  tags: [{ name: 'pets' }],
  paths: {
    '/pets': {
      summary: 'of the path',
      parameters: [{ name: 'limit', in: 'query', schema: { type: 'integer' } }],
      get: { operationId: 'listPets', summary: 'Lists', tags: ['pets'], responses: RESPONSES },
      post: {
        operationId: 'addPet',
        description: 'Adds',
        security: [{ key: [] }],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } } },
        responses: RESPONSES,
        'x-own': { any: 'thing' },
      },
      head: { responses: RESPONSES },
    },
    '/pets/{id}': { $ref: '#/components/pathItems/Pet' },
  },
  components: {
    schemas: { Pet: { type: 'object', properties: { mother: { $ref: '#/components/schemas/Pet' } } } },
    securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'x-key' } },
    pathItems: {
      Pet: {
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
        get: { operationId: 'getPet', responses: RESPONSES },
        delete: { responses: RESPONSES },
      },
    },
  },
};
const VALIDATE: ValidatePolicy = {
  mode: 'enforce',
  parameters: [
    { in: 'query', name: 'tags', schema: { type: 'array', items: { type: 'string' } }, explode: false },
    { in: 'header', name: 'X-Filter', required: true, content: { 'application/json': { schema: {} } } },
    { in: 'path', name: 'id', schema: { type: 'integer', minimum: 1 } },
  ],
  body: {
    required: true,
    content: {
      'application/json': { schema: { $ref: '#/components/schemas/Pet' } },
      'text/plain': { schema: { type: 'string', maxLength: 10 } },
    },
  },
  components: {
    schemas: {
      Name: { type: ['string', 'null'] },
      Pet: { type: 'object', properties: { name: { $ref: '#/components/schemas/Name' } } },
    },
  },
};

describe('an OpenAPI export', () => {
  let api: TestApi;
  let count = 0;
  let host: string;
  let domain_id: string;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());
  beforeEach(async () => {
    host = `openapi${++count}.example`;
    domain_id = await create('/api/domains', { name: 'Animals', host, description: 'of all kinds' });
  });

  const create = async (path: string, body: object) =>
    expectData<{ id: string }>(await api.post(path, body), 201).id;
  const endpoint = (name: string, members: object = {}) =>
    create('/api/endpoints', { name, path: `/${name}`, method: 'GET', domain: host, code: CODE, ...members });
  const importPets = async (query = '', members: object = {}) =>
    expectData(
      await api.post(`/api/import/openapi${query}`, {
        ...{ spec: JSON.stringify(PETS), domain: host, domain_id, create_collection: true },
        ...members,
      }),
    );
  const idOf = async (name: string) =>
    (await endpointsOf(api, host)).find((one) => one.name === name)?.id ?? '';
  /** The only document, of which the import changes nothing. */
  const exportedOnly = async (): Promise<Exported & { readonly warnings: readonly string[] }> => {
    const { documents, warnings } = await exportedDocuments(api, host);
    expect(documents, warnings.join('\n')).to.have.lengthOf(1);
    const [one] = documents as [Exported];
    await expectNoChange(api, host, one);
    return { ...one, warnings };
  };

  it('an OpenAPI export is the imported document, with all its details', async () => {
    for (const query of ['', '?validate=report']) {
      await importPets(query);
      const { document, collection, validate, warnings } = await exportedOnly();
      expect(document).to.deep.equal(PETS);
      expect(Object.keys(document.paths)).to.deep.equal(Object.keys(PETS.paths));
      expect(collection?.name).to.equal('Pets');
      expect(validate).to.equal(query === '' ? 'off' : 'report');
      expect(warnings).to.deep.equal([]);
    }
  });

  it('an OpenAPI export has what has changed since the import', async () => {
    await importPets('?validate=enforce');
    const change = async (name: string, members: object) =>
      expectData(await api.put(`/api/endpoints/${await idOf(name)}`, { code: CODE, ...members }));
    await change('listPets', { name: 'pets', description: 'Shows all' });
    await change('addPet', { path: '/new/pets' });
    await change('getPet', { enabled: false });
    const collection_id = (await exportedDocuments(api, host)).documents[0]?.collection?.id;
    await endpoint('more', { collection_id, path: '/pets/{id}/more', description: 'by hand' });
    await endpoint('put', { collection_id, path: '/pets', method: 'PUT' });
    const { document, warnings } = await exportedOnly();
    const { paths } = document;
    const [list, added] = [PETS.paths['/pets'].get, PETS.paths['/pets'].post];
    const { summary: _, ...listed } = list;
    const parameters = PETS.paths['/pets'].parameters;
    expect(paths).to.deep.equal({
      '/pets': {
        summary: 'of the path',
        get: { ...listed, operationId: 'pets', description: 'Shows all', parameters },
        put: { operationId: 'put', responses: paths['/pets']?.['put']?.['responses' as never] },
        head: { responses: RESPONSES, parameters },
      },
      '/pets/{id}': {
        parameters: PETS.components.pathItems.Pet.parameters,
        delete: PETS.components.pathItems.Pet.delete,
      },
      '/new/pets': { post: { ...added, parameters } },
      '/pets/{id}/more': {
        get: {
          operationId: 'more',
          description: 'by hand',
          parameters: [{ name: 'id', in: 'path', required: true, schema: {} }],
          responses: paths['/pets']?.['put']?.['responses' as never],
        },
      },
    });
    expect(warnings).to.deep.equal(['GET /v1/pets/{id} is left out: it is disabled']);
  });

  it('an OpenAPI export describes endpoints without a document by what is set for them', async () => {
    const tree = { type: 'object', properties: { child: { $ref: '#/components/schemas/Name' } } };
    const other: ValidatePolicy = {
      mode: 'enforce',
      body: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Name' } } } },
      components: { schemas: { Name: tree } },
    };
    await endpoint('a', { path: '/a/{id}', method: 'POST', policies: { validate: VALIDATE } });
    await endpoint('b', { path: '/b/{id}.json', method: 'PUT', policies: { validate: VALIDATE } });
    await endpoint('c', { method: 'PATCH', policies: { validate: other } });
    await endpoint('GET /d/{x}', { path: '/d/{x}', description: 'D', limits: { memory_mb: 64 } });
    const { document, validate, warnings, collection } = await exportedOnly();
    expect({ validate, warnings, collection }).to.deep.equal({
      ...{ validate: 'enforce', warnings: [], collection: null },
    });
    expect(document).to.deep.include({
      openapi: '3.1.0',
      info: { title: 'Animals', description: 'of all kinds', version: '1.0.0' },
      servers: [{ url: '/' }],
      components: {
        schemas: {
          ...VALIDATE.components?.schemas,
          'Name-2': { type: 'object', properties: { child: { $ref: '#/components/schemas/Name-2' } } },
        },
      },
    });
    expect(document.paths['/a/{id}']).to.deep.equal({
      post: {
        operationId: 'a',
        parameters: VALIDATE.parameters?.map((one) => (one.in === 'path' ? { ...one, required: true } : one)),
        requestBody: VALIDATE.body,
        responses: { default: { description: 'The answer of the handler' } },
      },
    });
    expect(document.paths['/d/{x}']?.['get']).to.not.have.property('operationId');
  });

  it('an OpenAPI export leaves out, with a warning, what an import would change or cannot say', async () => {
    await endpoint('same');
    await endpoint('same', { path: '/again' });
    await endpoint('rest', { path: '/rest/{*path}' });
    await endpoint('blank', { code: '' });
    await endpoint('off', { enabled: false });
    const defs = { $defs: { A: { type: 'string' } }, properties: { a: { $ref: '#/$defs/A' } } };
    const validate = { mode: 'enforce', body: { content: { 'application/json': { schema: defs } } } };
    await endpoint('defs', { method: 'POST', policies: { validate } });
    const one = await exportedOnly();
    expect(Object.keys(one.document.paths)).to.have.members(['/again', '/defs']);
    expect(one.validate).to.equal('off');
    expect(one.warnings).to.have.members([
      'GET /off is left out: it is disabled',
      'GET /rest/{*path} is left out: a document cannot have such a path',
      'GET /same is left out: an import would change its name',
      'GET /blank is left out: an import would change its code',
      'The policy validate of "defs" is not what a document can say: import without validate, which keeps it',
    ]);
  });

  it('an OpenAPI export has one document for each collection, and for each imported document', async () => {
    await importPets();
    const other = { ...PETS, info: { title: 'Others', version: '1' }, servers: [{ url: '/v2' }] };
    await importPets('', { spec: JSON.stringify(other), create_collection: false });
    const plain = { ...PETS, info: { title: 'Plain', version: '1' }, servers: [] };
    await importPets('', { spec: JSON.stringify(plain), create_collection: false });
    await endpoint('x');
    await create('/api/collections', { domain_id, name: 'empty' });
    const { documents, warnings } = await exportedDocuments(api, host);
    expect(warnings).to.deep.equal([]);
    const shown = documents.map(({ collection, document: { info, paths } }) => [
      ...[collection?.name, (info as { title: string }).title, Object.keys(paths).length],
    ]);
    expect(shown).to.deep.equal([
      [undefined, 'Others', 2],
      [undefined, 'Plain', 3],
      ['Pets', 'Pets', 2],
    ]);
    for (const one of documents) await expectNoChange(api, host, one);
    const only = await exportedDocuments(api, host, `&collection_id=${documents[2]?.collection?.id}`);
    expect(only.documents).to.deep.equal([documents[2]]);
  });

  it('an OpenAPI export has the other files of an imported bundle in its document', async () => {
    const ref = ($ref: string) => ({ $ref });
    const body = (schema: object) => ({ content: { 'application/json': { schema } } });
    const spec = {
      ...{ openapi: '3.0.3', info: { title: 'Files', version: '1' }, 'x-files': { own: true } },
      paths: {
        '/a': {
          post: { operationId: 'a', requestBody: body(ref('schemas/pet.yaml')), responses: RESPONSES },
        },
        '/b': ref('paths/b%20c.json#/~1b'),
      },
      components: { schemas: { Name: { type: 'string', maxLength: 5 } } },
    };
    const files = {
      'openapi.json': JSON.stringify(spec),
      'schemas/pet.yaml':
        'type: object\nrequired: [name]\nproperties:\n  name: {$ref: "../openapi.json#/components/schemas/Name"}\n' +
        '  friend: {$ref: pet.yaml}\n  age: {$ref: "b.json#age"}\n  home: {$ref: "#/definitions/Home"}\ndefinitions: {Home: {type: integer}}\n',
      'paths/b c.json': JSON.stringify({
        '/b': {
          put: { operationId: 'b', requestBody: body(ref('../schemas/pet.yaml')), responses: RESPONSES },
        },
      }),
      'schemas/b.json': JSON.stringify({ 'a/b': { $anchor: 'age', type: 'integer', minimum: 1 } }),
      'handlers/a.rs': CODE,
      'bundle.yaml': 'routes:\n  - {method: GET, path: "/more/{x}"}\n',
    };
    const form = multipart([{ name: 'bundle', filename: 'a.zip', content: zipOf(files) }]);
    const { headers } = form;
    expectData(await api.post(`/api/import/bundle?domain=${host}&validate=enforce`, form.body, { headers }));
    const { document, validate, warnings } = await exportedOnly();
    expect(warnings).to.deep.equal([]);
    expect(validate).to.equal('enforce');
    expect(document).to.deep.include({ 'x-files': { own: true } });
    expect(document.paths['/b']).to.deep.equal(ref('#/x-files-2/paths/b%20c.json/~1b'));
    expect(Object.keys(document.paths)).to.deep.equal(['/a', '/b', '/more/{x}']);
    expect((await endpointsOf(api, host)).map(({ policies }) => policies !== null)).to.have.members([
      ...[true, true, false],
    ]);
  });

  it('an OpenAPI export describes endpoints that were imported before documents were kept', async () => {
    await importPets();
    expectData(await api.put(`/api/endpoints/${await idOf('getPet')}`, { code: CODE }));
    await api.store.knex('endpoints').where({ domain: host }).update({ imported_document_id: null });
    const { document, warnings } = await exportedOnly();
    expect(Object.keys(document.paths)).to.deep.equal(['/pets/{id}']);
    expect(document['info']).to.deep.include({ title: 'Pets', description: 'All pets' });
    expect(warnings).to.include('POST /v1/pets is left out: an import would change its code');
  });

  it('keeps an imported document only as long as there are endpoints of it', async () => {
    const kept = async () => (await api.store.knex('imported_documents').where({ domain: host })).length;
    await importPets();
    await importPets();
    expect(await kept()).to.equal(1);
    await importPets('', { spec: JSON.stringify({ ...PETS, tags: [] }) });
    expect(await kept()).to.equal(1);
    await importPets('?dry_run=true');
    expect((await exportedOnly()).document['tags']).to.deep.equal([]);
  });

  it('an OpenAPI export with an endpoint_id has only that endpoint', async () => {
    await importPets();
    const id = await idOf('getPet');
    const { documents } = await exportedDocuments(api, host, `&endpoint_id=${id}`);
    expect(documents).to.have.lengthOf(1);
    const paths = documents[0]?.document['paths'] as Record<string, object>;
    expect(Object.keys(paths)).to.deep.equal(['/pets/{id}']);
    expect(paths['/pets/{id}']).to.include.keys('get').and.not.include.keys('delete');
    const elsewhere = await exportedDocuments(api, 'elsewhere.example', `&endpoint_id=${id}`);
    expect(elsewhere).to.deep.equal({ documents: [], warnings: [] });
  });

  it('refuses an OpenAPI export without a host, and exports nothing of a host without endpoints', async () => {
    expectFailure(await api.get('/api/export/openapi'), 'invalid_input', /domain/);
    expect(await exportedDocuments(api, host)).to.deep.equal({ documents: [], warnings: [] });
    const none = await exportedDocuments(api, host, `&collection_id=${NO_ID}`);
    expect(none.documents).to.deep.equal([]);
  });
});
