/** Generated handlers at work: compiled, started and asked, by the real processes. */
import { expect } from 'chai';
import { generateHandler } from '../../../src/import/handler-source/generate-handler.js';
import type { Operation, Parameter } from '../../../src/import/openapi/document.js';
import type { HttpRequest } from '../../support/client.js';
import { multipart } from '../../support/form.js';
import { type Stack, startStack } from '../../support/processes.js';
import { jsonBody, member, operation, parameter } from './operations.js';

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

/** Names that are hard to write down in Rust, each of which has to arrive. */
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
/** More than `json!` takes in one object. */
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

describe('generated handlers at work', () => {
  let stack: Stack;

  before(async function () {
    this.timeout(300_000);
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    const all = [PUT_PET, FROM_HEADERS, STRANGE_NAMES, MANY_NAMES, BYTES, FORM, MAYBE, ANYTHING];
    await Promise.all(all.map(deploy));
  });
  after(() => stack.close());

  const deploy = (of: Operation) =>
    stack.deploy({ path: of.path, method: of.method, code: generateHandler(of, 'Pet store') });
  const ask = async (method: string, path: string, options?: HttpRequest) => {
    const { status, body } = await stack.gateway.send(method, path, options);
    return { status, body: body as { error: string; received: Record<string, unknown> } };
  };
  const putPet = (path: string, body: unknown) => ask('PUT', path, { body });
  const PET = { type: 'cat', owner: null };
  const withQuery = (path: string, query: Record<string, string>) => `${path}?${new URLSearchParams(query)}`;

  it('answers 501 with what is left to write and what it has received', async () => {
    expect(await putPet('/pets/7?dry=true&sizes=1,2.5', { ...PET, age: 3 })).to.deep.equal({
      status: 501,
      body: {
        error: 'putPet is not implemented yet',
        operation: 'PUT /pets/{id}',
        left_to_write: 'what putPet does with a request that is in order, and its answer',
        received: {
          path: { id: 7 },
          query: { dry: true, sizes: [1, 2.5] },
          body: { type: 'cat', age: 3, owner: null },
        },
      },
    });
  });

  it('refuses parameters that are missing or of another type', async () => {
    const cases = [
      ['/pets/seven?sizes=1', 'Bad request: Invalid value for path parameter id: "seven"'],
      ['/pets/7', 'Bad request: Missing required query parameter: sizes'],
      ['/pets/7?sizes=1,big', 'Bad request: Invalid value for sizes: "big"'],
      ['/pets/7?sizes=1&dry=perhaps', 'Bad request: Invalid value for dry: "perhaps"'],
    ] as const;
    for (const [path, error] of cases)
      expect(await putPet(path, PET)).to.deep.equal({ status: 400, body: { error } });
  });

  it('refuses bodies that are missing or of another shape', async () => {
    const bodies = [undefined, '', 'no JSON', '[]', { owner: null }, { type: 'cat' }, { ...PET, age: 'old' }];
    for (const body of bodies) {
      expect((await putPet('/pets/7?sizes=1', body)).status, JSON.stringify(body)).to.equal(400);
    }
  });

  it('takes headers and cookies apart', async () => {
    const headers = { 'x-count': '3', cookie: 'visits=4; session=a=b; seen=1,2' };
    const { status, body } = await ask('GET', '/headers', { headers });
    expect(status).to.equal(501);
    expect(body.received).to.deep.equal({
      header: { 'X-Count': 3, 'X-Note': null },
      cookie: { session: 'a=b', visits: 4, seen: [1, 2] },
    });
    const refused = [
      { 'x-count': '3' },
      { cookie: 'session=a' },
      { ...headers, 'x-count': 'x' },
      { ...headers, cookie: 'session=a; visits=x' },
    ];
    for (const wrong of refused)
      expect((await ask('GET', '/headers', { headers: wrong })).status).to.equal(400);
  });

  it('knows parameters by their very names', async () => {
    const query = Object.fromEntries(NAMES.map((name, at) => [name, `value ${at}`]));
    const { body } = await ask('GET', withQuery('/strange', query));
    expect(body.received).to.deep.equal({ query });
  });

  it('takes as many parameters as there are', async () => {
    const query = Object.fromEntries(MANY.map((name) => [name, name]));
    const { body } = await ask('GET', withQuery('/many', query));
    expect(Object.assign({}, ...(body.received['query'] as object[]))).to.deep.equal(query);
  });

  it('takes bodies that are not JSON', async () => {
    const bytes = await ask('POST', '/bytes', { body: Buffer.from([0, 255, 1]) });
    expect(bytes.body.received).to.deep.equal({ body: { bytes: 3 } });
    expect((await ask('POST', '/bytes')).status).to.equal(400);

    const form = multipart([{ name: 'title', content: 'Sunset' }]);
    const sent = await ask('POST', '/form', form);
    expect(sent.body.received).to.deep.equal({ body: { title: 'Sunset' } });
    expect((await ask('POST', '/form', { body: '{}' })).status).to.equal(400);
  });

  it('does without a body that is not required, but not with a wrong one', async () => {
    expect((await ask('POST', '/maybe')).body.received).to.deep.equal({ body: null });
    expect((await ask('POST', '/maybe', { body: PET })).status).to.equal(400);
    expect((await ask('POST', '/anything', { body: 'null' })).body.received).to.deep.equal({ body: null });
    expect((await ask('POST', '/anything')).status).to.equal(400);
  });

  it('does without what is not required', async () => {
    const { body } = await putPet('/pets/7?sizes=1', PET);
    expect(body.received['query']).to.deep.equal({ dry: null, sizes: [1] });
    const strange: readonly Parameter[] = STRANGE_NAMES.parameters;
    const none = Object.fromEntries(strange.map(({ name }) => [name, null]));
    expect((await ask('GET', '/strange')).body.received).to.deep.equal({ query: none });
  });
});
