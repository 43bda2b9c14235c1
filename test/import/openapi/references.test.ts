import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { type TempDir, tempDir } from '../../support/temp.js';
import { documentWith, RESPONSES, read, refuses } from '../documents/documents.js';

/** A document with a schema that is a reference, and uses of it. */
const withSchema = (schema: object, others: object = {}, version = '3.1.0') =>
  documentWith({ components: { schemas: { A: schema, ...others } } }, version);

describe('OpenAPI: references', () => {
  describe('out of the document', () => {
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

    it('are refused, wherever they stand, and nothing is fetched or read', async () => {
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
        for (const document of documents) await refuses(read(document), /leads out of the document/);
      }
      expect(requests).to.equal(0);
    });

    it('names the place', async () => {
      const text = documentWith({ paths: { '/a': { get: { responses: { default: { $ref: 'x.yaml' } } } } } });
      await refuses(read(text), /^\/paths\/~1a\/get\/responses\/default: \$ref "x\.yaml" leads out/);
    });

    it('are nothing in what is data', async () => {
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

    it('are not followed for dialects and names of schemas', async () => {
      const schema = { $schema: url, $id: url, type: 'object' };
      const text = documentWith({ jsonSchemaDialect: url, components: { schemas: { A: schema } } }, '3.1.0');
      expect((await read(text)).operations).to.have.lengthOf(1);
      expect(requests).to.equal(0);
    });
  });

  it('to themselves are refused', async () => {
    const own = { $ref: '#/components/schemas/A' };
    await refuses(read(withSchema(own)), /^\/components\/schemas\/A: .*leads back to itself/);
    await refuses(read(withSchema({ $ref: '#/components/schemas/B' }, { B: own })), /leads back to itself/);
    await refuses(read(withSchema({ $ref: '#/components/schemas/A/x' })), /leads back to itself/);
    const item = { $ref: '#/paths/~1a' };
    await refuses(read(documentWith({ paths: { '/a': item } })), /^\/paths\/~1a: .*leads back to itself/);
  });

  it('to nowhere are refused', async () => {
    for (const target of [
      '#/components/schemas/B',
      '#/x/y',
      '#other',
      '#/components/schemas/constructor',
      '#/%zz',
    ]) {
      await refuses(
        read(withSchema({ $ref: target })),
        /^\/components\/schemas\/A: .*(leads to nothing|not valid)/,
      );
    }
  });

  it('may go in circles between schemas', async () => {
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

  it('into data are refused', async () => {
    for (const [key, value] of Object.entries({
      example: {},
      default: {},
      const: {},
      enum: [{}],
      examples: [{}],
    })) {
      const target = `#/components/schemas/B/${key}${Array.isArray(value) ? '/0' : ''}`;
      await refuses(
        read(withSchema({ $ref: target }, { B: { [key]: value } })),
        new RegExp(`^/components/schemas/A: \\$ref ".*" leads into "${key}", which is data; put`),
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

    it('make a part of the document of what is there', async () => {
      const { operations } = await read(inExtension({ get: operation }));
      expect(operations.map(({ name }) => name)).to.deep.equal(['z']);
      const through = documentWith({
        paths: { '/z': { $ref: '#/x-items/default/example' } },
        'x-items': { default: { $ref: '#/x-others' } },
        'x-others': { example: { get: operation } },
      });
      expect((await read(through)).operations.map(({ name }) => name)).to.deep.equal(['z']);
    });

    it('which is looked at like the rest of it', async () => {
      await refuses(
        read(inExtension({ get: { ...operation, summary: 'a\u0000b' } })),
        /^\/x-items\/a\/get\/summary: must not have NUL characters/,
      );
      await refuses(
        read(inExtension({ get: { ...operation, operationId: 'z\ud800' } })),
        /^\/x-items\/a\/get\/operationId: must be Unicode text/,
      );
      await refuses(
        read(inExtension({ get: { ...operation, requestBody: { $ref: 'https://a.example/b' } } })),
        /leads out of the document/,
      );
      await refuses(
        read(inExtension({ $ref: '#/x-items/b' }, { b: { get: { ...operation, summary: '\0' } } })),
        /^\/x-items\/b\/get\/summary: must not have NUL/,
      );
    });

    it('which is validated', async () => {
      await refuses(
        read(inExtension({ get: { operationId: 'z' } })),
        /\/paths\/~1z\/get: must have required property 'responses'/,
      );
      await refuses(
        read(inExtension({ get: { ...operation, tags: 1 } })),
        /\/paths\/~1z\/get\/tags: must be array/,
      );
    });
  });

  it('to something of another kind are refused where they are used', async () => {
    const text = documentWith({
      paths: { '/a': { get: { parameters: [{ $ref: '#/info' }], responses: RESPONSES } } },
    });
    await refuses(read(text), /^GET \/a: parameters\/0: is no parameter/);
  });
});
