/** The policy `validate` of documents: what they describe, in the schemas of JSON Schema 2020-12. */
import { expect } from 'chai';
import { readOpenApi } from '../../../src/import/openapi/read-openapi.js';
import { compileValidate, type ValidatePolicy } from '../../../src/model/policies/validate.js';
import { documentText, documentWith, RESPONSES, withTexts } from '../documents/documents.js';

const read = async (text: string) => {
  const document = withTexts(await readOpenApi(text, { operations: 1000, validation: 'enforce' }));
  const policies = new Map(
    document.operations.flatMap(({ name, validate }) =>
      validate === undefined ? [] : [[name, JSON.parse(validate) as ValidatePolicy]],
    ),
  );
  return { policies, warnings: document.warnings };
};
const post = (schema: object, schemas: object = {}, version = '3.0.3') =>
  documentWith(
    {
      paths: {
        '/a': {
          post: { requestBody: { content: { 'application/json': { schema } } }, responses: RESPONSES },
        },
      },
      components: { schemas },
    },
    version,
  );
const schemaOf = async (text: string) => {
  const { policies, warnings } = await read(text);
  const { body, components } = policies.get('POST /a') ?? {};
  return { schema: body?.content['application/json']?.schema, named: components?.schemas, warnings };
};

describe('OpenAPI: validation of requests', () => {
  it('has the parameters of path item and operation, in their styles, and the body with all that it refers to', async () => {
    const { policies, warnings } = await read(
      documentWith({
        paths: {
          '/pets/{id}': {
            parameters: [
              { name: 'id', in: 'path', required: true, schema: { type: 'integer', example: 1 } },
              { name: 'limit', in: 'query', schema: { type: 'string' } },
            ],
            put: {
              operationId: 'putPet',
              parameters: [
                { $ref: '#/components/parameters/Limit' },
                {
                  name: 'ids',
                  in: 'query',
                  explode: false,
                  schema: { type: 'array', items: { type: 'integer' } },
                },
                { name: 'Authorization', in: 'header', schema: { type: 'string' } },
                {
                  name: 'where',
                  in: 'query',
                  content: { 'application/json': { schema: { type: 'object' } } },
                },
              ],
              requestBody: { $ref: '#/components/requestBodies/Pet' },
              responses: RESPONSES,
            },
          },
        },
        components: {
          parameters: {
            Limit: { name: 'limit', in: 'query', required: true, schema: { type: 'integer', maximum: 9 } },
          },
          requestBodies: {
            Pet: {
              required: true,
              content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
            },
          },
          schemas: {
            Pet: {
              type: 'object',
              title: 'A pet',
              required: ['id', 'kind'],
              properties: {
                id: { type: 'integer', readOnly: true },
                kind: { $ref: '#/components/schemas/Kind' },
                children: { type: 'array', items: { $ref: '#/components/schemas/Pet' } },
              },
            },
            Kind: { type: 'string', enum: ['cat', 'dog'], nullable: true },
            Other: { type: 'string' },
          },
        },
      }),
    );
    expect(warnings).to.deep.equal([]);
    expect(policies.get('putPet')).to.deep.equal({
      mode: 'enforce',
      parameters: [
        { in: 'path', name: 'id', schema: { type: 'integer' } },
        { in: 'query', name: 'limit', required: true, schema: { type: 'integer', maximum: 9 } },
        { in: 'query', name: 'ids', explode: false, schema: { type: 'array', items: { type: 'integer' } } },
        { in: 'query', name: 'where', content: { 'application/json': { schema: { type: 'object' } } } },
      ],
      body: {
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
      },
      components: {
        schemas: {
          Pet: {
            type: 'object',
            // Clients do not send what is read-only.
            required: ['kind'],
            properties: {
              id: { type: 'integer' },
              kind: { $ref: '#/components/schemas/Kind' },
              children: { type: 'array', items: { $ref: '#/components/schemas/Pet' } },
            },
          },
          Kind: { type: ['string', 'null'], enum: ['cat', 'dog', null] },
        },
      },
    });
  });

  it('converts what 3.0 writes in another way', async () => {
    const { schema, warnings } = await schemaOf(
      post({
        type: 'object',
        properties: {
          a: { type: 'number', minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
          b: { nullable: true, allOf: [{ type: 'string', format: 'date' }] },
          c: { type: 'string', format: 'binary', nullable: false, 'x-more': 1, xml: {} },
        },
        discriminator: { propertyName: 'a' },
        additionalProperties: {},
      }),
    );
    expect(warnings).to.deep.equal([]);
    expect(schema).to.deep.equal({
      type: 'object',
      properties: {
        a: { type: 'number', exclusiveMinimum: 1, maximum: 5 },
        b: { anyOf: [{ allOf: [{ type: 'string', format: 'date' }] }, { type: 'null' }] },
        c: { type: 'string', format: 'binary' },
      },
      additionalProperties: true,
    });
  });

  it('leaves out what cannot be enforced, with a warning, and refuses no more than before', async () => {
    const { schema, named, warnings } = await schemaOf(
      post(
        {
          type: 'object',
          properties: {
            a: { type: 'string', pattern: '^(?=x)', minLength: 1 },
            b: { not: { pattern: '(a)\\1' } },
            c: { $ref: '#/components/schemas/A' },
            d: { type: 'string', format: 'idn-hostname' },
            e: { $ref: '#/components/schemas/Odd' },
            f: { $dynamicRef: '#x' },
          },
          patternProperties: { '(?<!x)y': { type: 'string' } },
          additionalProperties: false,
        },
        { A: { allOf: [{ $ref: '#/components/schemas/A' }] }, Odd: { type: 'object', minProperties: 'two' } },
        '3.1.0',
      ),
    );
    expect(schema).to.deep.equal({
      type: 'object',
      properties: {
        a: { type: 'string', minLength: 1 },
        b: {},
        c: { $ref: '#/components/schemas/A' },
        d: { type: 'string' },
        e: { $ref: '#/components/schemas/Odd' },
        f: true,
      },
      patternProperties: {},
    });
    expect(named).to.deep.equal({ A: true, Odd: { type: 'object' } });
    const told = warnings.filter((text) => /validated/.test(text));
    expect(told).to.have.length(7);
    for (const part of [
      'properties.a.pattern',
      'properties.b.not',
      'schemas.A ',
      'Odd.minProperties',
      'idn-hostname',
    ])
      expect(told.join('\n')).to.include(part);
  });

  it('lets bodies of other types through, and says so', async () => {
    const multipart = { schema: { type: 'object', properties: { a: { type: 'string' } } } };
    const form = { schema: { type: 'object', properties: { a: { type: 'integer' } } } };
    const { policies, warnings } = await read(
      documentWith({
        paths: {
          '/a': {
            post: {
              requestBody: {
                content: {
                  'multipart/form-data': multipart,
                  'application/x-www-form-urlencoded': form,
                  'image/png': {},
                },
              },
              responses: RESPONSES,
            },
          },
        },
      }),
    );
    expect(policies.get('POST /a')?.body?.content).to.deep.equal({
      'multipart/form-data': {},
      'application/x-www-form-urlencoded': form,
      'image/png': {},
    });
    expect(warnings).to.deep.equal([
      'POST /a: bodies of the type multipart/form-data are let through without validation',
    ]);
  });

  it('of real documents can be enforced', async () => {
    for (const name of ['museum-3.1.yaml', 'petstore-3.0.yaml', 'path-items-3.0.json']) {
      const { policies } = await read(documentText(name));
      expect(policies.size, name).to.be.greaterThan(0);
      for (const policy of policies.values()) expect(compileValidate(policy), name).to.be.an('object');
    }
    expect(
      (await readOpenApi(documentText('museum-3.1.yaml'), { operations: 100 })).operations[0],
    ).not.to.have.property('validate');
  });
});
