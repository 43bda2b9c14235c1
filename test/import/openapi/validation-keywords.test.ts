/** What the policy `validate` makes of keywords, in each version of OpenAPI. */
import { expect } from 'chai';
import { readOpenApi } from '../../../src/import/openapi/read-openapi.js';
import type { ValidatePolicy } from '../../../src/model/policies/validate.js';
import { documentWith, RESPONSES } from '../documents/documents.js';

const VERSIONS = ['3.0.3', '3.1.0'];

const policyOf = async (document: string) => {
  const { operations, warnings } = await readOpenApi(document, { operations: 1, validation: 'enforce' });
  const { body, components } = JSON.parse(operations[0]?.validate ?? '{}') as Partial<ValidatePolicy>;
  const told = warnings.filter(({ kind }) => kind === 'validation').map(({ text }) => text);
  const [media] = Object.values(body?.content ?? {});
  return { schema: media?.schema, named: components?.schemas, told };
};
const schemaOf = (version: string, schema: object, schemas: object = {}) =>
  policyOf(
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
    ),
  );
const ofSwagger = (schema: object, definitions: object = {}) => {
  const parameters = [{ name: 'body', in: 'body', schema }];
  const paths = { '/a': { post: { parameters, responses: RESPONSES } } };
  const info = { title: 'T', version: '1' };
  return policyOf(
    JSON.stringify({ swagger: '2.0', info, consumes: ['application/json'], paths, definitions }),
  );
};
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const BASE = { type: 'object', properties: { id: { type: 'string', readOnly: true }, name: {} } };

describe('OpenAPI: keywords of validation', () => {
  it('requires no member that is readOnly in another part of the schema', async () => {
    for (const version of VERSIONS) {
      const beside = await schemaOf(
        version,
        { allOf: [ref('Base')], required: ['id', 'name'] },
        { Base: BASE },
      );
      expect(beside.schema, version).to.deep.equal({ allOf: [ref('Base')], required: ['name'] });
      const parts = await schemaOf(
        version,
        { allOf: [ref('Base'), ref('Needs'), { anyOf: [{ required: ['id'] }, ref('Needs')] }] },
        { Base: { allOf: [ref('Own')] }, Own: BASE, Needs: { required: ['id', 'name', 'other'] } },
      );
      const anyOf = [{ required: [] }, ref('Needs')];
      expect(parts.schema, version).to.deep.equal({ allOf: [ref('Base'), ref('Needs'), { anyOf }] });
      expect(parts.named?.['Needs'], version).to.deep.equal({ required: ['name', 'other'] });
      expect([...beside.told, ...parts.told], version).to.deep.equal([]);
    }
    const swagger = await ofSwagger(
      { allOf: [{ $ref: '#/definitions/Base' }, { required: ['id', 'name'] }] },
      { Base: BASE },
    );
    expect(swagger.schema).to.deep.equal({ allOf: [ref('Base'), { required: ['name'] }] });
  });

  it('reads readOnly from what a member refers to, and from OpenAPI 3.1 on from what is beside it', async () => {
    const required = ['one', 'two', 'three', 'four'];
    const properties = {
      one: ref('Id'),
      two: { allOf: [ref('Plain')], readOnly: true },
      three: { allOf: [ref('Id')] },
      four: { ...ref('Plain'), readOnly: true },
    };
    const schemas = { Id: { type: 'string', readOnly: true }, Plain: { type: 'string' } };
    const old = await schemaOf('3.0.3', { type: 'object', required, properties }, schemas);
    expect(old.schema).to.have.deep.property('required', ['four']);
    const later = await schemaOf('3.1.0', { type: 'object', required, properties }, schemas);
    expect(later.schema).to.have.deep.property('required', []);
  });

  it('drops keywords that reverse or count above a part that requires less than the document', async () => {
    const required = { required: ['id'] };
    for (const version of VERSIONS) {
      const { schema, told } = await schemaOf(
        version,
        { allOf: [ref('Base')], oneOf: [required, { required: ['name'] }] },
        { Base: BASE },
      );
      expect(schema, version).to.deep.equal({
        allOf: [ref('Base')],
        anyOf: [{ required: [] }, { required: ['name'] }],
      });
      expect(told, version).to.have.length(1);
    }
  });

  it('still requires in nested members, and behind `not`, what is readOnly in the object itself', async () => {
    for (const version of VERSIONS) {
      const all = {
        properties: { inner: { required: ['id'] } },
        required: ['inner'],
        not: { required: ['id', 'name'] },
      };
      const { schema, told } = await schemaOf(version, { allOf: [ref('Base'), all] }, { Base: BASE });
      expect(schema, version).to.deep.equal({ allOf: [ref('Base'), all] });
      expect(told, version).to.deep.equal([]);
    }
  });

  it('ignores keywords beside a reference before OpenAPI 3.1, with a warning, and keeps them later', async () => {
    const beside = { maxLength: 2, nullable: true, description: 'x' };
    const schemas = { S: { $ref: '#/components/schemas/T', enum: ['a'] }, T: { type: 'string' } };
    const old = await schemaOf('3.0.3', { properties: { a: { ...ref('S'), ...beside } } }, schemas);
    expect(old.schema).to.deep.equal({ properties: { a: ref('S') } });
    expect(old.named).to.deep.equal({ S: ref('T'), T: { type: 'string' } });
    expect(old.told.join('\n')).to.match(/enum beside \$ref "#\/components\/schemas\/T" is ignored/);
    expect(old.told.join('\n')).to.match(/maxLength, nullable beside \$ref "#\/components\/schemas\/S"/);
    const plain = await schemaOf('3.0.3', { properties: { a: { ...ref('T'), description: 'x' } } }, schemas);
    expect(plain.told).to.deep.equal([]);
    const later = await schemaOf('3.1.0', { properties: { a: { ...ref('T'), maxLength: 2 } } }, schemas);
    expect(later.schema).to.deep.equal({ properties: { a: { ...ref('T'), maxLength: 2 } } });
    const swagger = await ofSwagger(
      { properties: { a: { $ref: '#/definitions/T', maxLength: 2 } } },
      { T: { type: 'string' } },
    );
    expect(swagger.schema).to.deep.equal({ properties: { a: ref('T') } });
    expect(swagger.told).to.have.length(1);
  });

  it('allows null by `nullable` as OpenAPI 3.0.3 says: beside a type, and only if an enum has it', async () => {
    const properties = {
      plain: { type: 'string', nullable: true },
      withNull: { type: 'string', nullable: true, enum: ['x', null] },
      without: { type: 'string', nullable: true, enum: ['x'] },
      parts: { nullable: true, allOf: [ref('S')] },
      anything: { nullable: true },
      not: { type: 'string', nullable: false },
    };
    const { schema, told } = await schemaOf('3.0.3', { properties }, { S: { type: 'string' } });
    expect(schema).to.deep.equal({
      properties: {
        plain: { type: ['string', 'null'] },
        withNull: { type: ['string', 'null'], enum: ['x', null] },
        without: { type: ['string', 'null'], enum: ['x'] },
        parts: { allOf: [ref('S')] },
        anything: true,
        not: { type: 'string' },
      },
    });
    expect(told).to.deep.equal([
      'nullable of a schema does not allow null: its enum has no null',
      'nullable of a schema does not allow null: it has no type beside it, as OpenAPI 3.0.3 demands',
    ]);
  });

  it('lets forms through without validation that may have objects, which are texts of JSON in them', async () => {
    const form = async (schema: object) => {
      const content = { 'application/x-www-form-urlencoded': { schema } };
      const schemas = { O: { type: 'object', properties: { a: { type: 'integer' } } }, L: list(ref('O')) };
      const paths = { '/a': { post: { requestBody: { content }, responses: RESPONSES } } };
      return policyOf(documentWith({ paths, components: { schemas } }, '3.1.0'));
    };
    const list = (items: object) => ({ type: 'array', items });
    const text = { type: 'string' };
    for (const schema of [
      { properties: { l: list({ type: 'object' }) } },
      { properties: { l: list(ref('O')) } },
      { properties: { l: { allOf: [ref('L')] } } },
      { properties: { l: list(list(text)) } },
      { properties: { o: { oneOf: [text, ref('O')] } } },
      { allOf: [{ properties: { t: text } }, { additionalProperties: { type: 'object' } }] },
      { patternProperties: { '^a': ref('L') } },
    ]) {
      const { schema: found, told } = await form(schema);
      expect(found, JSON.stringify(schema)).to.equal(undefined);
      expect(told, JSON.stringify(schema)).to.have.length(1);
    }
    const readOnly = { ...ref('O'), readOnly: true };
    const checked = {
      properties: { l: list(text), t: text, readOnly: list(text) },
      additionalProperties: text,
    };
    expect((await form(checked)).schema).to.deep.equal(checked);
    const { schema } = await form({ type: 'object', properties: { t: text, readOnly } });
    expect(schema).to.deep.equal({ type: 'object', properties: { t: text, readOnly: ref('O') } });
  });
});
