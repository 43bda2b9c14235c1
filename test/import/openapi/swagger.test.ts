/** Swagger 2.0, which is converted. */
import { expect } from 'chai';
import fc from 'fast-check';
import { AppError } from '../../../src/errors.js';
import { expectRejected, read } from '../documents/documents.js';

const RESPONSES = { default: { description: 'Any' } };
const CONVERTED = '/swagger: the document is Swagger 2.0 and was converted to OpenAPI 3.0';

const swagger = (members: object) =>
  JSON.stringify({ swagger: '2.0', info: { title: 'Test', version: '1' }, ...members });

/** Reads a document with one operation, `POST /a/{id}`. */
async function post(operation: object, members: object = {}, item: object = {}) {
  const paths = { '/a/{id}': { ...item, post: { responses: RESPONSES, ...operation } } };
  const { operations, warnings } = await read(swagger({ paths, ...members }));
  const parameters = operations[0]?.parameters.filter(({ name }) => name !== 'id') ?? [];
  const others = warnings.filter((text) => text !== CONVERTED && !text.includes('path parameter "id"'));
  return { operation: operations[0], parameters, body: operations[0]?.body, warnings: others };
}

describe('OpenAPI: Swagger 2.0', () => {
  it('converts a Swagger 2.0 document, with a warning', async () => {
    const { title, operations, warnings } = await read(
      swagger({ paths: { '/a': { get: { operationId: 'a', summary: 'All', responses: RESPONSES } } } }),
    );
    expect(title).to.equal('Test');
    expect(operations).to.have.lengthOf(1);
    expect(operations[0]).to.include({ operationId: 'a', method: 'GET', path: '/a', description: 'All' });
    expect(warnings).to.deep.equal([CONVERTED]);
    expect(
      (await read('swagger: 2.0\ninfo: {title: x, version: "1"}\npaths: {/a: {get: {}}}')).title,
    ).to.equal('x');
    await expectRejected(read('swagger: 2.0'), /^\/paths: must be an object/);
  });

  it('reads the base path of a Swagger 2.0 document', async () => {
    const basePathOf = async (members: object) =>
      (await read(swagger({ paths: { '/a': { get: { responses: RESPONSES } } }, ...members }))).basePath;
    expect(await basePathOf({})).to.equal(null);
    expect(await basePathOf({ basePath: '/v1/' })).to.equal('/v1');
    expect(await basePathOf({ basePath: '/' })).to.equal(null);
    const host = { host: 'a.example:8080', schemes: ['https', 'wss'] };
    expect(await basePathOf({ ...host, basePath: '/v2' })).to.equal('/v2');
    expect(await basePathOf(host)).to.equal(null);
    expect(await basePathOf({ host: 5, basePath: [], schemes: 'http' })).to.equal(null);
  });

  it('reads either a body or a form of a Swagger 2.0 operation', async () => {
    const field = { name: 'a', in: 'formData', type: 'string' };
    const object = { name: 'b', in: 'body', schema: { type: 'object' } };
    const { body, warnings } = await post({ parameters: [field, object] });
    expect(body).to.deep.equal((await post({ parameters: [object] })).body);
    expect(warnings).to.deep.equal([
      'POST /a/{id}: has both a body and fields of a form, which exclude each other; only the body is read',
    ]);
  });

  it('reads Swagger 2.0 parameters in all styles that OpenAPI 3.0 has', async () => {
    const array = (name: string, collectionFormat?: string, where = 'query') => ({
      ...{ name, in: where, type: 'array', items: { type: 'integer' } },
      ...(collectionFormat === undefined ? {} : { collectionFormat }),
    });
    const { parameters, warnings } = await post({
      parameters: [
        { name: 'limit', in: 'query', type: 'integer', required: true },
        { name: 'X-Trace', in: 'header', type: 'string' },
        array('none'),
        array('ssv', 'ssv'),
        array('pipes', 'pipes'),
        array('multi', 'multi'),
        array('X-List', undefined, 'header'),
        array('tsv', 'tsv'),
        array('X-Pipes', 'pipes', 'header'),
      ],
    });
    const shown = parameters.map(({ name, type, itemType, required, style, explode }) =>
      [name, type, itemType, required && 'required', style, type === 'array' && explode && 'exploded']
        .filter(Boolean)
        .join(' '),
    );
    expect(shown).to.deep.equal([
      'limit integer any required form',
      'X-Trace string any simple',
      'none array integer form',
      'ssv array integer spaceDelimited',
      'pipes array integer pipeDelimited',
      'multi array integer form exploded',
      'X-List array integer simple',
      'tsv string any form',
      'X-Pipes string any simple',
    ]);
    expect(warnings).to.deep.equal([
      'POST /a/{id}: the query parameter "tsv", in the style "tsv", is not parsed; the handler gets the raw text',
      'POST /a/{id}: the header parameter "X-Pipes", in the style "pipes", is not parsed; the handler gets the raw text',
    ]);
  });

  it('reads Swagger 2.0 parameters of the path and of the document, which operations override', async () => {
    const members = {
      parameters: {
        Limit: { name: 'limit', in: 'query', type: 'integer' },
        Body: { name: 'body', in: 'body', required: true, schema: { $ref: '#/definitions/Pet' } },
      },
      definitions: { Pet: { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } } },
    };
    const own = { name: 'page', in: 'query', type: 'string' };
    const parameters = [
      { $ref: '#/parameters/Limit' },
      { $ref: '#/parameters/Body' },
      { ...own, type: 'integer' },
    ];
    // The operation comes before the parameters of its path.
    const paths = { '/a': { post: { parameters: [own], responses: RESPONSES }, parameters } };
    const { operations, warnings } = await read(swagger({ ...members, paths }));
    expect(warnings).to.deep.equal([CONVERTED]);
    expect(operations[0]?.parameters.map(({ name, type }) => [name, type])).to.deep.equal([
      ['limit', 'integer'],
      ['page', 'string'],
    ]);
    const { body } = operations[0] ?? {};
    expect(body).to.deep.include({ required: true, mediaType: 'application/json', type: 'object' });
    expect(body?.members.map(({ name, type }) => [name, type])).to.deep.equal([['id', 'integer']]);
  });

  it('reads the media types of Swagger 2.0 bodies from what operations consume', async () => {
    const body = { name: 'body', in: 'body', schema: { type: 'object', properties: { a: {} } } };
    const typeOf = async (operation: object, members: object = {}) =>
      (await post({ parameters: [body], ...operation }, members)).body?.mediaType;
    expect(await typeOf({})).to.equal('application/json');
    expect(await typeOf({}, { consumes: ['application/xml'] })).to.equal('application/xml');
    expect(await typeOf({ consumes: ['text/plain'] }, { consumes: ['application/xml'] })).to.equal(
      'text/plain',
    );
    expect(await typeOf({ consumes: ['text/plain', 'application/json'] })).to.equal('application/json');
    expect(await typeOf({ consumes: 'text/plain' })).to.equal('text/plain');
    expect(await typeOf({ consumes: [] })).to.equal('application/json');
  });

  it('reads Swagger 2.0 forms, with files in multipart', async () => {
    const field = (name: string, members: object = {}) => ({
      name,
      in: 'formData',
      type: 'string',
      ...members,
    });
    const list = { type: 'array', items: { type: 'string' } };
    const { body } = await post({
      consumes: ['application/x-www-form-urlencoded'],
      parameters: [
        field('name', { required: true }),
        field('age', { type: 'integer' }),
        field('csv', list),
        field('multi', { ...list, collectionFormat: 'multi' }),
      ],
    });
    expect(body?.mediaType).to.equal('application/x-www-form-urlencoded');
    const fields = body?.fields?.map(({ name, type, required, style, explode }) =>
      [name, type, required && 'required', style, type === 'array' && explode && 'exploded']
        .filter(Boolean)
        .join(' '),
    );
    expect(fields).to.deep.equal([
      'name string required form',
      'age integer form',
      'csv array form',
      'multi array form exploded',
    ]);
    const upload = await post({
      consumes: ['application/x-www-form-urlencoded', 'multipart/form-data'],
      parameters: [field('file', { type: 'file' }), field('name'), field('csv', list)],
    });
    expect(upload.body?.mediaType).to.equal('multipart/form-data');
    expect(upload.body?.fields?.map(({ name, isFile, explode }) => [name, isFile, explode])).to.deep.equal([
      ['file', true, true],
      ['name', false, true],
      ['csv', false, false],
    ]);
    expect((await post({ parameters: [field('name')] })).body?.mediaType).to.equal(
      'application/x-www-form-urlencoded',
    );
  });

  it('leaves out Swagger 2.0 operations that cannot be read, and only these', async () => {
    const fine = { responses: RESPONSES };
    const { operations, warnings } = await read(
      swagger({
        paths: {
          '/a': {
            get: null,
            put: { parameters: [null], ...fine },
            post: { parameters: [{ name: 'x' }], ...fine },
          },
          '/b': null,
          '/c': { parameters: [{ $ref: '#/parameters/none' }], get: fine },
          '/d': { get: { ...fine, responses: { 200: null }, consumes: null }, options: fine },
        },
        definitions: [],
        parameters: 'x',
      }),
    );
    expect(operations.map(({ name }) => name)).to.deep.equal(['GET /d']);
    expect(warnings.filter((text) => text.includes('left out:'))).to.deep.equal([
      'GET /a: left out: is not an object',
      'PUT /a: left out: parameters/0: is not a parameter: it needs "name" and "in"',
      'POST /a: left out: parameters/0: is not a parameter: it needs "name" and "in"',
      '/paths/~1b: left out: is not an object with operations',
      'GET /c: left out: parameters/0: $ref "#/parameters/none" has no target',
      'OPTIONS /d: left out: endpoints have the methods GET, POST, PUT, DELETE and PATCH',
    ]);
  });

  it('follows Swagger 2.0 references to other files, relative to the file that has them', async () => {
    const text = swagger({ paths: { '/pets': { $ref: 'paths/pets.yaml#/pets' } } });
    const body = { name: 'pet', in: 'body', schema: { $ref: '../schemas/a pet.yaml' } };
    const files: Record<string, string> = {
      'api/paths/pets.yaml': JSON.stringify({
        pets: { post: { parameters: [{ $ref: '../parts/all.yaml#/Pet' }], responses: RESPONSES } },
      }),
      'api/parts/all.yaml': JSON.stringify({ Pet: body }),
      'api/schemas/a pet.yaml':
        'allOf: [{$ref: "#/x"}]\nx: {type: object, properties: {id: {type: integer}}}',
      // Where the reference would lead from the document.
      'schemas/a pet.yaml': 'type: string',
    };
    const readText = (path: string) => (path in files ? Promise.resolve(files[path] ?? '') : undefined);
    const { operations, warnings } = await read(text, 100, { document: 'api/swagger.yaml', readText });
    expect(operations[0]?.body?.members.map(({ name }) => name)).to.deep.equal(['id']);
    expect(warnings).to.deep.equal([CONVERTED]);
  });

  it('converts or rejects Swagger 2.0 documents with arbitrary values, without other errors', async () => {
    const anything = fc.jsonValue({ maxDepth: 3 });
    const or = <T>(value: fc.Arbitrary<T>) => fc.oneof({ weight: 4, arbitrary: value }, anything);
    const schema = or(
      fc.dictionary(
        fc.constantFrom(
          'type',
          'items',
          'properties',
          '$ref',
          'allOf',
          'discriminator',
          'required',
          'x-nullable',
        ),
        fc.oneof(anything, fc.constantFrom('object', 'array', '#/definitions/A', 'kind')),
      ),
    );
    const parameter = or(
      fc.record(
        {
          name: or(fc.string()),
          in: or(fc.constantFrom('query', 'path', 'header', 'body', 'formData', 'constructor')),
          type: or(fc.constantFrom('string', 'array', 'file')),
          items: anything,
          collectionFormat: or(fc.constantFrom('csv', 'multi', 'tsv', 'constructor')),
          schema,
          'x-example': anything,
          'x-examples': anything,
          $ref: or(fc.constantFrom('#/parameters/P', '#/definitions/A', 'other.yaml')),
        },
        { requiredKeys: [] },
      ),
    );
    const operation = or(
      fc.record(
        { parameters: or(fc.array(parameter)), consumes: anything, produces: anything, responses: anything },
        { requiredKeys: [] },
      ),
    );
    const document = fc.record(
      {
        swagger: fc.constant('2.0'),
        info: fc.constant({ title: 'x', version: '1' }),
        paths: fc.dictionary(
          fc.constantFrom('/a', '/b/{x}'),
          or(
            fc.record(
              { parameters: or(fc.array(parameter)), post: operation, get: operation },
              { requiredKeys: [] },
            ),
          ),
        ),
        definitions: or(fc.record({ A: schema })),
        parameters: or(fc.record({ P: parameter })),
        consumes: anything,
        host: anything,
        basePath: anything,
        schemes: anything,
        securityDefinitions: anything,
        responses: anything,
      },
      { requiredKeys: ['swagger', 'info', 'paths'] },
    );
    await fc.assert(
      fc.asyncProperty(document, async (value) => {
        const error = await read(JSON.stringify(value)).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        if (error !== undefined) expect(error).to.be.instanceOf(AppError);
      }),
      { numRuns: 300 },
    );
  }).timeout(30_000);
});
