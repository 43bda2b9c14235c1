/** Form bodies, and styles of parameters. */
import { expect } from 'chai';
import { onlyIntegers, onlyTexts } from '../codegen/bodies.js';
import { documentWith, RESPONSES, read } from '../documents/documents.js';

const PHOTO = {
  type: 'object',
  required: ['title', 'photo', 'meta', 'sizes'],
  properties: {
    title: { type: 'string' },
    count: { type: 'integer' },
    photo: { type: 'string', format: 'binary' },
    more: { type: 'array', items: { type: 'string', format: 'binary' } },
    scan: { type: 'string', contentMediaType: 'image/png' },
    inline: { type: 'string', contentMediaType: 'image/png', contentEncoding: 'base64' },
    maybe: { anyOf: [{ $ref: '#/components/schemas/File' }, { type: 'null' }] },
    either: { anyOf: [{ $ref: '#/components/schemas/File' }, { type: 'string' }] },
    cover: {},
    meta: { type: 'object' },
    sizes: { type: 'array', items: { type: 'number' } },
    id: { type: 'integer', readOnly: true },
  },
};
const FILE = { type: 'string', format: 'binary' };

const bodyOf = async (mediaType: string, media: object, required = true) => {
  const document = await read(
    documentWith(
      {
        paths: {
          '/a': {
            post: { requestBody: { required, content: { [mediaType]: media } }, responses: RESPONSES },
          },
        },
        components: { schemas: { Photo: { allOf: [PHOTO] }, File: FILE } },
      },
      '3.1.0',
    ),
  );
  const [operation] = document.operations;
  return { body: operation?.body, warnings: document.warnings };
};

const PHOTO_SCHEMA = { $ref: '#/components/schemas/Photo' };

describe('OpenAPI: forms', () => {
  it('distinguishes text fields and files of a multipart form', async () => {
    const { body, warnings } = await bodyOf('multipart/form-data; charset=utf-8', {
      schema: PHOTO_SCHEMA,
      encoding: {
        cover: { contentType: 'image/png, image/jpeg' },
        meta: { contentType: 'application/json' },
      },
    });
    expect(body).to.include({ required: true, type: 'any' });
    expect(body?.fields?.map(({ name, required, isFile }) => [name, required, isFile])).to.deep.equal([
      ['title', true, false],
      ['count', false, false],
      ['photo', true, true],
      ['more', false, true],
      ['scan', false, true],
      ['inline', false, false],
      ['maybe', false, true],
      ['either', false, false],
      ['cover', false, true],
      ['meta', true, false],
      ['sizes', true, false],
    ]);
    expect(body?.fields?.find(({ name }) => name === 'sizes')).to.deep.equal({
      name: 'sizes',
      required: true,
      type: 'array',
      itemType: 'number',
      style: 'form',
      explode: true,
      isFile: false,
    });
    expect(warnings).to.deep.equal([]);
  });

  it('reads the styles of the fields of an urlencoded form', async () => {
    const list = { type: 'array', items: { type: 'integer' } };
    const properties = { plain: list, comma: list, pipes: list, deep: { type: 'object' } };
    const { body, warnings } = await bodyOf('application/x-www-form-urlencoded', {
      schema: {
        type: 'object',
        properties: {
          ...properties,
          json: { type: 'object' },
          spread: { type: 'object' },
          odd: list,
          unnamed: list,
        },
      },
      encoding: {
        comma: { style: 'form', explode: false },
        pipes: { style: 'pipeDelimited' },
        deep: { style: 'deepObject' },
        spread: { style: 'form', explode: true },
        odd: { style: 'deepObject' },
        unnamed: { explode: false },
      },
    });
    expect(body?.fields?.map(({ name, style, explode }) => [name, style, explode])).to.deep.equal([
      ['plain', 'form', true],
      ['comma', 'form', false],
      ['pipes', 'pipeDelimited', false],
      ['deep', 'deepObject', false],
      ['json', 'text', true],
      ['spread', 'form', true],
      ['odd', 'deepObject', false],
      ['unnamed', 'form', false],
    ]);
    expect(warnings).to.deep.equal([]);
  });

  it('reads no fields of a body of another media type, or of a form with too many fields', async () => {
    expect((await bodyOf('text/plain', { schema: PHOTO_SCHEMA })).body).not.to.have.property('fields');
    const names = Array.from({ length: 201 }, (_, at) => [`f${at}`, { type: 'string' }]);
    const { body, warnings } = await bodyOf('multipart/form-data', {
      schema: { type: 'object', properties: Object.fromEntries(names) },
    });
    expect(body).not.to.have.property('fields');
    expect(warnings).to.deep.equal([
      'POST /a: the form has 201 fields, more than the 200 that a handler parses; it gets the form as a whole',
    ]);
  });
});

describe('OpenAPI: enums of JSON bodies', () => {
  it('reads the enums of members of a JSON body, and of items that cannot be null', async () => {
    const size = { type: 'string', enum: ['s', 'm'] };
    const maybe = { type: ['string', 'null'], enum: ['s', null] };
    const properties = {
      size,
      maybe,
      sizes: { type: 'array', items: size },
      some: { type: 'array', items: maybe },
      stars: { type: ['integer', 'null'], enum: [1, 2, null, 1] },
      ranks: { type: 'array', items: { type: 'integer', enum: [-1] } },
      // Not of the type, or more than it.
      other: { type: 'string', enum: [1, 2] },
      ratio: { type: 'integer', enum: [1, 1.5] },
      large: { type: 'integer', enum: [2 ** 53] },
      number: { type: 'number', enum: [1] },
      mixed: { type: 'string', enum: ['a', 1] },
    };
    const { body } = await bodyOf('application/json', { schema: { type: 'object', properties } });
    expect(body?.members.map(({ name, allowed }) => [name, allowed])).to.deep.equal([
      ['size', onlyTexts('s', 'm')],
      ['maybe', onlyTexts('s')],
      ['sizes', onlyTexts('s', 'm')],
      ['some', undefined],
      ['stars', onlyIntegers(1, 2)],
      ['ranks', onlyIntegers(-1)],
      ...['other', 'ratio', 'large', 'number', 'mixed'].map((name) => [name, undefined]),
    ]);
  });
});

describe('OpenAPI: styles of parameters', () => {
  const LIST = { type: 'array', items: { type: 'integer' } };
  const styled = async (parameters: readonly object[], path = '/a') => {
    const get = { parameters, responses: RESPONSES };
    const document = await read(documentWith({ paths: { [path]: { get } } }));
    return {
      parameters: document.operations[0]?.parameters ?? [],
      styles: document.operations[0]?.parameters.map(({ style, explode }) => [style, explode]),
      warnings: document.warnings,
    };
  };
  const query = (name: string, schema: object, style: object = {}) => ({
    name,
    in: 'query',
    schema,
    ...style,
  });

  it('reads the styles of parameters, with the defaults of their places', async () => {
    const inPath = { in: 'path', required: true, schema: LIST };
    const { styles, warnings } = await styled(
      [
        { name: 'p', ...inPath },
        { name: 'l', style: 'label', ...inPath },
        { name: 'm', style: 'matrix', explode: true, ...inPath },
        query('a', { type: 'string' }),
        query('b', LIST, { explode: false }),
        query('c', LIST, { style: 'spaceDelimited' }),
        query('d', LIST, { style: 'pipeDelimited', explode: true }),
        query('e', { type: 'object' }, { style: 'deepObject', explode: true }),
        { name: 'X-Page', in: 'header', schema: { type: 'object' } },
        { name: 'session', in: 'cookie', schema: LIST },
        { name: 'json', in: 'query', content: { 'application/json': { schema: { type: 'object' } } } },
      ],
      '/{p}/{l}/{m}',
    );
    expect(styles).to.deep.equal([
      ['simple', false],
      ['label', false],
      ['matrix', true],
      ['form', true],
      ['form', false],
      ['spaceDelimited', false],
      ['pipeDelimited', true],
      ['deepObject', true],
      ['simple', false],
      ['form', true],
      ['text', false],
    ]);
    expect(warnings).to.deep.equal([]);
  });

  it('reads a style that a parameter cannot have as the default of its place, with a warning', async () => {
    const header = { name: 'X-A', in: 'header', style: 'matrix', schema: LIST };
    const cookie = { name: 'c', in: 'cookie', style: 'cookie', schema: LIST };
    const { styles, warnings } = await styled([query('a', LIST, { style: 'label' }), header, cookie]);
    expect(styles).to.deep.equal([
      ['form', true],
      ['simple', false],
      ['form', true],
    ]);
    expect(warnings.join('\n').match(/is read in the style/g)).to.have.lengthOf(2);
    expect(warnings.join('\n')).to.match(/"a" is read in the style "form": it cannot have "label"/);
    expect(warnings.join('\n')).to.match(/"X-A" is read in the style "simple": it cannot have "matrix"/);
  });

  it('reads the parameters of mixed segments and of a catch-all', async () => {
    const one = { name: 'ext', in: 'path', required: true, schema: { type: 'string', enum: ['png'] } };
    const { parameters } = await styled([one], '/files/{name}.{ext}/{*rest}');
    expect(parameters.map(({ name, allowed }) => [name, allowed])).to.deep.equal([
      ['name', undefined],
      ['ext', onlyTexts('png')],
      ['rest', undefined],
    ]);
  });

  it('reads a parameter that may be a list as one when its items are sent one by one', async () => {
    const either = { oneOf: [{ type: 'string' }, LIST] };
    const { parameters } = await styled([
      query('a', either),
      query('b', either, { explode: false }),
      query('c', { anyOf: [{ type: 'string' }, { type: 'integer' }] }),
      { name: 'X-D', in: 'header', schema: either },
    ]);
    expect(parameters.map(({ type }) => type)).to.deep.equal(['array', 'any', 'any', 'any']);
  });

  it('reads the members of objects and the values of enums of parameters', async () => {
    const color = { type: 'object', properties: { r: { type: 'integer' }, g: {} } };
    const sizes = { type: 'string', enum: ['s', 'm', 's'] };
    const { parameters } = await styled([
      query('color', color),
      query('any', { type: 'object' }),
      query('size', { allOf: [sizes] }),
      query('sizes', { type: 'array', items: sizes }),
      query('numbers', { type: 'integer', enum: [1, 2] }),
      query('maybe', { type: 'string', nullable: true, enum: ['a', null] }),
    ]);
    expect(parameters.map(({ memberNames, allowed }) => memberNames ?? allowed)).to.deep.equal([
      ['r', 'g'],
      undefined,
      onlyTexts('s', 'm'),
      onlyTexts('s', 'm'),
      onlyIntegers(1, 2),
      onlyTexts('a'),
    ]);
  });
});
