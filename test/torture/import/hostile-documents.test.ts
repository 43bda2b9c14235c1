import { expect } from 'chai';
import fc from 'fast-check';
import { AppError } from '../../../src/errors.js';
import { documentWith, expectRejected, RESPONSES, read } from '../../import/documents/documents.js';

const HEAD = 'openapi: 3.0.0\ninfo: {title: x, version: "1"}\npaths: {}\n';

/** Each level has ten aliases of the one before. */
function aliasBomb(repeat: (alias: string) => string): string {
  const names = [...'abcdefghij'];
  const levels = names.slice(1).map((name, at) => `  ${name}: &${name} ${repeat(`*${names[at]}`)}`);
  return `${HEAD}x-bomb:\n  a: &a {x: 1}\n${levels.join('\n')}\n`;
}

describe('OpenAPI: hostile documents', () => {
  it('rejects documents with alias bombs', async () => {
    await expectRejected(
      read(aliasBomb((alias) => `[${Array(10).fill(alias).join()}]`)),
      /expands more than \d+ aliases/,
    );
    await expectRejected(read(`${HEAD}x-a: &a [*a]`), /nested more than/);
    const leaf = `[${Array(5_000).fill(1).join()}]`;
    await expectRejected(
      read(`${HEAD}x-a: &a ${leaf}\nx-b: [${Array(1_000).fill('*a').join()}]`),
      /more than \d+ values/,
    );
  });

  it('accepts a document with hundreds of aliases of small values', async () => {
    const text = `${HEAD.replace('{}', '{/a: {get: {responses: &any {default: &one {description: x}}}}}')}x-a: [${Array(500).fill('*one').join()}]`;
    expect((await read(text)).operations).to.have.lengthOf(1);
  });

  it('accepts a document with merge keys', async () => {
    const text = `${HEAD.replace('{}', '')}  /a:\n    get: &get\n      summary: First\n      responses: {default: {description: x}}\n    put: {<<: *get, summary: Second}\n`;
    expect((await read(text)).operations.map(({ description }) => description)).to.deep.equal([
      'First',
      'Second',
    ]);
  });

  it('rejects documents that are nested deeply', async () => {
    const deep = 100_000;
    await expectRejected(read('['.repeat(deep)), /nested more than 256 levels deep/);
    await expectRejected(
      read(`{"openapi": "3.0.0", "paths": {}, "x": ${'['.repeat(deep)}${']'.repeat(deep)}}`),
      /nested more than/,
    );
    await expectRejected(
      read(`{"openapi": "3.0.0", "paths": {}, "a": ${'{"a":'.repeat(deep)}1${'}'.repeat(deep + 1)}`),
      /nested more than/,
    );
    await expectRejected(
      read(`${HEAD}${Array.from({ length: 400 }, (_, at) => `${' '.repeat(at)}a:`).join('\n')}`),
      /nested/,
    );
  });

  it('rejects chains of thousands of schemas', async () => {
    const schemas = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, at) => [
        `S${at}`,
        { allOf: [{ $ref: `#/components/schemas/S${at + 1}` }] },
      ]),
    );
    const content = { 'application/json': { schema: { $ref: '#/components/schemas/S0' } } };
    const text = documentWith({
      paths: { '/a': { post: { requestBody: { content }, responses: RESPONSES } } },
      components: { schemas: { ...schemas, S20000: {} } },
    });
    await expectRejected(read(text), /too long chains of references/);
  });

  it('limits checks of documents that take quadratic time', async () => {
    const keys = Array.from({ length: 100_000 }, (_, at) => `  k${at}: 1`);
    await expectRejected(read(`${HEAD}x-keys:\n${keys.join('\n')}`), /no operation/);
    const parameters = Array.from({ length: 50_000 }, (_, at) => ({
      name: `p${at}`,
      in: 'query',
      schema: {},
    }));
    await expectRejected(
      read(documentWith({ paths: { '/a': { get: { parameters, responses: RESPONSES } } } })),
      /GET \/a: left out: has more than 500 parameters/,
    );
    const values = Array.from({ length: 20_000 }, (_, at) => ({ value: at }));
    const items = { enum: values, required: values.map(({ value }) => `r${value}`) };
    const tags = values.map(({ value }) => ({ name: `t${value}` }));
    expect(
      (await read(documentWith({ tags, components: { schemas: { A: items } } }))).operations,
    ).to.have.lengthOf(1);
    const braces = `/${'{'.repeat(1_000_000)}`;
    const { warnings } = await read(
      documentWith({
        paths: { '/a': { get: { responses: RESPONSES } }, [braces]: { get: { responses: RESPONSES } } },
      }),
    );
    expect(warnings.join()).to.match(/^GET .*: left out: the path must have at most/);
  });

  describe('repeated lookups', () => {
    const content = (schema: object) => ({ content: { 'application/json': { schema } } });
    const many = <T>(count: number, make: (at: number) => readonly [string, T]) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => make(at)));
    const ALL = { $ref: '#/components/schemas/All' };
    /** Each schema references all others. */
    const tangle = (count: number) => ({
      ...many(count, (at) => [`B${at}`, { type: 'object', properties: { [`p${at}`]: { allOf: [ALL] } } }]),
      All: { allOf: Array.from({ length: count }, (_, at) => ({ $ref: `#/components/schemas/B${at}` })) },
    });

    it('reads thousands of schemas that reference all others', async function () {
      this.timeout(120_000);
      const text = documentWith({
        paths: { '/a': { post: { requestBody: content(ALL), responses: RESPONSES } } },
        components: { schemas: tangle(10_000) },
      });
      const { operations, warnings } = await read(text);
      expect(operations[0]?.body?.members).to.deep.equal([]);
      expect(warnings.join()).to.match(/has 10000 members/);
    });

    it('reads thousands of parameters whose schemas reference all others', async function () {
      this.timeout(120_000);
      const schemas = tangle(5_000);
      const parameters = many(10_000, (at) => [
        `P${at}`,
        { name: `p${at}`, in: 'query', schema: { allOf: [ALL] } },
      ]);
      const paths = many(50, (at) => [
        `/p${at}`,
        {
          get: {
            parameters: Array.from({ length: 200 }, (_, n) => ({
              $ref: `#/components/parameters/P${at * 200 + n}`,
            })),
            responses: RESPONSES,
          },
        },
      ]);
      const { operations } = await read(documentWith({ paths, components: { schemas, parameters } }));
      expect(operations).to.have.lengthOf(50);
    });

    it('rejects thousands of bodies whose schemas extend all others', async () => {
      const paths = many(2_000, (at) => [
        `/p${at}`,
        { post: { requestBody: content({ allOf: [ALL] }), responses: RESPONSES } },
      ]);
      const text = documentWith({ paths, components: { schemas: tangle(2_000) } });
      await expectRejected(
        read(text, 5_000),
        /^\/components\/schemas: reference each other in too many ways/,
      );
    });

    it('rejects bodies whose schemas all require the same thousands of members', async function () {
      this.timeout(120_000);
      const paths = many(5_000, (at) => [
        `/p${at}`,
        { post: { requestBody: content({ allOf: [ALL] }), responses: RESPONSES } },
      ]);
      const required = Array.from({ length: 100_000 }, (_, at) => `m${at}`);
      const schemas = { All: { type: 'object', required } };
      await expectRejected(
        read(documentWith({ paths, components: { schemas } }), 5_000),
        /^\/components\/schemas: reference each other in too many ways/,
      );
    });

    it('reads a large path item that many paths reference', async function () {
      this.timeout(120_000);
      const item = { get: { responses: RESPONSES }, ...many(50_000, (at) => [`x-${at}`, 0]) };
      const paths = { '/all': item, ...many(4_000, (at) => [`/p${at}`, { $ref: '#/paths/~1all' }]) };
      expect((await read(documentWith({ paths }), 5_000)).operations).to.have.lengthOf(4_001);
    });
  });

  it('reads names with a special meaning in JavaScript without polluting prototypes', async () => {
    const polluting = `{"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {"/a": {"get": {"__proto__": {"polluted": 1}}}}, "__proto__": {"polluted": 1}}`;
    for (const text of [polluting, `${HEAD.replace('{}', '{/a: {get: {}}}')}__proto__: {polluted: 1}`]) {
      expect((await read(text)).operations).to.have.lengthOf(1);
    }
    expect({}).to.not.have.property('polluted');
    const properties = { constructor: { type: 'string' }, toString: { type: 'integer' }, hasOwnProperty: {} };
    const content = { 'application/json': { schema: { type: 'object', properties } } };
    const text = documentWith({
      paths: { '/a': { post: { requestBody: { content }, responses: RESPONSES } } },
    });
    const [operation] = (await read(text)).operations;
    expect(operation?.body?.members.map(({ name, type }) => [name, type])).to.deep.equal([
      ['constructor', 'string'],
      ['toString', 'integer'],
      ['hasOwnProperty', 'any'],
    ]);
  });

  it('accepts or rejects arbitrary JSON without other errors', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ maxDepth: 6 }), async (text) => acceptOrReject(text)),
      { numRuns: 300 },
    );
  });

  it('accepts or rejects documents with arbitrary values without other errors', async () => {
    const anything = fc.jsonValue({ maxDepth: 3 });
    const key = fc.constantFrom(
      'get',
      'post',
      'parameters',
      '$ref',
      'requestBody',
      'servers',
      'x-a',
      'summary',
    );
    const reference = fc.constantFrom(
      '#',
      '#/paths',
      '#/paths/~1a',
      '#/components/schemas/A',
      '#/info',
      '#A',
      'x.json',
    );
    const item = fc.dictionary(key, fc.oneof(anything, reference, fc.constant({ responses: RESPONSES })));
    const schema = fc.dictionary(
      fc.constantFrom(
        'type',
        'allOf',
        'properties',
        '$ref',
        'items',
        'required',
        'oneOf',
        'nullable',
        'enum',
      ),
      fc.oneof(anything, reference, fc.array(fc.record({ $ref: reference }))),
    );
    const content = fc.dictionary(
      fc.constantFrom('application/json', 'text/plain', ''),
      fc.record({ schema }),
    );
    const document = fc.record({
      openapi: fc.constantFrom('3.0.0', '3.1.0'),
      info: fc.oneof({ weight: 5, arbitrary: fc.constant({ title: 'x', version: '1' }) }, anything),
      paths: fc.dictionary(
        fc.constantFrom('/a', '/b/{x}', '/c.{d}', '/b/{y}'),
        fc.oneof(
          item,
          fc.record({
            post: fc.record({
              responses: fc.constant(RESPONSES),
              requestBody: fc.record({ content }),
              parameters: fc.array(
                fc.record({ name: fc.string(), in: fc.constantFrom('query', 'path'), schema }),
              ),
            }),
          }),
        ),
      ),
      components: fc.record({ schemas: fc.record({ A: schema }) }),
      servers: fc.oneof(fc.constant([]), fc.array(fc.record({ url: fc.webPath() })), anything),
    });
    await fc.assert(
      fc.asyncProperty(document, async (value) => acceptOrReject(JSON.stringify(value))),
      { numRuns: 200 },
    );
  });
});

async function acceptOrReject(text: string): Promise<void> {
  try {
    await read(text);
  } catch (error) {
    expect(error, text).to.be.instanceOf(AppError);
  }
}
