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
  it('validates the parameters of path item and operation, and the body with all that it refers to', async () => {
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
            Kind: { type: 'string', enum: ['cat', 'dog', null], nullable: true },
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

  it('converts keywords of OpenAPI 3.0 to those of JSON Schema 2020-12', async () => {
    const { schema, warnings } = await schemaOf(
      post({
        type: 'object',
        properties: {
          a: { type: 'number', minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
          b: { nullable: true, type: 'string', allOf: [{ format: 'date' }] },
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
        b: { type: ['string', 'null'], allOf: [{ format: 'date' }] },
        c: { type: 'string', format: 'binary' },
      },
      additionalProperties: true,
    });
  });

  it('leaves out keywords that cannot be enforced, with a warning, and refuses no more for it', async () => {
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
        f: {},
      },
      patternProperties: {},
    });
    expect(named).to.deep.equal({ A: {}, Odd: { type: 'object' } });
    const told = warnings.filter((text) => /validated/.test(text));
    expect(told).to.have.length(8);
    for (const part of [
      'properties.a.pattern',
      'properties.b.not.pattern',
      'properties.b.not is not validated: not all is validated of a schema that it depends on',
      'schemas.A ',
      'Odd.minProperties',
      'idn-hostname',
    ])
      expect(told.join('\n')).to.include(part);
  });

  it('drops keywords that would refuse more because others are left out, through references', async () => {
    const odd = { pattern: '(a)\\1' };
    const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
    const { schema, named, warnings } = await schemaOf(
      post(
        {
          properties: {
            one: { oneOf: [ref('Deep'), { type: 'integer' }] },
            other: { oneOf: [ref('Deep')], anyOf: [{ minLength: 1 }] },
            not: { not: { properties: { a: ref('Deep') } } },
            // biome-ignore lint/suspicious/noThenProperty: it is a keyword
            if: { if: ref('Odd'), then: { maxLength: 3 }, else: { minLength: 2 }, maxLength: 9 },
            list: { contains: ref('Format'), minContains: 2, maxContains: 3 },
            properties: {
              properties: { not: ref('Whole') },
              allOf: [ref('Names')],
              unevaluatedProperties: false,
            },
            whole: { oneOf: [ref('Whole'), { type: 'null' }], not: ref('Whole') },
          },
        },
        {
          Odd: odd,
          Deep: { type: 'object', properties: { b: { items: ref('Odd') } } },
          Format: { type: 'string', format: 'regex' },
          Names: { patternProperties: { '(?=a)': true } },
          Whole: { type: 'string', pattern: '^a' },
        },
        '3.1.0',
      ),
    );
    const { properties } = schema as { properties: Record<string, unknown> };
    expect(properties).to.deep.equal({
      one: { anyOf: [ref('Deep'), { type: 'integer' }] },
      other: { anyOf: [{ minLength: 1 }], allOf: [{ anyOf: [ref('Deep')] }] },
      not: {},
      if: { maxLength: 9 },
      list: { contains: ref('Format'), minContains: 2 },
      properties: { properties: { not: ref('Whole') }, allOf: [ref('Names')] },
      whole: { oneOf: [ref('Whole'), { type: 'null' }], not: ref('Whole') },
    });
    expect(named).to.have.keys(['Deep', 'Odd', 'Format', 'Names', 'Whole']);
    const told = warnings.join('\n');
    for (const part of [
      'one.oneOf is validated as anyOf',
      'not.not is not',
      'if.if is not',
      'if.else is not',
    ])
      expect(told).to.include(`properties.${part}`);
    for (const part of ['list.maxContains', 'properties.unevaluatedProperties'])
      expect(told).to.include(`properties.${part} is not validated: not all is validated of a schema`);
  });

  it('keeps keywords beside a reference to a reference', async () => {
    const { named } = await schemaOf(
      post(
        { $ref: '#/components/schemas/A' },
        { A: { $ref: '#/components/schemas/B', maxLength: 5 }, B: { type: 'string' } },
        '3.1.0',
      ),
    );
    expect(named).to.deep.equal({
      A: { $ref: '#/components/schemas/B', maxLength: 5 },
      B: { type: 'string' },
    });
  });

  it('lets bodies of undescribed types through when a document has an invalid media type', async () => {
    const content = { 'application/json': { schema: { type: 'object' } }, odd: { schema: {} } };
    const parameters = [{ name: 'Host', in: 'header', schema: { type: 'string' } }];
    const { policies, warnings } = await read(
      documentWith({
        paths: { '/a': { post: { parameters, requestBody: { content }, responses: RESPONSES } } },
      }),
    );
    expect(policies.get('POST /a')).to.deep.equal({
      mode: 'enforce',
      body: { content: { 'application/json': { schema: { type: 'object' } }, '*/*': {} } },
    });
    expect(warnings.join('\n'))
      .to.include('the header Host is not validated')
      .and.include('body.content.odd');
  });

  it('validates urlencoded forms, and lets multipart forms through with a warning', async () => {
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

  it('makes policies of real documents that can be enforced', async () => {
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
