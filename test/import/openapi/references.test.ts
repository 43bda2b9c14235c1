import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { type TempDir, tempDir } from '../../support/temp.js';
import { documentWith, expectRejected, RESPONSES, read } from '../documents/documents.js';

/** A document with the schema `A`, and others. */
const withSchema = (schema: object, others: object = {}, version = '3.1.0') =>
  documentWith({ components: { schemas: { A: schema, ...others } } }, version);

describe('OpenAPI: references', () => {
  describe('that are external', () => {
    let server: Server;
    let folder: TempDir;
    let requests = 0;
    let url: string;

    before(async () => {
      folder = await tempDir('references');
      await writeFile(join(folder.path, 'other.json'), '{"type": "string"}');
      server = createServer((_request, response) => {
        requests++;
        response.end('{"type": "string"}');
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/other.json`;
    });
    after(async () => {
      await new Promise((resolve) => server.close(resolve));
      await folder.remove();
    });

    it('are rejected anywhere, and nothing is fetched or read', async () => {
      const file = join(folder.path, 'other.json');
      for (const target of [
        url,
        `${url}#/x`,
        file,
        `file://${file}`,
        'other.yaml',
        'other.yaml#/x',
        './a',
        '//x/y',
      ]) {
        const reference = { $ref: target };
        const documents = [
          withSchema(reference),
          withSchema({ properties: { default: reference } }),
          withSchema({ allOf: [{ items: reference }] }),
          withSchema({ $dynamicRef: target }),
          withSchema({ $id: url, properties: { x: reference } }),
          documentWith({ paths: { '/a': reference } }),
          documentWith({ paths: { '/a': { get: { responses: { default: reference } } } } }),
          documentWith({ paths: { '/a': { get: { parameters: [reference], responses: RESPONSES } } } }),
          documentWith({ paths: { '/a': { post: { requestBody: reference, responses: RESPONSES } } } }),
          documentWith({ components: { examples: { one: reference } } }),
          documentWith({ components: { callbacks: { one: { '{$url}': reference } } } }),
          documentWith({ webhooks: { one: reference } }, '3.1.0'),
        ];
        for (const document of documents) await expectRejected(read(document), /is external/);
      }
      expect(requests).to.equal(0);
    });

    it('are rejected with their location', async () => {
      const text = documentWith({ paths: { '/a': { get: { responses: { default: { $ref: 'x.yaml' } } } } } });
      await expectRejected(read(text), /^\/paths\/~1a\/get\/responses\/default: \$ref "x\.yaml" is external/);
    });

    it('are ignored in data', async () => {
      const data = { $ref: url };
      const text = withSchema({
        type: 'object',
        example: data,
        default: data,
        const: data,
        enum: [data],
        examples: [data],
        'x-other': data,
        properties: { $ref: { type: 'string' } },
      });
      expect((await read(text)).operations).to.have.lengthOf(1);
      expect(requests).to.equal(0);
    });

    it('are not fetched for `$schema` and `$id`', async () => {
      const schema = { $schema: url, $id: url, type: 'object' };
      const text = documentWith({ jsonSchemaDialect: url, components: { schemas: { A: schema } } }, '3.1.0');
      expect((await read(text)).operations).to.have.lengthOf(1);
      expect(requests).to.equal(0);
    });
  });

  it('that are circular are rejected', async () => {
    const own = { $ref: '#/components/schemas/A' };
    await expectRejected(read(withSchema(own)), /^\/components\/schemas\/A: .*is circular/);
    await expectRejected(read(withSchema({ $ref: '#/components/schemas/B' }, { B: own })), /is circular/);
    await expectRejected(read(withSchema({ $ref: '#/components/schemas/A/x' })), /is circular/);
    const item = { $ref: '#/paths/~1a' };
    await expectRejected(read(documentWith({ paths: { '/a': item } })), /^\/paths\/~1a: .*is circular/);
  });

  it('without target are rejected', async () => {
    for (const target of [
      '#/components/schemas/B',
      '#/x/y',
      '#other',
      '#/components/schemas/constructor',
      '#/%zz',
    ]) {
      await expectRejected(
        read(withSchema({ $ref: target })),
        /^\/components\/schemas\/A: .*(has no target|not valid)/,
      );
    }
  });

  it('between schemas may form cycles', async () => {
    const body = (schema: object) => ({ content: { 'application/json': { schema } } });
    const text = documentWith({
      paths: {
        '/a': { post: { requestBody: body({ $ref: '#/components/schemas/A' }), responses: RESPONSES } },
      },
      components: {
        schemas: {
          A: { type: 'object', properties: { b: { $ref: '#/components/schemas/B' } } },
          B: { type: 'object', properties: { a: { $ref: '#/components/schemas/A' } } },
          Base: { allOf: [{ $ref: '#/components/schemas/Child' }] },
          Child: { allOf: [{ $ref: '#/components/schemas/Base' }] },
        },
      },
    });
    const [operation] = (await read(text)).operations;
    expect(operation?.body?.members).to.deep.equal([
      { name: 'b', required: false, type: 'object', nullable: false },
    ]);
  });

  it('into data are rejected', async () => {
    for (const [key, value] of Object.entries({
      example: {},
      default: {},
      const: {},
      enum: [{}],
      examples: [{}],
    })) {
      const target = `#/components/schemas/B/${key}${Array.isArray(value) ? '/0' : ''}`;
      await expectRejected(
        read(withSchema({ $ref: target }, { B: { [key]: value } })),
        new RegExp(`^/components/schemas/A: \\$ref ".*" points into "${key}", which is data`),
      );
    }
    const names = { default: { type: 'string' }, example: { $ref: '#/components/schemas/default' } };
    expect(
      (await read(withSchema({ $ref: '#/components/schemas/example' }, names))).operations,
    ).to.have.lengthOf(1);
  });

  describe('into extensions', () => {
    const inExtension = (item: object, others: object = {}) =>
      documentWith({ paths: { '/z': { $ref: '#/x-items/a' } }, 'x-items': { a: item, ...others } });
    const operation = { operationId: 'z', responses: RESPONSES };

    it('are resolved', async () => {
      const { operations } = await read(inExtension({ get: operation }));
      expect(operations.map(({ name }) => name)).to.deep.equal(['z']);
      const through = documentWith({
        paths: { '/z': { $ref: '#/x-items/default/example' } },
        'x-items': { default: { $ref: '#/x-others' } },
        'x-others': { example: { get: operation } },
      });
      expect((await read(through)).operations.map(({ name }) => name)).to.deep.equal(['z']);
    });

    it('have targets that are scanned like the rest of the document', async () => {
      await expectRejected(
        read(inExtension({ get: { ...operation, summary: 'a\u0000b' } })),
        /^\/x-items\/a\/get\/summary: must not have NUL characters/,
      );
      await expectRejected(
        read(inExtension({ get: { ...operation, operationId: 'z\ud800' } })),
        /^\/x-items\/a\/get\/operationId: must be Unicode text/,
      );
      await expectRejected(
        read(inExtension({ get: { ...operation, requestBody: { $ref: 'https://a.example/b' } } })),
        /is external/,
      );
      await expectRejected(
        read(inExtension({ $ref: '#/x-items/b' }, { b: { get: { ...operation, summary: '\0' } } })),
        /^\/x-items\/b\/get\/summary: must not have NUL/,
      );
    });

    it('have targets that are validated', async () => {
      await expectRejected(
        read(inExtension({ get: { operationId: 'z' } })),
        /\/paths\/~1z\/get: must have required property 'responses'/,
      );
      await expectRejected(
        read(inExtension({ get: { ...operation, tags: 1 } })),
        /\/paths\/~1z\/get\/tags: must be array/,
      );
    });
  });

  it('to a target of the wrong kind are rejected', async () => {
    const text = documentWith({
      paths: { '/a': { get: { parameters: [{ $ref: '#/info' }], responses: RESPONSES } } },
    });
    await expectRejected(read(text), /^GET \/a: parameters\/0: is not a parameter/);
  });
});
