import { expect } from 'chai';
import { documentWith, RESPONSES, read } from '../documents/documents.js';

const operation = (members: object = {}) => ({ responses: RESPONSES, ...members });
const withPaths = (paths: object) => documentWith({ paths });
const basePathOf = async (...servers: object[]) => (await read(documentWith({ servers }))).basePath;

describe('OpenAPI: routes', () => {
  it('reads the base path from the first server of a document', async () => {
    expect(await basePathOf()).to.equal(null);
    for (const url of ['/', '', 'https://a.example', 'https://a.example/', '//a.example', '.', './']) {
      expect(await basePathOf({ url }), url).to.equal(null);
    }
    for (const url of [
      '/v1',
      'v1',
      '/v1/',
      './v1',
      'https://a.example/v1',
      'HTTPS://u@a.example:8080/v1/',
      '//a/v1',
    ]) {
      expect(await basePathOf({ url }, { url: '/v2' }), url).to.equal('/v1');
    }
  });

  it('replaces server variables by their defaults', async () => {
    const variables = { version: { default: 'v2', enum: ['v1', 'v2'] }, host: { default: 'a.example' } };
    expect(await basePathOf({ url: 'https://{host}/api/{version}', variables })).to.equal('/api/v2');
    expect(await basePathOf({ url: '/{base}', variables: { base: { default: '' } } })).to.equal(null);
    expect(await basePathOf({ url: '{host}{path}', variables: { path: { default: '/v3' } } })).to.equal(null);
    expect(await basePathOf({ url: 'https://{unknown}/v4', variables })).to.equal('/v4');
  });

  it('reads no base path, with a warning, when the URL of the server has no valid one', async () => {
    const urls = ['/a/../b', '../v1', '/a//b', '/v1?x=1', '/v1#x', '/a*', '/%zz', '/a b'];
    for (const url of [...urls, '/{other}', '/{constructor}']) {
      const { basePath, warnings } = await read(documentWith({ servers: [{ url }] }));
      expect(basePath).to.equal(null);
      expect(warnings).to.have.lengthOf(1);
      expect(warnings[0]).to.match(/^\/servers\/0\/url: the path /);
    }
  });

  it('leaves out paths of a document that are not valid routes, with a warning each', async () => {
    const paths = [
      '/a{b}{c}',
      '/b/*',
      '/c?x=1',
      '/d#x',
      '/e//f',
      '/g h',
      '/{x}/{x}',
      '/i\u0007',
      '/:j',
      '/l%2F..',
      `/${'k'.repeat(3000)}`,
    ];
    const item = { get: operation() };
    const { operations, warnings } = await read(
      withPaths({ ...Object.fromEntries(paths.map((path) => [path, item])), '/ok': { get: operation() } }),
    );
    expect(operations.map(({ path }) => path)).to.deep.equal(['/ok']);
    expect(warnings).to.have.lengthOf(paths.length);
    for (const warning of warnings) expect(warning).to.match(/^GET \/.*: left out: the path /);
  });

  it('ignores servers of paths and operations, with one warning', async () => {
    const servers = [{ url: '/other' }];
    const item = { servers, get: operation({ servers }) };
    const { basePath, warnings } = await read(
      withPaths({ '/a': item, '/b': { get: operation({ servers }) } }),
    );
    expect(basePath).to.equal(null);
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.match(/servers .* are ignored/);
  });

  it('does not strip the base path from the paths of operations', async () => {
    const { operations } = await read(
      documentWith({
        servers: [{ url: '/v1' }],
        paths: { '/v1/pets': { get: operation() }, '/pets': { get: operation() } },
      }),
    );
    expect(operations.map(({ path }) => path)).to.deep.equal(['/v1/pets', '/pets']);
  });

  it('warns of the flaws of each operation, in the order of the document', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 60 }, (_, at) => [`/p${at}/{id}`, { get: operation(), head: operation() }]),
    );
    const { warnings } = await read(withPaths(many), 1_000);
    expect(warnings).to.have.lengthOf(120);
    expect(warnings[0]).to.match(/^GET \/p0\/\{id\}: the path parameter "id" is not described/);
    expect(warnings[1]).to.match(/^HEAD \/p0\/\{id\}: left out/);
    expect(warnings[119]).to.match(/^HEAD \/p59\/\{id\}: left out/);
  });

  it('lists all path parameters, in the order of the path, before the others', async () => {
    const parameters = [
      { name: 'q', in: 'query', schema: {} },
      { name: 'b', in: 'path', required: true, schema: { type: 'integer' } },
    ];
    const { operations } = await read(withPaths({ '/{a}/{b}': { get: operation({ parameters }) } }));
    expect(operations[0]?.parameters.map(({ name, type }) => `${name} ${type}`)).to.deep.equal([
      'a string',
      'b integer',
      'q any',
    ]);
  });

  it('adjusts the parameters of an operation to its path, with warnings', async () => {
    const parameters = [
      { name: 'gone', in: 'path', required: true, schema: {} },
      { name: 'Accept', in: 'header', schema: {} },
      { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
    ];
    const { operations, warnings } = await read(withPaths({ '/a/{id}': { get: operation({ parameters }) } }));
    expect(operations[0]?.parameters.map((each) => `${each.in} ${each.name} ${each.type}`)).to.deep.equal([
      'path id string',
      'header X-Trace string',
    ]);
    expect(warnings).to.have.lengthOf(2);
    expect(warnings.join()).to.match(/"gone" is left out.*"id" is not described/);
  });

  it('truncates long descriptions of operations, and prefers their summary', async () => {
    const long = `${'x'.repeat(65_534)}😀😀`;
    const { operations, warnings } = await read(
      withPaths({
        '/a': { get: operation({ summary: 'Short', description: 'Long' }) },
        '/b': { get: operation({ summary: '', description: long }) },
        '/c': { get: operation() },
      }),
    );
    const [first, second, third] = operations.map(({ description }) => description);
    expect(first).to.equal('Short');
    expect(second).to.equal(`${'x'.repeat(65_534)}…`);
    expect(third).to.equal(null);
    expect(warnings).to.have.lengthOf(1);
  });

  it('names an operation that two paths share only once', async () => {
    const { operations, warnings } = await read(
      withPaths({ '/a': { get: operation({ operationId: 'one' }) }, '/b': { $ref: '#/paths/~1a' } }),
    );
    expect(operations.map(({ name }) => name)).to.deep.equal(['one', 'GET /b']);
    expect(warnings.join()).to.match(/^Named by method and path, .*: GET \/b \(that of GET \/a\)$/);
  });
});
