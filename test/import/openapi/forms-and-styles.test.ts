/** Form bodies, and styles of parameters. */
import { expect } from 'chai';
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
        properties: { ...properties, json: { type: 'object' }, spread: { type: 'object' }, odd: list },
      },
      encoding: {
        comma: { style: 'form', explode: false },
        pipes: { style: 'pipeDelimited' },
        deep: { style: 'deepObject' },
        spread: { style: 'form', explode: true },
        odd: { style: 'deepObject' },
      },
    });
    expect(
      body?.fields?.map(({ name, style, unsupportedStyle }) => [name, style, unsupportedStyle]),
    ).to.deep.equal([
      ['plain', 'repeated', undefined],
      ['comma', undefined, undefined],
      ['pipes', 'pipeDelimited', undefined],
      ['deep', 'deepObject', undefined],
      ['json', undefined, undefined],
      ['spread', undefined, 'form'],
      ['odd', undefined, 'deepObject'],
    ]);
    expect(warnings).to.deep.equal([
      'POST /a: the form field "spread", in the style "form", is not parsed; the handler gets the raw text',
      'POST /a: the form field "odd", in the style "deepObject", is not parsed; the handler gets the raw text',
    ]);
  });

  it('has no fields for other media types and for too many fields', async () => {
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

describe('OpenAPI: styles of parameters', () => {
  const LIST = { type: 'array', items: { type: 'integer' } };
  const styled = async (parameters: readonly object[], path = '/a') => {
    const get = { parameters, responses: RESPONSES };
    const document = await read(documentWith({ paths: { [path]: { get } } }));
    return {
      styles: document.operations[0]?.parameters.map(
        ({ style, unsupportedStyle }) => style ?? unsupportedStyle,
      ),
      warnings: document.warnings,
    };
  };
  const query = (name: string, schema: object, style: object = {}) => ({
    name,
    in: 'query',
    schema,
    ...style,
  });

  it('reads the styles that handlers parse', async () => {
    const { styles, warnings } = await styled([
      query('a', { type: 'string' }),
      query('b', LIST),
      query('c', LIST, { style: 'spaceDelimited' }),
      query('d', LIST, { style: 'pipeDelimited', explode: false }),
      query('e', LIST, { style: 'pipeDelimited', explode: true }),
      query('f', { type: 'object' }, { style: 'deepObject', explode: true }),
    ]);
    expect(styles).to.deep.equal([
      undefined,
      undefined,
      'spaceDelimited',
      'pipeDelimited',
      undefined,
      'deepObject',
    ]);
    expect(warnings).to.deep.equal([]);
  });

  it('warns of unsupported styles', async () => {
    const inPath = { in: 'path', required: true, schema: { type: 'integer' } };
    const { styles, warnings } = await styled(
      [
        { name: 'id', style: 'matrix', ...inPath },
        { name: 'no', style: 'label', ...inPath },
        query('filter', { type: 'object', properties: { a: {} } }),
        query('odd', LIST, { style: 'deepObject' }),
        { name: 'X-Page', in: 'header', schema: { type: 'object' } },
      ],
      '/{id}/{no}',
    );
    expect(styles).to.deep.equal(['matrix', 'label', 'form', 'deepObject', 'simple']);
    const warning = (parameter: string) =>
      `GET /{id}/{no}: the ${parameter}, is not parsed; the handler gets the raw text`;
    expect(warnings).to.deep.equal([
      warning('path parameter "id", in the style "matrix"'),
      warning('path parameter "no", in the style "label"'),
      warning('query parameter "filter", an object in the style "form"'),
      warning('query parameter "odd", in the style "deepObject"'),
      warning('header parameter "X-Page", an object in the style "simple"'),
    ]);
  });
});
