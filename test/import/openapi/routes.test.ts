import { expect } from 'chai';
import { documentWith, RESPONSES, read, refuses } from '../documents/documents.js';

const operation = (members: object = {}) => ({ responses: RESPONSES, ...members });
const withPaths = (paths: object) => documentWith({ paths });
const basePathOf = async (...servers: object[]) => (await read(documentWith({ servers }))).basePath;

describe('OpenAPI: routes', () => {
  it('takes the base path from the first server', async () => {
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

  it('puts server variables at their defaults', async () => {
    const variables = { version: { default: 'v2', enum: ['v1', 'v2'] }, host: { default: 'a.example' } };
    expect(await basePathOf({ url: 'https://{host}/api/{version}', variables })).to.equal('/api/v2');
    expect(await basePathOf({ url: '/{base}', variables: { base: { default: '' } } })).to.equal(null);
    await refuses(
      basePathOf({ url: '/{other}', variables }),
      /^\/servers\/0: the server variable "other" has no default/,
    );
    await refuses(basePathOf({ url: '/{constructor}', variables }), /"constructor" has no default/);
  });

  it('refuses base paths that cannot be one', async () => {
    for (const url of ['/a/../b', '../v1', '/a//b', '/v1?x=1', '/v1#x', '/a*', '/%zz', '/a b']) {
      await refuses(basePathOf({ url }), /^\/servers\/0\/url: the path /);
    }
  });

  it('leaves out, by name, what cannot be a route', async () => {
    const paths = [
      '/a.{format}',
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

  it('ignores servers of paths and operations, and says so once', async () => {
    const servers = [{ url: '/other' }];
    const item = { servers, get: operation({ servers }) };
    const { basePath, warnings } = await read(
      withPaths({ '/a': item, '/b': { get: operation({ servers }) } }),
    );
    expect(basePath).to.equal(null);
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.match(/servers .* are ignored/);
  });

  it('takes a path that begins like the base path for another than what comes after it', async () => {
    const { operations } = await read(
      documentWith({
        servers: [{ url: '/v1' }],
        paths: { '/v1/pets': { get: operation() }, '/pets': { get: operation() } },
      }),
    );
    expect(operations.map(({ path }) => path)).to.deep.equal(['/v1/pets', '/pets']);
  });

  it('names the first of each kind of warnings, and counts the others', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 60 }, (_, at) => [`/p${at}/{id}`, { get: operation(), head: operation() }]),
    );
    const { warnings } = await read(withPaths(many), 1_000);
    expect(warnings).to.have.lengthOf(102);
    expect(warnings[50]).to.equal('… and 10 more operations that are left out');
    expect(warnings[51]).to.match(/^GET \/p0\/\{id\}: the path parameter "id" is not described/);
    expect(warnings[101]).to.match(/^… and 10 more path parameters/);
  });

  it('has all parameters of a path, in its order, before the others', async () => {
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

  it('makes parameters and path agree, and says so', async () => {
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

  it('cuts descriptions that are too long, and prefers the summary', async () => {
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

  it('names one operation under two paths once', async () => {
    const { operations, warnings } = await read(
      withPaths({ '/a': { get: operation({ operationId: 'one' }) }, '/b': { $ref: '#/paths/~1a' } }),
    );
    expect(operations.map(({ name }) => name)).to.deep.equal(['one', 'GET /b']);
    expect(warnings.join()).to.match(/^GET \/b: is the operation of GET \/a/);
  });
});
