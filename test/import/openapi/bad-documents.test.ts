/** Documents with flaws: what is rejected as a whole, what is left out, and what is only a warning. */
import { expect } from 'chai';
import { documentWith, expectRejected, RESPONSES, read } from '../documents/documents.js';

const operation = (members: object = {}) => ({ responses: RESPONSES, ...members });
const withPaths = (paths: object, others: object = {}) => documentWith({ paths, ...others });
const FINE = { '/fine': { get: operation() } };
const names = ({ operations }: Awaited<ReturnType<typeof read>>) => operations.map(({ name }) => name);

describe('OpenAPI: documents that are rejected', () => {
  it('rejects texts that are not OpenAPI documents', async () => {
    await expectRejected(read(''), /The document is empty/);
    await expectRejected(read(' \n\ufeff'), /The document is empty/);
    for (const [text, found] of [
      ['[]', /^\/: is not an OpenAPI document, but a list$/],
      ['- a\n- b', /but a list$/],
      ['null', /but null$/],
      ['42', /but 42$/],
      ['just words', /but text: just words$/],
      ['<!DOCTYPE html>\n<html lang="en">', /is HTML or XML/],
    ] as const) {
      await expectRejected(read(text), found);
    }
    await expectRejected(read('{}'), /^\/openapi: is missing/);
    await expectRejected(read('a: 1\nb: [1, 2\n'), /neither JSON nor YAML: .*line 3, column 1/);
    await expectRejected(read('{"openapi": "3.0.0",'), /neither JSON nor YAML: .*line 1, column \d+/);
    await expectRejected(read('a: 1\n---\nb: 2'), /multiple documents/);
  });

  it('rejects documents of unknown versions of OpenAPI', async () => {
    for (const version of ['2.0', '3.3.0', '4.0.0', 'three', '']) {
      await expectRejected(read(documentWith({}, version)), /^\/openapi: must be a version of OpenAPI 3/);
    }
    await expectRejected(read('openapi: 4.1'), /not 4\.1$/);
    await expectRejected(read('swagger: "1.2"\npaths: {}'), /^\/swagger: /);
  });

  it('rejects documents without operations, and with too many', async () => {
    await expectRejected(read(documentWith({ paths: undefined })), /^\/paths: must be an object/);
    await expectRejected(read(documentWith({ paths: [] })), /^\/paths: must be an object/);
    await expectRejected(read(withPaths({})), /^\/paths: has no operation that can be imported$/);
    await expectRejected(
      read(withPaths({ '/a': { head: operation() } })),
      /no operation .*: HEAD \/a: left out/,
    );
    const paths = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`/p${at}`, { get: operation() }]));
    await expectRejected(read(withPaths(paths), 5), /more than 5 paths/);
    const item = { get: operation(), put: operation(), head: operation() };
    await expectRejected(read(withPaths({ '/a': item, '/b': item }), 5), /more than 5 operations/);
  });
});

describe('OpenAPI: flaws that are read with a warning', () => {
  it('warns of keys that are repeated in one object of JSON or YAML, and reads the last one', async () => {
    const again = (place: string, key: string) =>
      `${place}: the key "${key}" stands there again in the same object; only this last one is read`;
    const json = `{"openapi": "3.0.3", "info": {"title": "x", "version": "1"},
      "paths": {
        "/a": {"get": {"responses": {}}, "x-text": "\\"get\\": {}"},
        "/b": {"get": {}, "post": {}, "\\u0067et" : {"responses": {}}},
        "/\\"c": {"get": {}},
        "/a": {"put": {"responses": {}}}
      }}`;
    const fromJson = await read(json);
    expect(names(fromJson)).to.have.members(['PUT /a', 'GET /b', 'POST /b', 'GET /"c']);
    expect(fromJson.warnings.filter((text) => text.includes('again'))).to.deep.equal([
      again('line 4, column 39', 'get'),
      again('line 6, column 9', '/a'),
    ]);
    const yaml =
      'openapi: 3.0.3\nopenapi: 3.1.0\npaths:\n  /a:\n    get: {}\n  /a:\n    put: {}\n    get: {}\n';
    const fromYaml = await read(yaml);
    expect(names(fromYaml)).to.have.members(['GET /a', 'PUT /a']);
    expect(fromYaml.warnings.filter((text) => text.includes('again'))).to.deep.equal([
      again('line 2, column 1', 'openapi'),
      again('line 6, column 3', '/a'),
    ]);
  });

  it('reads versions without a patch, numbers as versions, and what OpenAPI 3.2 shares with 3.1', async () => {
    for (const version of ['3.0', '3.1', '3.1.0-rc0']) {
      expect((await read(documentWith({}, version))).operations).to.have.lengthOf(1);
    }
    expect((await read(`${documentWith({})}`.replace('"3.0.3"', '3.0'))).operations).to.have.lengthOf(1);
    const { warnings } = await read(
      documentWith({ paths: { '/a': { get: operation(), query: operation() } } }, '3.2.0'),
    );
    expect(warnings).to.deep.equal([
      '/openapi: of 3.2, only what 3.1 has too is read',
      'QUERY /a: left out: endpoints have the methods GET, POST, PUT, DELETE and PATCH',
    ]);
  });

  const flaws: Record<string, readonly [text: string, warnings: readonly string[]]> = {
    'members of the wrong type': [
      documentWith({ info: { title: 'x', version: 1, description: null } }),
      ['/info/description: must be string', '/info/version: must be string'],
    ],
    'unknown members in 3.0': [
      documentWith({ wrong: 1 }),
      ['/wrong: is not a member that the specification has here'],
    ],
    'unknown members in 3.1': [
      documentWith({ wrong: 1 }, '3.1.0'),
      ['/wrong: is not a member that the specification has here'],
    ],
    'operations without responses': [
      withPaths({ '/a': { get: {} } }),
      ["/paths/~1a/get: must have required property 'responses'"],
    ],
    'wrong tags': [
      withPaths({ '/a': { get: operation({ tags: 1 }) } }),
      ['/paths/~1a/get/tags: must be array'],
    ],
    'wrong security schemes': [
      withPaths(FINE, { components: { securitySchemes: [] } }),
      ['/components/securitySchemes: must be object'],
    ],
  };
  for (const [what, [text, warnings]] of Object.entries(flaws)) {
    it(`reads a document with ${what}, and warns of them`, async () => {
      const document = await read(text);
      expect(document.operations).to.have.lengthOf(1);
      expect(document.warnings).to.deep.equal(warnings);
    });
  }

  it('reads a null description, and `required: true` in a schema, with a warning', async () => {
    const schema = {
      type: 'object',
      properties: { name: { type: 'string', required: true, description: null } },
    };
    const { operations, warnings } = await read(
      withPaths({
        '/a': {
          post: operation({
            description: null,
            requestBody: { content: { 'application/json': { schema } } },
          }),
        },
      }),
    );
    const at = '/paths/~1a/post/requestBody/content/application~1json/schema/properties/name';
    expect(warnings).to.deep.equal([
      '/paths/~1a/post/description: must be string',
      `${at}/required: must be array`,
      `${at}/description: must be string`,
    ]);
    expect(operations[0]?.body?.members).to.deep.equal([
      { name: 'name', required: false, type: 'string', nullable: false },
    ]);
  });

  it('replaces a title that cannot name a collection, with a warning', async () => {
    const titled = async (info: unknown) => {
      const { title, warnings } = await read(documentWith({ info }));
      return { title, warnings: warnings.filter((warning) => warning.startsWith('/info/title: is')) };
    };
    for (const title of ['', '  ', '\n', undefined, null]) {
      expect(await titled({ title, version: '1' })).to.deep.equal({
        title: 'API',
        warnings: ['/info/title: is missing; the API is called "API"'],
      });
    }
    expect((await titled(null)).title).to.equal('API');
    const long = await titled({ title: 'x'.repeat(256), version: '1' });
    expect(long.title).to.equal(`${'x'.repeat(254)}…`);
    expect(long.warnings).to.have.lengthOf(1);
    expect(await titled({ title: ' Two\n\u0007words ', version: '1' })).to.deep.equal({
      title: 'Two words',
      warnings: [],
    });
  });

  it('names operations by method and path when their operationId is not unique or cannot be a name', async () => {
    const document = await read(
      withPaths({
        '/a': { get: operation({ operationId: 'same' }), put: operation({ operationId: 'GET /c' }) },
        '/b': { get: operation({ operationId: 'same' }), post: operation({ operationId: 'same' }) },
        '/c': { get: operation(), post: operation({ operationId: 'POST /c' }) },
        '/d': { get: operation({ operationId: 'x'.repeat(256) }), put: operation({ operationId: 'a\nb' }) },
        '/e': { get: operation({ operationId: '   ' }), put: operation({ operationId: '' }) },
      }),
    );
    expect(names(document)).to.deep.equal([
      ...['same', 'PUT /a', 'GET /b', 'POST /b', 'GET /c', 'POST /c'],
      ...['GET /d', 'PUT /d', 'GET /e', 'PUT /e'],
    ]);
    expect(document.operations.filter(({ operationId }) => operationId !== null)).to.have.lengthOf(2);
    expect(document.warnings).to.deep.equal([
      `GET /d: the operationId "${'x'.repeat(60)}…" is longer than 255 characters; the name is method and path instead`,
      'PUT /d: the operationId "a\ufffdb" is not one line of text; the name is method and path instead',
      'GET /e: the operationId "   " is not one line of text; the name is method and path instead',
      'Named by method and path, because the operationId is that of another operation: ' +
        'PUT /a (that of GET /c), GET /b (that of GET /a), POST /b (that of GET /a)',
    ]);
  });

  it('reads the first of two parameters with one name, with a warning', async () => {
    const parameter = { name: 'x', in: 'query', schema: { type: 'integer' } };
    const second = { ...parameter, schema: { type: 'string' } };
    const { operations, warnings } = await read(
      withPaths({ '/a': { get: operation({ parameters: [parameter, second] }) } }),
    );
    expect(operations[0]?.parameters.map(({ name, type }) => [name, type])).to.deep.equal([['x', 'integer']]);
    expect(warnings).to.deep.equal(['GET /a: parameters/1: a second query parameter "x" is left out']);
  });

  it('replaces texts of a document that cannot be stored, with a warning', async () => {
    for (const summary of ['a\0b', 'a\ud800b']) {
      const { operations, warnings } = await read(withPaths({ '/a': { get: operation({ summary }) } }));
      expect(operations[0]?.description).to.equal('a\ufffdb');
      expect(warnings).to.have.lengthOf(1);
    }
  });
});

describe('OpenAPI: parts that are left out with a warning', () => {
  it('leaves out paths and operations that are not objects or not paths, with a warning', async () => {
    const document = await read(
      withPaths({ a: { get: operation() }, '/b': null, '/c': { get: 'x', put: null }, 'x-d': 1, ...FINE }),
    );
    expect(names(document)).to.deep.equal(['GET /fine']);
    expect(document.warnings.filter((warning) => warning.includes('left out'))).to.deep.equal([
      '/paths/~1b: left out: is not an object with operations',
      'GET /c: left out: is not an object',
      'PUT /c: left out: is not an object',
      'GET a: left out: the path must start with "/"',
    ]);
  });

  it('leaves out paths with dot segments, with a warning', async () => {
    for (const path of ['/a/../b', '/.', '/a/%2e%2E/b', '/a/.%2e', '/..']) {
      const document = await read(withPaths({ [path]: { get: operation() }, ...FINE }));
      expect(names(document)).to.deep.equal(['GET /fine']);
      expect(document.warnings).to.have.lengthOf(1);
      expect(document.warnings[0]).to.match(/^GET \/.*left out: the path must not have "\." or "\.\."/);
    }
  });

  it('leaves out operations whose paths are too long to be a name, with a warning', async () => {
    const document = await read(withPaths({ [`/${'x'.repeat(300)}`]: { get: operation() }, ...FINE }));
    expect(names(document)).to.deep.equal(['GET /fine']);
    expect(document.warnings.join()).to.match(/^GET .*left out: needs an operationId/);
  });

  it('leaves out operations that match the same requests as an earlier one, with one warning', async () => {
    const document = await read(
      withPaths({
        '/a/{x}': { get: operation(), post: operation() },
        '/a/{y}/': { get: operation(), put: operation() },
        '/a%62': { get: operation() },
        '/ab': { get: operation() },
      }),
    );
    expect(names(document)).to.deep.equal(['GET /a/{x}', 'POST /a/{x}', 'PUT /a/{y}/', 'GET /a%62']);
    expect(document.operations[2]?.parameters.map(({ name }) => name)).to.deep.equal(['y']);
    expect(document.warnings.at(-1)).to.equal(
      'Left out, because an earlier operation matches the same requests: GET /a/{y}/ (like GET /a/{x}), GET /ab (like GET /a%62)',
    );
    expect(document.warnings.filter((warning) => warning.includes('same requests'))).to.have.lengthOf(1);
  });

  const unreadable: Record<string, readonly [members: object, reason: RegExp]> = {
    'parameters that are not a list': [{ parameters: { a: 1 } }, /its parameters are not a list/],
    'a parameter that is not an object': [{ parameters: ['x'] }, /parameters\/0: is not a parameter/],
    'a parameter without a name': [{ parameters: [{ in: 'query' }] }, /parameters\/0: is not a parameter/],
    'a parameter in no known place': [
      { parameters: [{ name: 'a', in: 'body' }] },
      /parameters\/0: is not a parameter/,
    ],
    'too many parameters': [
      { parameters: Array.from({ length: 501 }, (_, at) => ({ name: `p${at}`, in: 'query' })) },
      /more than 500 parameters/,
    ],
    'a body that is not an object': [{ requestBody: 'x' }, /requestBody: is not a request body/],
    'a body without content': [{ requestBody: {} }, /requestBody: is not a request body/],
    'a body of no media type': [
      { requestBody: { content: { '': {} } } },
      /requestBody: "" is not a media type/,
    ],
  };
  for (const [what, [members, reason]] of Object.entries(unreadable)) {
    it(`leaves out an operation with ${what}, with a warning`, async () => {
      const document = await read(withPaths({ '/a': { post: operation(members) }, ...FINE }));
      expect(names(document)).to.deep.equal(['GET /fine']);
      const left = document.warnings.filter((warning) => warning.startsWith('POST /a: left out: '));
      expect(left).to.have.lengthOf(1);
      expect(left[0]).to.match(reason);
    });
  }
});
