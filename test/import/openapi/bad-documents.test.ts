import { expect } from 'chai';
import { documentWith, expectRejected, RESPONSES, read } from '../documents/documents.js';

const operation = (members: object = {}) => ({ responses: RESPONSES, ...members });
const withPaths = (paths: object) => documentWith({ paths });

describe('OpenAPI: rejects', () => {
  it('texts that are not documents', async () => {
    await expectRejected(read(''), /The document is empty/);
    await expectRejected(read(' \n\ufeff'), /The document is empty/);
    for (const text of ['[]', 'null', '42', 'just words', '- a\n- b']) {
      await expectRejected(read(text), /is not an OpenAPI document/);
    }
    await expectRejected(read('{}'), /^\/openapi: is missing/);
    await expectRejected(read('a: 1\nb: [1, 2\n'), /neither JSON nor YAML: .*line 3, column 1/);
    await expectRejected(read('{"openapi": "3.0.0",'), /neither JSON nor YAML: .*line 1, column \d+/);
    await expectRejected(
      read('openapi: 3.0.0\nopenapi: 3.0.1'),
      /the key "openapi" twice in one map \(line 2, column 1\)$/,
    );
    await expectRejected(read('a: 1\n---\nb: 2'), /multiple documents/);
  });

  it('other versions and Swagger', async () => {
    await expectRejected(read('swagger: "2.0"\ninfo: {}'), /Swagger 2\.0, .*convert it to OpenAPI 3/);
    await expectRejected(read('swagger: 2.0'), /Swagger 2\.0/);
    for (const version of ['2.0', '3.2.0', '4.0.0', '3.0', '3.1', 'three', '']) {
      await expectRejected(
        read(documentWith({}, version)),
        /^\/openapi: must be a version 3\.0\.x or 3\.1\.x/,
      );
    }
    await expectRejected(read('openapi: 3.1'), /not 3\.1$/);
  });

  it('documents that violate the specification, with the locations of the first few problems', async () => {
    await expectRejected(
      read(documentWith({ info: { title: 'x', version: 1 } })),
      /\/info\/version: must be string/,
    );
    await expectRejected(
      read(documentWith({ info: { title: 7, version: '1' } }, '3.1.0')),
      /\/info\/title: must be string/,
    );
    await expectRejected(
      read(withPaths({ '/a': { get: {} } })),
      /\/paths\/~1a\/get: must have required property 'responses'/,
    );
    await expectRejected(
      read(withPaths({ '/a': { get: operation({ tags: 1 }) } })),
      /\/paths\/~1a\/get\/tags: must be array/,
    );
    await expectRejected(read(documentWith({ wrong: 1 })), /\/wrong: must NOT have additional properties/);
    await expectRejected(
      read(documentWith({ wrong: 1 }, '3.1.0')),
      /\/wrong: must NOT have unevaluated properties/,
    );
    const many = Object.fromEntries(
      Array.from({ length: 9 }, (_, at) => [`/p${at}`, { get: { responses: 5 } }]),
    );
    await expectRejected(
      read(withPaths(many)),
      /\/paths\/~1p0\/get\/responses: must be object; .*; and 4 more$/,
    );
    for (const schemes of [null, 'text', []]) {
      const text = documentWith({ components: { securitySchemes: schemes } });
      await expectRejected(read(text), /^\/components\/securitySchemes: must be an object/);
    }
    await expectRejected(
      read(documentWith({ components: { securitySchemes: { key: 5 } } })),
      /^\/components\/securitySchemes\/key: must be an object/,
    );
    await expectRejected(read(withPaths({ a: {} })), /^\/paths\/a: a path must begin with "\/"/);
    await expectRejected(read(withPaths({ '/a': 5 })), /^\/paths\/~1a: must be an object/);
  });

  it('a title that cannot name a collection', async () => {
    const titled = (title: string) => documentWith({ info: { title, version: '1' } });
    for (const title of ['', '  ', '\n'])
      await expectRejected(read(titled(title)), /^\/info\/title: must not be empty/);
    await expectRejected(read(titled('x'.repeat(256))), /^\/info\/title: must be at most 255 characters/);
    await expectRejected(read(titled('a\u0007b')), /^\/info\/title: .*control characters/);
    expect((await read(titled(' Two\n  words '))).title).to.equal('Two words');
  });

  it('operations that conflict, naming both', async () => {
    const named = { get: operation({ operationId: 'same' }) };
    await expectRejected(
      read(withPaths({ '/a': named, '/b': { post: operation({ operationId: 'same' }) } })),
      /^GET \/a and POST \/b have the same operationId "same"/,
    );
    await expectRejected(
      read(withPaths({ '/a/{x}': { get: operation() }, '/a/{y}/': { get: operation() } })),
      /^GET \/a\/\{x\} and GET \/a\/\{y\}\/ have the same route/,
    );
    await expectRejected(
      read(withPaths({ '/a%62': { get: operation() }, '/ab': { get: operation() } })),
      /have the same route/,
    );
    await expectRejected(
      read(withPaths({ '/a': { get: operation() }, '/b': { get: operation({ operationId: 'GET /a' }) } })),
      /have the same name/,
    );
  });

  it('paths with dot segments', async () => {
    for (const path of ['/a/../b', '/.', '/a/%2e%2E/b', '/a/.%2e', '/..']) {
      await expectRejected(
        read(withPaths({ [path]: { get: operation() } })),
        /^\/paths\/.*must not have "\." or "\.\."/,
      );
    }
  });

  it('names that endpoints cannot have', async () => {
    const called = (operationId: string) => withPaths({ '/a': { get: operation({ operationId }) } });
    await expectRejected(
      read(called('x'.repeat(256))),
      /^GET \/a: needs an operationId of at most 255 characters/,
    );
    await expectRejected(read(called('a\nb')), /^GET \/a: the operationId must be one line/);
    await expectRejected(read(called('   ')), /^GET \/a: the operationId must be one line/);
    await expectRejected(
      read(withPaths({ [`/${'x'.repeat(300)}`]: { get: operation() } })),
      /needs an operationId/,
    );
    expect((await read(called(''))).operations[0]?.name).to.equal('GET /a');
  });

  it('texts that cannot be stored', async () => {
    await expectRejected(
      read(withPaths({ '/a\0': { get: operation() } })),
      /^\/paths\/~1a\ufffd: must not have NUL/,
    );
    await expectRejected(
      read(withPaths({ '/a': { get: operation({ summary: '\0' }) } })),
      /\/get\/summary: must not have NUL/,
    );
    await expectRejected(
      read(withPaths({ '/a': { get: operation({ summary: '\ud800' }) } })),
      /lone surrogates/,
    );
  });

  it('documents without operations, and with too many', async () => {
    await expectRejected(read(withPaths({})), /^\/paths: has no operation that can be imported$/);
    await expectRejected(
      read(withPaths({ '/a': { head: operation() } })),
      /no operation .*: HEAD \/a: left out/,
    );
    await expectRejected(
      read(documentWith({ paths: undefined, webhooks: { sold: {} } }, '3.1.0')),
      /no operation/,
    );
    const paths = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`/p${at}`, { get: operation() }]));
    await expectRejected(read(withPaths(paths), 5), /more than 5 paths/);
    const item = { get: operation(), put: operation(), head: operation() };
    await expectRejected(read(withPaths({ '/a': item, '/b': item }), 5), /more than 5 operations/);
  });

  it('duplicate parameters', async () => {
    const parameter = { name: 'x', in: 'query', schema: {} };
    const second = { ...parameter, schema: { type: 'string' } };
    await expectRejected(
      read(withPaths({ '/a': { get: operation({ parameters: [parameter, second] }) } })),
      /^GET \/a: parameters\/1: duplicate query parameter "x"/,
    );
  });
});
