/** Generated handlers, compiled and started by the real processes, answering real requests. */
import { expect } from 'chai';
import { generateHandler } from '../../../src/import/codegen/generate-handler.js';
import type { Operation, Parameter } from '../../../src/import/openapi/document.js';
import type { HttpRequest } from '../../support/client.js';
import { expectData } from '../../support/expect.js';
import { type FormPart, multipart } from '../../support/form.js';
import { type Stack, startStack } from '../../support/processes.js';
import {
  field,
  formBody,
  jsonBody,
  MULTIPART,
  member,
  onlyIntegers,
  onlyTexts,
  URLENCODED,
} from './bodies.js';
import { operation, parameter } from './operations.js';

const PUT_PET = operation({
  operationId: 'putPet',
  method: 'PUT',
  path: '/pets/{id}',
  parameters: [
    parameter('id', { in: 'path', type: 'integer' }),
    parameter('dry', { type: 'boolean' }),
    parameter('sizes', { type: 'array', itemType: 'number', explode: false, required: true }),
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
    parameter('seen', { in: 'cookie', type: 'array', itemType: 'integer', explode: false }),
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
const CURRENCIES = Array.from({ length: 60 }, (_, at) => `C${at}`);
const MANY_NUMBERS = Array.from({ length: 100 }, (_, at) => at * 10);
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
  field('meta', { type: 'object', style: 'text', explode: false }),
  field('photo', { isFile: true }),
  field('thumbnail', { required: false, isFile: true }),
  field('more', { required: false, isFile: true, type: 'array' }),
];
const UPLOAD = operation({ method: 'POST', path: '/upload', body: formBody(MULTIPART, UPLOAD_FIELDS) });
const ORDER_FIELDS = [
  field('name'),
  field('amount', { type: 'integer' }),
  field('gift', { required: false, type: 'boolean' }),
  field('tags', { required: false, type: 'array', itemType: 'string' }),
  field('sizes', {
    ...{ required: false, type: 'array', itemType: 'integer' },
    ...{ style: 'pipeDelimited', explode: false },
  }),
  field('color', { required: false, type: 'object', memberNames: ['r', 'g'] }),
  field('grade', { required: false, allowed: onlyTexts('A', 'B') }),
  field('extra', { required: false, type: 'object', style: 'deepObject' }),
];
const ORDER = operation({ method: 'POST', path: '/order', body: formBody(URLENCODED, ORDER_FIELDS) });
const MAYBE_ORDER = operation({
  method: 'POST',
  path: '/maybe-order',
  body: formBody(URLENCODED, ORDER_FIELDS, { required: false }),
});
const ANY_ORDER = operation({ method: 'POST', path: '/any-order', body: formBody(URLENCODED, []) });

const INTEGERS = { type: 'array', itemType: 'integer' } as const;
const STYLES = operation({
  path: '/styles/{id}/{label}/{point}/{file}.{ext}/{*rest}',
  parameters: [
    parameter('id', { in: 'path', ...INTEGERS, style: 'matrix' }),
    parameter('label', { in: 'path', ...INTEGERS, style: 'label' }),
    parameter('point', { in: 'path', type: 'object', style: 'matrix', explode: true }),
    parameter('file', { in: 'path' }),
    parameter('ext', { in: 'path', allowed: onlyTexts('png', 'jpg') }),
    parameter('rest', { in: 'path' }),
    parameter('each', { ...INTEGERS }),
    parameter('commas', { ...INTEGERS, explode: false }),
    parameter('spaces', { ...INTEGERS, style: 'spaceDelimited', explode: false }),
    parameter('pipes', { type: 'array', style: 'pipeDelimited', explode: false }),
    parameter('filter', { type: 'object', style: 'deepObject', required: true }),
    parameter('page', { type: 'object', style: 'deepObject' }),
    parameter('flat', { type: 'object', explode: false }),
    parameter('color', { type: 'object', memberNames: ['R', 'G'] }),
    parameter('order', { type: 'array', itemType: 'string', allowed: onlyTexts('name', 'age') }),
    parameter('stars', { type: 'integer', allowed: onlyIntegers(1, 3) }),
    parameter('X-Sizes', { in: 'header', ...INTEGERS }),
    parameter('X-Point', { in: 'header', type: 'object', explode: true }),
    parameter('seen', { in: 'cookie', ...INTEGERS }),
  ],
});
const FREE = operation({
  path: '/free',
  parameters: [parameter('page', { type: 'integer' }), parameter('filter', { type: 'object' })],
});
const ENUMS = operation({
  method: 'POST',
  path: '/enums',
  body: jsonBody([
    member('status', { allowed: onlyTexts('in stock', 'sold') }),
    member('tags', { type: 'array', required: false, allowed: onlyTexts('new', 'old') }),
    member('currency', { required: false, nullable: true, allowed: onlyTexts(...CURRENCIES) }),
    member('stars', { required: false, type: 'integer', allowed: onlyIntegers(1, 3, -5) }),
    member('sizes', { required: false, type: 'array', allowed: onlyIntegers(...MANY_NUMBERS) }),
  ]),
});

describe('running generated handlers', () => {
  let stack: Stack;
  /** The id of that endpoint. */
  let styles: string;

  before(async function () {
    this.timeout(300_000);
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    const all = [
      ...[PUT_PET, FROM_HEADERS, STRANGE_NAMES, MANY_NAMES, BYTES, FORM, MAYBE, ANYTHING],
      ...[UPLOAD, ORDER, MAYBE_ORDER, ANY_ORDER, STYLES, FREE, ENUMS],
    ];
    const ids = await Promise.all(all.map(deploy));
    styles = ids[all.indexOf(STYLES)] ?? '';
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

  it('a generated handler answers 501 with the operation and the values that it received', async () => {
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

  it('a generated handler rejects parameters that are missing or of the wrong type', async () => {
    const cases = [
      ['/pets/seven?sizes=1', 'Bad request: Invalid value for path parameter id: "seven"'],
      ['/pets/7', 'Bad request: Missing required query parameter: sizes'],
      ['/pets/7?sizes=1,big', 'Bad request: Invalid value for query parameter sizes: "big"'],
      ['/pets/7?sizes=1&dry=perhaps', 'Bad request: Invalid value for query parameter dry: "perhaps"'],
    ] as const;
    for (const [path, error] of cases)
      expect(await putPet(path, PET)).to.deep.equal({ status: 400, body: { error } });
  });

  it('a generated handler rejects bodies that are missing or do not fit the schema', async () => {
    const bodies = [undefined, '', 'no JSON', '[]', { owner: null }, { type: 'cat' }, { ...PET, age: 'old' }];
    for (const body of bodies) {
      expect((await putPet('/pets/7?sizes=1', body)).status, JSON.stringify(body)).to.equal(400);
    }
  });

  it('a generated handler parses headers and cookies', async () => {
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

  it('a generated handler reads parameters by their exact names', async () => {
    const query = Object.fromEntries(NAMES.map((name, at) => [name, `value ${at}`]));
    const { body } = await send('GET', withQuery('/strange', query));
    expect(body.received).to.deep.equal({ query });
  });

  it('a generated handler reads more parameters than one JSON object of its answer holds', async () => {
    const query = Object.fromEntries(MANY.map((name) => [name, name]));
    const { body } = await send('GET', withQuery('/many', query));
    expect(Object.assign({}, ...(body.received['query'] as object[]))).to.deep.equal(query);
  });

  it('a generated handler accepts bodies that are not JSON', async () => {
    const bytes = await send('POST', '/bytes', { body: Buffer.from([0, 255, 1]) });
    expect(bytes.body.received).to.deep.equal({ body: { bytes: 3 } });
    expect((await send('POST', '/bytes')).status).to.equal(400);

    const form = multipart([{ name: 'title', content: 'Sunset' }]);
    const sent = await send('POST', '/form', form);
    expect(sent.body.received).to.deep.equal({ body: [['title', 'Sunset']] });
    expect((await send('POST', '/form', { body: '{}' })).status).to.equal(400);
  });

  it('a generated handler parses a multipart form with text and files', async () => {
    const title = { name: 'title', content: 'Sunset & más' };
    const meta = { name: 'meta', content: '{"a":1}' };
    const photo = { name: 'photo', filename: 'sun.png', content: Buffer.from([0, 255, 13, 10]) };
    const upload = (...parts: FormPart[]) => send('POST', '/upload', multipart(parts));

    const count = { name: 'count', content: '3' };
    const sizes = ['1', '2.5'].map((content) => ({ name: 'sizes', content }));
    const more = [photo, photo].map((part) => ({ ...part, name: 'more' }));
    const sent = await upload(title, meta, photo, count, ...sizes, ...more);
    expect(sent.status).to.equal(501);
    const received = { title: 'Sunset & más', meta: '{"a":1}', count: 3, sizes: [1, 2.5], thumbnail: null };
    const info = { filename: 'sun.png', content_type: 'application/octet-stream', bytes: 4 };
    expect(sent.body.received).to.deep.equal({ body: { ...received, photo: info, more: [info, info] } });

    const rejected: readonly (readonly [readonly FormPart[], string])[] = [
      [[meta, photo], 'Missing required field: title'],
      [[title, meta], 'Missing required file: photo'],
      [[title, meta, { name: 'photo', content: 'text' }], 'Missing required file: photo'],
      [[title, photo], 'Missing required field: meta'],
      [[title, meta, photo, { name: 'count', content: 'x' }], 'Invalid value for field count: "x"'],
    ];
    for (const [parts, error] of rejected) {
      const expected = { status: 400, body: { error: `Bad request: ${error}` } };
      expect(await upload(...parts)).to.deep.equal(expected);
    }
    expect((await send('POST', '/upload', { body: {} })).status).to.equal(400);
  });

  it('a generated handler accepts JSON that a browser sends as a file of a form', async () => {
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

  it('a generated handler parses an urlencoded form', async () => {
    const post = (body: string | undefined, path = '/order', type = `${URLENCODED}; charset=utf-8`) =>
      send('POST', path, { headers: { 'content-type': type }, ...(body === undefined ? {} : { body }) });
    const full =
      'name=a+b%21%26%C3%A9+100%+%zz&amount=7&gift=true&tags=a,b&tags=c%2Bd&sizes=1|2&extra[x]=1&extra%5By%5D=2&g=3&r=4&grade=B';
    expect((await post(full)).body.received).to.deep.equal({
      body: {
        name: 'a b!&é 100% %zz',
        amount: 7,
        gift: true,
        tags: ['a,b', 'c+d'],
        sizes: [1, 2],
        color: { r: '4', g: '3' },
        grade: 'B',
        extra: { x: '1', y: '2' },
      },
    });
    const least = { name: '', amount: 2, gift: null, tags: null, sizes: null };
    const none = { color: null, grade: null, extra: null };
    expect((await post('name&amount=1&amount=2&&')).body.received).to.deep.equal({
      body: { ...least, ...none },
    });

    const rejected = [
      ['', 'Missing required field: name'],
      ['name=a', 'Missing required field: amount'],
      ['name=a&amount=x', 'Invalid value for field amount: "x"'],
      ['name=a&amount=1&gift=maybe', 'Invalid value for field gift: "maybe"'],
      ['name=a&amount=1&grade=C', 'Invalid value for field grade: "C" is not one of "A", "B"'],
      ['name=a&amount=1&sizes=1|x', 'Invalid value for field sizes: "x"'],
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

  it('a generated handler parses parameters in their style', async () => {
    const path = '/styles/;id=1,2/.3.4/;x=5;y=6/photo.png/a/b';
    const filter = 'filter[a]=1&filter[b%20c]=2&filters=3&filter[=4';
    const lists = 'each=1&each=2&commas=3,4&spaces=5%206&pipes=a,b|c&order=name&order=age&stars=3';
    const objects = 'flat=a,1,b,2&G=2&R=1';
    const headers = { 'x-sizes': ['1, 2', '3'], 'x-point': 'x=1,y=2', cookie: 'seen=1; seen=2' };
    const { status, body } = await send('GET', `${path}?${filter}&${lists}&${objects}`, { headers });
    expect(status, JSON.stringify(body)).to.equal(501);
    expect(body.received).to.deep.equal({
      path: {
        id: [1, 2],
        label: [3, 4],
        point: { x: '5', y: '6' },
        ...{ file: 'photo', ext: 'png', rest: 'a/b' },
      },
      query: {
        each: [1, 2],
        commas: [3, 4],
        spaces: [5, 6],
        pipes: ['a,b', 'c'],
        filter: { a: '1', 'b c': '2' },
        page: null,
        flat: { a: '1', b: '2' },
        color: { R: '1', G: '2' },
        order: ['name', 'age'],
        stars: 3,
      },
      header: { 'X-Sizes': [1, 2, 3], 'X-Point': { x: '1', y: '2' } },
      cookie: { seen: [1, 2] },
    });
    const rejected = [
      [`${path}?page[a]=1`, 'Missing required query parameter: filter'],
      [`${path}?filter[a]=1&each=1,2`, 'Invalid value for query parameter each: "1,2"'],
      [
        `${path}?filter[a]=1&order=x`,
        'Invalid value for query parameter order: "x" is not one of "name", "age"',
      ],
      [`${path}?filter[a]=1&flat=a`, 'Invalid value for query parameter flat: "a" is a key without a value'],
      [`${path}?filter[a]=1&stars=2`, 'Invalid value for query parameter stars: "2" is not one of "1", "3"'],
      [
        '/styles/7/.3/;x=5/photo.png/a?filter[a]=1',
        'Invalid value for path parameter id: "7" does not begin with ";id="',
      ],
      [
        '/styles/;id=7/3/;x=5/photo.png/a?filter[a]=1',
        'Invalid value for path parameter label: "3" does not begin with "."',
      ],
      [
        '/styles/;id=7/.3/x=5/photo.png/a?filter[a]=1',
        'Invalid value for path parameter point: "x=5" does not begin with ";"',
      ],
      [
        '/styles/;id=1/.3/;x=5/photo.gif/a?filter[a]=1',
        'Invalid value for path parameter ext: "gif" is not one of "png", "jpg"',
      ],
    ] as const;
    for (const [target, error] of rejected) {
      expect(await send('GET', target)).to.deep.equal({
        status: 400,
        body: { error: `Bad request: ${error}` },
      });
    }
    for (const list of ['each=&each=', 'each=1&each=', 'order=&order=age']) {
      const { status, body } = await send('GET', `${path}?filter[a]=1&${list}`);
      expect(`${status},${body.error}`).to.match(
        /^400,Bad request: Invalid value for query parameter \w+: ""/,
      );
    }
    const free = await send('GET', '/free?a=1&page=2&b=3');
    expect(free.body.received).to.deep.equal({ query: { page: 2, filter: { a: '1', b: '3' } } });
  });

  it('a generated handler reads an empty text as an empty list, as the policy validate does', async () => {
    const integers = { type: 'array', items: { type: 'integer' } };
    const texts = { type: 'array', items: { type: 'string' } };
    const parameters = [
      { in: 'path', name: 'id', schema: integers, style: 'matrix' },
      { in: 'query', name: 'each', schema: integers },
      { in: 'query', name: 'commas', schema: integers, explode: false },
      { in: 'query', name: 'pipes', schema: texts, style: 'pipeDelimited', explode: false },
      { in: 'query', name: 'order', schema: { ...texts, items: { enum: ['name', 'age'] } } },
      { in: 'cookie', name: 'seen', schema: integers },
    ];
    const target = '/styles/;id=/.3/;x=5/photo.png/a?filter[a]=1&each=&commas=&pipes=&order=';
    for (const policies of [null, { validate: { mode: 'enforce', parameters } }]) {
      expectData(await stack.api.put(`/api/endpoints/${styles}`, { policies }));
      const { status, body } = await send('GET', target, { headers: { cookie: 'seen=' } });
      expect(status, JSON.stringify(body)).to.equal(501);
      expect(body.received['path']).to.deep.include({ id: [] });
      expect(body.received['query']).to.deep.include({ each: [], commas: [], pipes: [], order: [] });
      expect(body.received['cookie']).to.deep.equal({ seen: [] });
    }
    expectData(await stack.api.put(`/api/endpoints/${styles}`, { policies: null }));
  });

  it('a generated handler checks the enums of a body', async () => {
    const post = (body: unknown) => send('POST', '/enums', { body });
    const full = {
      ...{ status: 'in stock', tags: ['new', 'old'], currency: 'C59' },
      ...{ stars: -5, sizes: [0, 990] },
    };
    expect((await post(full)).body.received).to.deep.equal({ body: full });
    const nulls = { status: 'sold', tags: null, currency: null, stars: null, sizes: null };
    expect((await post(nulls)).body.received).to.deep.equal({ body: nulls });
    const rejected = [
      [{ status: 'lost' }, 'Invalid value for field status: "lost" is not one of "in stock", "sold"'],
      [{ ...full, tags: ['new', 'x'] }, 'Invalid value for field tags[1]: "x" is not one of "new", "old"'],
      [{ ...full, stars: 5 }, 'Invalid value for field stars: 5 is not one of 1, 3, -5'],
      [{}, 'Missing field: status'],
      ['hello', 'Expected a JSON body, but it begins with "hello"'],
    ] as const;
    for (const [body, error] of rejected) {
      expect(await post(body)).to.deep.equal({ status: 400, body: { error: `Bad request: ${error}` } });
    }
    const { error } = (await post({ ...full, currency: 'DM' })).body;
    expect(error).to.match(
      /^Bad request: Invalid value for field currency: "DM" is not one of "C0", .* and 10 more$/,
    );
    expect((await post({ ...full, sizes: [10, 5] })).body.error).to.match(
      /^Bad request: Invalid value for field sizes\[1\]: 5 is not one of 0, 10, .*190 and 80 more$/,
    );
  });

  it('a generated handler accepts a missing optional body, but not an invalid one', async () => {
    expect((await send('POST', '/maybe')).body.received).to.deep.equal({ body: null });
    expect((await send('POST', '/maybe', { body: PET })).status).to.equal(400);
    expect((await send('POST', '/anything', { body: 'null' })).body.received).to.deep.equal({ body: null });
    expect((await send('POST', '/anything')).status).to.equal(400);
  });

  it('a generated handler accepts missing optional parameters', async () => {
    const { body } = await putPet('/pets/7?sizes=1', PET);
    expect(body.received['query']).to.deep.equal({ dry: null, sizes: [1] });
    const strange: readonly Parameter[] = STRANGE_NAMES.parameters;
    const none = Object.fromEntries(strange.map(({ name }) => [name, null]));
    expect((await send('GET', '/strange')).body.received).to.deep.equal({ query: none });
  });
});
