/** Generated handlers, compiled and started by the real processes, answering real requests. */
import { expect } from 'chai';
import { generateHandler } from '../../../src/import/codegen/generate-handler.js';
import type { Operation, Parameter } from '../../../src/import/openapi/document.js';
import type { HttpRequest } from '../../support/client.js';
import { type FormPart, multipart } from '../../support/form.js';
import { type Stack, startStack } from '../../support/processes.js';
import { field, formBody, jsonBody, MULTIPART, member, URLENCODED } from './bodies.js';
import { operation, parameter } from './operations.js';

const PUT_PET = operation({
  operationId: 'putPet',
  method: 'PUT',
  path: '/pets/{id}',
  parameters: [
    parameter('id', { in: 'path', type: 'integer' }),
    parameter('dry', { type: 'boolean' }),
    parameter('sizes', { type: 'array', itemType: 'number', required: true }),
  ],
  body: jsonBody([
    member('type'),
    member('age', { type: 'integer', required: false }),
    member('owner', { nullable: true }),
  ]),
});

const FROM_HEADERS = operation({
  path: '/headers',
  parameters: [
    parameter('X-Count', { in: 'header', type: 'integer', required: true }),
    parameter('X-Note', { in: 'header' }),
    parameter('session', { in: 'cookie', required: true }),
    parameter('visits', { in: 'cookie', type: 'integer' }),
    parameter('seen', { in: 'cookie', type: 'array', itemType: 'integer' }),
  ],
});

/** Names that need escaping in Rust. */
const NAMES = [
  'ids[]',
  'it\'s "quoted"',
  '\\',
  '\\n',
  '{}',
  'a\u2028b',
  '\u202eb\u2066',
  '\u0000\u001f',
  '"#',
  '*/',
  '\u200d',
  '👩‍👧',
  'größe',
  'type',
  'Type',
];
const STRANGE_NAMES = operation({ path: '/strange', parameters: NAMES.map((name) => parameter(name)) });
/** More members than `json!` supports in one object. */
const MANY = Array.from({ length: 90 }, (_, at) => `name${at}`);
const MANY_NAMES = operation({ path: '/many', parameters: MANY.map((name) => parameter(name)) });

const BYTES = operation({
  method: 'POST',
  path: '/bytes',
  body: jsonBody([], { mediaType: 'image/png', type: 'any' }),
});
const FORM = operation({
  method: 'POST',
  path: '/form',
  body: jsonBody([], { mediaType: 'multipart/form-data', type: 'any' }),
});
const MAYBE = operation({
  method: 'POST',
  path: '/maybe',
  body: jsonBody([member('name')], { required: false }),
});
const ANYTHING = operation({ method: 'POST', path: '/anything', body: jsonBody([], { type: 'any' }) });

const UPLOAD_FIELDS = [
  field('title'),
  field('count', { required: false, type: 'integer' }),
  field('sizes', { required: false, type: 'array', itemType: 'number' }),
  field('meta', { type: 'object' }),
  field('photo', { isFile: true }),
  field('thumbnail', { required: false, isFile: true }),
];
const UPLOAD = operation({ method: 'POST', path: '/upload', body: formBody(MULTIPART, UPLOAD_FIELDS) });
const ORDER_FIELDS = [
  field('name'),
  field('amount', { type: 'integer' }),
  field('gift', { required: false, type: 'boolean' }),
  field('tags', { required: false, type: 'array', itemType: 'string', style: 'repeated' }),
  field('sizes', { required: false, type: 'array', itemType: 'integer', style: 'pipeDelimited' }),
  field('extra', { required: false, type: 'object', style: 'deepObject' }),
];
const ORDER = operation({ method: 'POST', path: '/order', body: formBody(URLENCODED, ORDER_FIELDS) });
const MAYBE_ORDER = operation({
  method: 'POST',
  path: '/maybe-order',
  body: formBody(URLENCODED, ORDER_FIELDS, { required: false }),
});
const ANY_ORDER = operation({ method: 'POST', path: '/any-order', body: formBody(URLENCODED, []) });

const STYLES = operation({
  path: '/styles/{id}',
  parameters: [
    parameter('id', { in: 'path', type: 'integer', unsupportedStyle: 'matrix' }),
    parameter('spaces', { type: 'array', itemType: 'integer', style: 'spaceDelimited' }),
    parameter('pipes', { type: 'array', itemType: 'string', style: 'pipeDelimited' }),
    parameter('filter', { type: 'object', style: 'deepObject', required: true }),
    parameter('page', { type: 'object', style: 'deepObject' }),
    parameter('spread', { type: 'object', unsupportedStyle: 'form', required: true }),
    parameter('X-Sizes', { in: 'header', type: 'array', itemType: 'integer' }),
  ],
});

describe('running generated handlers', () => {
  let stack: Stack;

  before(async function () {
    this.timeout(300_000);
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    const all = [
      ...[PUT_PET, FROM_HEADERS, STRANGE_NAMES, MANY_NAMES, BYTES, FORM, MAYBE, ANYTHING],
      ...[UPLOAD, ORDER, MAYBE_ORDER, ANY_ORDER, STYLES],
    ];
    await Promise.all(all.map(deploy));
  });
  after(() => stack.close());

  const deploy = (of: Operation) =>
    stack.deploy({ path: of.path, method: of.method, code: generateHandler(of, 'Pet store') });
  const send = async (method: string, path: string, options?: HttpRequest) => {
    const { status, body } = await stack.gateway.send(method, path, options);
    return { status, body: body as { error: string; received: Record<string, unknown> } };
  };
  const putPet = (path: string, body: unknown) => send('PUT', path, { body });
  const PET = { type: 'cat', owner: null };
  const withQuery = (path: string, query: Record<string, string>) => `${path}?${new URLSearchParams(query)}`;

  it('answers 501 with the operation and the values received', async () => {
    expect(await putPet('/pets/7?dry=true&sizes=1,2.5', { ...PET, age: 3 })).to.deep.equal({
      status: 501,
      body: {
        error: 'putPet is not implemented yet',
        operation: 'PUT /pets/{id}',
        received: {
          path: { id: 7 },
          query: { dry: true, sizes: [1, 2.5] },
          body: { type: 'cat', age: 3, owner: null },
        },
      },
    });
  });

  it('rejects parameters that are missing or of the wrong type', async () => {
    const cases = [
      ['/pets/seven?sizes=1', 'Bad request: Invalid value for path parameter id: "seven"'],
      ['/pets/7', 'Bad request: Missing required query parameter: sizes'],
      ['/pets/7?sizes=1,big', 'Bad request: Invalid value for sizes: "big"'],
      ['/pets/7?sizes=1&dry=perhaps', 'Bad request: Invalid value for dry: "perhaps"'],
    ] as const;
    for (const [path, error] of cases)
      expect(await putPet(path, PET)).to.deep.equal({ status: 400, body: { error } });
  });

  it('rejects bodies that are missing or do not fit the schema', async () => {
    const bodies = [undefined, '', 'no JSON', '[]', { owner: null }, { type: 'cat' }, { ...PET, age: 'old' }];
    for (const body of bodies) {
      expect((await putPet('/pets/7?sizes=1', body)).status, JSON.stringify(body)).to.equal(400);
    }
  });

  it('parses headers and cookies', async () => {
    const headers = { 'x-count': '3', cookie: 'visits=4; session=a=b; seen=1,2' };
    const { status, body } = await send('GET', '/headers', { headers });
    expect(status).to.equal(501);
    expect(body.received).to.deep.equal({
      header: { 'X-Count': 3, 'X-Note': null },
      cookie: { session: 'a=b', visits: 4, seen: [1, 2] },
    });
    const rejected = [
      { 'x-count': '3' },
      { cookie: 'session=a' },
      { ...headers, 'x-count': 'x' },
      { ...headers, cookie: 'session=a; visits=x' },
    ];
    for (const wrong of rejected)
      expect((await send('GET', '/headers', { headers: wrong })).status).to.equal(400);
  });

  it('reads parameters by their exact names', async () => {
    const query = Object.fromEntries(NAMES.map((name, at) => [name, `value ${at}`]));
    const { body } = await send('GET', withQuery('/strange', query));
    expect(body.received).to.deep.equal({ query });
  });

  it('reads more parameters than one JSON object of the answer holds', async () => {
    const query = Object.fromEntries(MANY.map((name) => [name, name]));
    const { body } = await send('GET', withQuery('/many', query));
    expect(Object.assign({}, ...(body.received['query'] as object[]))).to.deep.equal(query);
  });

  it('accepts bodies that are not JSON', async () => {
    const bytes = await send('POST', '/bytes', { body: Buffer.from([0, 255, 1]) });
    expect(bytes.body.received).to.deep.equal({ body: { bytes: 3 } });
    expect((await send('POST', '/bytes')).status).to.equal(400);

    const form = multipart([{ name: 'title', content: 'Sunset' }]);
    const sent = await send('POST', '/form', form);
    expect(sent.body.received).to.deep.equal({ body: { title: 'Sunset' } });
    expect((await send('POST', '/form', { body: '{}' })).status).to.equal(400);
  });

  it('parses a multipart form with text and files', async () => {
    const title = { name: 'title', content: 'Sunset & más' };
    const meta = { name: 'meta', content: '{"a":1}' };
    const photo = { name: 'photo', filename: 'sun.png', content: Buffer.from([0, 255, 13, 10]) };
    const upload = (...parts: FormPart[]) => send('POST', '/upload', multipart(parts));

    const count = { name: 'count', content: '3' };
    const sizes = { name: 'sizes', content: '1,2.5' };
    const sent = await upload(title, meta, photo, count, sizes);
    expect(sent.status).to.equal(501);
    const received = { title: 'Sunset & más', meta: '{"a":1}', count: 3, sizes: [1, 2.5], thumbnail: null };
    const info = { filename: 'sun.png', content_type: 'application/octet-stream', bytes: 4 };
    expect(sent.body.received).to.deep.equal({ body: { ...received, photo: info } });

    const rejected: readonly (readonly [readonly FormPart[], string])[] = [
      [[meta, photo], 'Missing required value: title'],
      [[title, meta], 'Missing required file: photo'],
      [[title, meta, { name: 'photo', content: 'text' }], 'Missing required file: photo'],
      [[title, photo], 'Missing required value: meta'],
      [[title, meta, photo, { name: 'count', content: 'x' }], 'Invalid value for count: "x"'],
    ];
    for (const [parts, error] of rejected) {
      const expected = { status: 400, body: { error: `Bad request: ${error}` } };
      expect(await upload(...parts)).to.deep.equal(expected);
    }
    expect((await send('POST', '/upload', { body: {} })).status).to.equal(400);
  });

  it('accepts JSON that a browser sends as a file of a form', async () => {
    const form = new FormData();
    form.set('title', 'Sunset');
    form.set('meta', new Blob(['{"a":1}'], { type: 'application/json' }));
    form.set('photo', new Blob(['bytes']), 'sun.png');
    const encoded = new Response(form);
    const headers = { 'content-type': encoded.headers.get('content-type') ?? '' };
    const body = Buffer.from(await encoded.arrayBuffer());
    const sent = await send('POST', '/upload', { headers, body });
    expect(sent.body.received['body']).to.include({ title: 'Sunset', meta: '{"a":1}' });
  });

  it('parses an urlencoded form', async () => {
    const post = (body: string | undefined, path = '/order', type = `${URLENCODED}; charset=utf-8`) =>
      send('POST', path, { headers: { 'content-type': type }, ...(body === undefined ? {} : { body }) });
    const full =
      'name=a+b%21%26%C3%A9+100%+%zz&amount=7&gift=true&tags=a,b&tags=c%2Bd&sizes=1|2&extra[x]=1&extra%5By%5D=2';
    expect((await post(full)).body.received).to.deep.equal({
      body: {
        name: 'a b!&é 100% %zz',
        amount: 7,
        gift: true,
        tags: ['a,b', 'c+d'],
        sizes: [1, 2],
        extra: { x: '1', y: '2' },
      },
    });
    const least = { name: '', amount: 2, gift: null, tags: null, sizes: null, extra: null };
    expect((await post('name&amount=1&amount=2&&')).body.received).to.deep.equal({ body: least });

    const rejected = [
      ['', 'Missing required value: name'],
      ['name=a', 'Missing required value: amount'],
      ['name=a&amount=x', 'Invalid value for amount: "x"'],
      ['name=a&amount=1&gift=maybe', 'Invalid value for gift: "maybe"'],
      ['name=a&amount=1&sizes=1|x', 'Invalid value for sizes: "x"'],
    ] as const;
    for (const [body, error] of rejected) {
      const expected = { status: 400, body: { error: `Bad request: ${error}` } };
      expect(await post(body)).to.deep.equal(expected);
    }
    expect((await post(full, '/order', 'application/json')).status).to.equal(400);

    expect((await send('POST', '/maybe-order')).body.received).to.deep.equal({ body: null });
    expect((await post('name=a', '/maybe-order')).status).to.equal(400);
    expect((await post(full, '/maybe-order')).status).to.equal(501);
    const pairs = [
      ['a', '1'],
      ['a', '2'],
    ];
    expect((await post('a=1&a=2', '/any-order')).body.received).to.deep.equal({ body: pairs });
  });

  it('parses parameters in their style', async () => {
    const filter = { 'filter[a]': '1', 'filter[b c]': '2', filters: '3', 'filter[': '4' };
    const lists = { spaces: '1 2', pipes: 'a,b|c', 'spread[a]': '5' };
    const path = withQuery('/styles/;id=7', { ...filter, ...lists });
    const { status, body } = await send('GET', path, { headers: { 'x-sizes': '1, 2' } });
    expect(status).to.equal(501);
    expect(body.received).to.deep.equal({
      path: { id: ';id=7' },
      query: {
        spaces: [1, 2],
        pipes: ['a,b', 'c'],
        filter: { a: '1', 'b c': '2' },
        page: null,
        spread: null,
      },
      header: { 'X-Sizes': [1, 2] },
    });
    expect(await send('GET', '/styles/7?page[a]=1')).to.deep.equal({
      status: 400,
      body: { error: 'Bad request: Missing required value: filter' },
    });
    expect((await send('GET', withQuery('/styles/7', { ...filter, spaces: '1,2' }))).status).to.equal(400);
  });

  it('accepts a missing optional body, but not an invalid one', async () => {
    expect((await send('POST', '/maybe')).body.received).to.deep.equal({ body: null });
    expect((await send('POST', '/maybe', { body: PET })).status).to.equal(400);
    expect((await send('POST', '/anything', { body: 'null' })).body.received).to.deep.equal({ body: null });
    expect((await send('POST', '/anything')).status).to.equal(400);
  });

  it('accepts missing optional parameters', async () => {
    const { body } = await putPet('/pets/7?sizes=1', PET);
    expect(body.received['query']).to.deep.equal({ dry: null, sizes: [1] });
    const strange: readonly Parameter[] = STRANGE_NAMES.parameters;
    const none = Object.fromEntries(strange.map(({ name }) => [name, null]));
    expect((await send('GET', '/strange')).body.received).to.deep.equal({ query: none });
  });
});
