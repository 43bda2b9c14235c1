import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { type TempDir, tempDir } from '../../support/temp.js';
import { documentWith, RESPONSES, read } from '../documents/documents.js';

const READABLE = { paths: { '/a': { get: { responses: RESPONSES } } } };

/** A document with the schema `A`, and others. */
const withSchema = (schema: object, others: object = {}, version = '3.1.0') =>
  documentWith({ components: { schemas: { A: schema, ...others } } }, version);

describe('OpenAPI: references', () => {
  describe('external references', () => {
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

    it('follows no external reference, fetches nothing, and warns of it', async () => {
      const file = join(folder.path, 'other.json');
      const urls = [url, `${url}#/x`, `file://${file}`, '//x/y', 'C:\\x.yaml'];
      for (const target of [...urls, file, '../other.yaml', 'other.yaml', 'other.yaml#/x', './a']) {
        const reference = { $ref: target };
        const documents = [
          withSchema(reference),
          withSchema({ properties: { default: reference } }),
          withSchema({ allOf: [{ items: reference }] }),
          withSchema({ $dynamicRef: target }),
          withSchema({ $id: url, properties: { x: reference } }),
          documentWith({ paths: { '/a': { get: { responses: { default: reference } } } } }),
          documentWith({ components: { examples: { one: reference } }, ...READABLE }),
          documentWith({ components: { callbacks: { one: { '{$url}': reference } } } }),
          documentWith({ webhooks: { one: reference } }, '3.1.0'),
        ];
        for (const document of documents) {
          const { operations, warnings } = await read(document);
          expect(operations).to.have.lengthOf(1);
          const named = warnings.filter((warning) => warning.includes('$ref'));
          expect(named).to.have.lengthOf(1);
          expect(named[0]).to.match(/ is a URL, | leads out of the bundle, | import a ZIP bundle /);
        }
      }
      expect(requests).to.equal(0);
    });

    it('leaves out only operations that cannot be read without the target of an external reference', async () => {
      const reference = { $ref: 'parts.yaml#/x' };
      const { operations, warnings } = await read(
        documentWith({
          paths: {
            '/item': reference,
            '/parameter': { get: { parameters: [reference], responses: RESPONSES } },
            '/body': { post: { requestBody: reference, responses: RESPONSES } },
            '/schema': {
              post: {
                requestBody: { content: { 'application/json': { schema: reference } } },
                parameters: [{ name: 'a', in: 'query', schema: reference }],
                responses: { default: reference },
              },
            },
          },
        }),
      );
      expect(operations.map(({ name }) => name)).to.deep.equal(['POST /schema']);
      expect(operations[0]?.parameters[0]).to.include({ name: 'a', type: 'any' });
      expect(operations[0]?.body).to.include({ type: 'any' });
      const reason =
        '$ref "parts.yaml#/x" is in another file, which is not sent along: import a ZIP bundle of all files of the document';
      expect(warnings).to.deep.equal([
        `/paths/~1item: ${reason}`,
        `/paths/~1item: left out: ${reason}`,
        `GET /parameter: left out: parameters/0: ${reason}`,
        `POST /body: left out: requestBody: ${reason}`,
      ]);
    });

    it('ignores external references in data', async () => {
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

    it('fetches nothing for `$schema` and `$id`', async () => {
      const schema = { $schema: url, $id: url, type: 'object' };
      const text = documentWith({ jsonSchemaDialect: url, components: { schemas: { A: schema } } }, '3.1.0');
      expect((await read(text)).operations).to.have.lengthOf(1);
      expect(requests).to.equal(0);
    });
  });

  it('follows no circular reference, and warns of it', async () => {
    const own = { $ref: '#/components/schemas/A' };
    const circular = [
      withSchema(own),
      withSchema({ $ref: '#/components/schemas/B' }, { B: own }),
      withSchema({ $ref: '#/components/schemas/A/x' }),
    ];
    for (const text of circular) expect((await read(text)).warnings.join()).to.match(/is circular/);
    const { operations, warnings } = await read(
      documentWith({ paths: { '/a': { $ref: '#/paths/~1a' }, '/b': { get: { responses: RESPONSES } } } }),
    );
    expect(operations.map(({ name }) => name)).to.deep.equal(['GET /b']);
    expect(warnings.at(-1)).to.match(/^\/paths\/~1a: left out: .*is circular/);
  });

  it('warns of a reference without a target, and reads the rest of the document', async () => {
    for (const target of [
      '#/components/schemas/B',
      '#/x/y',
      '#other',
      '#/components/schemas/constructor',
      '#/%zz',
    ]) {
      const { operations, warnings } = await read(withSchema({ $ref: target }));
      expect(operations).to.have.lengthOf(1);
      expect(warnings).to.have.lengthOf(1);
      expect(warnings[0]).to.match(/^\/components\/schemas\/A: .*(has no target|not valid)/);
    }
  });

  it('reads schemas whose references form cycles', async () => {
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

  it('warns of a reference into data, and does not follow it', async () => {
    for (const [key, value] of Object.entries({
      example: {},
      default: {},
      const: {},
      enum: [{}],
      examples: [{}],
    })) {
      const target = `#/components/schemas/B/${key}${Array.isArray(value) ? '/0' : ''}`;
      const { warnings } = await read(withSchema({ $ref: target }, { B: { [key]: value } }));
      expect(warnings.join()).to.match(
        new RegExp(`^/components/schemas/A: \\$ref ".*" points into "${key}", which is data`),
      );
    }
    const names = { default: { type: 'string' }, example: { $ref: '#/components/schemas/default' } };
    expect(
      (await read(withSchema({ $ref: '#/components/schemas/example' }, names))).operations,
    ).to.have.lengthOf(1);
  });

  describe('references into extensions', () => {
    const inExtension = (item: object, others: object = {}) =>
      documentWith({ paths: { '/z': { $ref: '#/x-items/a' } }, 'x-items': { a: item, ...others } });
    const operation = { operationId: 'z', responses: RESPONSES };

    it('resolves references into extensions', async () => {
      const { operations } = await read(inExtension({ get: operation }));
      expect(operations.map(({ name }) => name)).to.deep.equal(['z']);
      const through = documentWith({
        paths: { '/z': { $ref: '#/x-items/default/example' } },
        'x-items': { default: { $ref: '#/x-others' } },
        'x-others': { example: { get: operation } },
      });
      expect((await read(through)).operations.map(({ name }) => name)).to.deep.equal(['z']);
    });

    it('reads the targets of references into extensions like the rest of the document', async () => {
      const { operations, warnings } = await read(
        inExtension(
          { $ref: '#/x-items/b' },
          {
            b: { get: { ...operation, requestBody: { $ref: 'https://a.example/b' } }, post: operation },
          },
        ),
      );
      expect(operations.map(({ name }) => name)).to.deep.equal(['z']);
      expect(warnings.join()).to.match(/\/x-items\/b\/get\/requestBody: \$ref "https:.*" is a URL/);
      expect(warnings.at(-1)).to.match(/^GET \/z: left out: requestBody/);
    });
  });

  it('leaves out an operation with a reference to a target of the wrong kind', async () => {
    const get = { parameters: [{ $ref: '#/info' }], responses: RESPONSES };
    const { warnings } = await read(
      documentWith({ paths: { '/a': { get, put: { responses: RESPONSES } } } }),
    );
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.match(/^GET \/a: left out: parameters\/0: is not a parameter/);
  });
});
