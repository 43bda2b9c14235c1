/** The policy `validate`: what parameters and bodies have to be; over HTTP, with real processes. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure } from '../../support/expect.js';
import { call } from '../../support/http.js';
import {
  type PolicyStack,
  problemsOf,
  reportedOf,
  reportsOf,
  startPolicyStack,
} from '../../support/policies.js';

const PET = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 10 },
    kind: { enum: ['cat', 'dog'] },
    born: { type: 'string', format: 'date' },
    children: { type: 'array', items: { $ref: '#/components/schemas/Pet' }, maxItems: 3 },
  },
};
const BODY = {
  body: { required: true, content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } } },
  components: { schemas: { Pet: PET } },
};

describe('the policy validate', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack();
  });
  after(() => one?.close());

  const set = (validate: object, owner = one.endpoint) =>
    one.set(owner, { validate: { mode: 'enforce', ...validate } });
  const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
    one.send({ method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });

  it('refuses a request with every problem and its place, and admits one that fits', async () => {
    await set(
      { ...BODY, parameters: [{ in: 'query', name: 'limit', schema: { type: 'integer', maximum: 100 } }] },
      one.post,
    );
    const body = { name: '', kind: 'cow', born: '2023-02-29', other: 1, children: [{ name: 'ok' }, {}] };
    const path = '/shown?limit=1000';
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    const refused = await one.send({ method: 'POST', path, headers, body: JSON.stringify(body) });
    expect([refused.status, ...problemsOf(refused.text)]).to.deep.equal([
      400,
      'query.limit: must be at most 100',
      'body.born: must fit the format date',
      'body.children.1.name: is required',
      'body.kind: must be one of "cat", "dog"',
      'body.name: must have at least 1 characters',
      'body.other: is not accepted',
    ]);
    expect(JSON.parse(refused.text).error).to.equal('query.limit: must be at most 100 (and 5 more problems)');
    const fitting = JSON.stringify({
      name: 'Ada',
      kind: 'cat',
      born: '2024-02-29',
      children: [{ name: 'x' }],
    });
    const { bytes } = await one.shown({ method: 'POST', path: '/shown?limit=7', headers, body: fitting });
    expect(bytes).to.equal(fitting.length);
    // Not more than so many are listed.
    const many = JSON.stringify({
      name: 'x',
      ...Object.fromEntries(Array.from({ length: 99 }, (_, at) => [at, 1])),
    });
    const { text } = await post(many);
    expect(problemsOf(text)).to.have.length(20);
    expect(JSON.parse(text).error).to.match(/ \(and at least 19 more problems\)$/);
  });

  it('refuses bodies that cannot be read, or could be read in two ways', async () => {
    await set(BODY, one.post);
    const first = async (...args: Parameters<typeof post>) => {
      const { status, text } = await post(...args);
      return `${status} ${problemsOf(text)[0]}`;
    };
    expect(await first('')).to.equal('400 body: is required');
    expect(await first('{"name":')).to.match(/^400 body: cannot be read as JSON: EOF/);
    expect(await first('{"name":"a","name":"b"}')).to.match(/the member "name" appears twice/);
    expect(await first('[1e999]')).to.match(/number out of range/);
    expect(await first('['.repeat(100_000))).to.match(/recursion limit exceeded/);
    expect(await first(Buffer.from([0x22, 0xff, 0x22]))).to.equal('400 body: is not UTF-8');
    expect(await first(`[${'0,'.repeat(1_000_001)}0]`)).to.match(/more than 1000000 values/);
    expect(await first('<a/>', { 'content-type': 'text/xml' })).to.equal(
      '415 body: must have the Content-Type application/json',
    );
    expect(await first('{}', { 'content-encoding': 'gzip' })).to.match(
      /^415 body: must not have a Content-Encoding/,
    );
    expect((await post('{"name":"a"}', { 'content-encoding': 'identity' })).status).to.equal(200);
  });

  it('only counts and logs problems of requests in the mode report', async () => {
    const before = await reportsOf(one.stack);
    await set({ ...BODY, mode: 'report' }, one.post);
    const headers = { 'content-type': 'application/json', 'x-request-id': 'reported-by-validate' };
    const shown = await one.shown({ method: 'POST', headers, body: '{"name":""}' });
    expect(shown.bytes).to.equal(11);
    await eventually(async () =>
      expect(await reportedOf(one.stack, 'reported-by-validate')).to.deep.equal([
        'body.name: must have at least 1 characters',
      ]),
    );
    await eventually(async () => expect(await reportsOf(one.stack)).to.equal(before + 1));
    await set({ ...BODY, mode: 'off' }, one.post);
    expect((await post('{')).status).to.equal(200);
  });

  it('validates requests after auth, and before the handler is woken', async () => {
    await one.set(one.endpoint, {
      auth: { api_key: {} },
      validate: { mode: 'enforce', parameters: [{ in: 'query', name: 'a', required: true, schema: {} }] },
    });
    expect((await one.send()).status).to.equal(401);
    const domain = one.domain;
    const { key } = expectData<{ key: string }>(
      await one.stack.api.post(`${domain}/keys`, { label: 'one' }),
      201,
    );
    const headers = { 'x-api-key': key };
    expect(await one.stack.api.put(one.endpoint, { limits: { idle_ms: 1 } })).to.include({ status: 200 });
    const pid = async () => expectData<{ pid: number | null }>(await one.stack.api.get(one.endpoint)).pid;
    await eventually(async () => expect(await pid()).to.equal(null));
    for (let count = 0; count < 10; count++) {
      const { status, text } = await one.send({ headers });
      expect([status, ...problemsOf(text)]).to.deep.equal([400, 'query.a: is required']);
    }
    expect(await pid()).to.equal(null);
    expect((await one.send({ headers, path: '/shown?a=' })).status).to.equal(200);
    await one.stack.api.put(one.endpoint, { limits: null });
    await one.set(one.endpoint, null);
  });

  it('refuses a validate policy that cannot be enforced, naming the place', async () => {
    const deep = (depth: number): object => (depth === 0 ? {} : { not: deep(depth - 1) });
    const nested = (depth: number) => `${'{"not":'.repeat(depth)}{}${'}'.repeat(depth)}`;
    const schema = (value: unknown, components: object = {}) => ({
      body: { content: { 'application/json': { schema: value } } },
      components: { schemas: components },
    });
    const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
    const chain = Object.fromEntries(
      Array.from({ length: 60 }, (_, one) => [one, one < 59 ? ref(`${one + 1}`) : {}]),
    );
    const at = 'body.policies.validate';
    const json = `${at}.body.content.application/json.schema`;
    const cases: [object, string][] = [
      [
        schema(ref('A'), { A: ref('A') }),
        `${at}.components.schemas.A: applies itself to the same value without end`,
      ],
      [schema({}, { A: ref('B'), B: { allOf: [ref('A')] } }), `${at}.components.schemas.A: applies itself`],
      [schema({ pattern: '^(?!a)' }), `${json}.pattern: the pattern "^(?!a)" has look-around`],
      ...['Ideographic', 'Cased', 'Diacritic', 'Quotation_Mark', 'Alphabetic'].map(
        (name): [object, string] => [
          schema({ pattern: `^\\p{${name}}+$` }),
          `${json}.pattern: the pattern "^\\p{${name}}+$" has \\p{${name}}; only general categories`,
        ],
      ),
      [schema({ pattern: '(a)\\1' }), `${json}.pattern: the pattern "(a)\\1" has a back-reference`],
      [
        schema({ pattern: '((a{1000}){1000}){1000}' }),
        `${json}.pattern: the pattern "((a{1000}){1000}){1000}" is too large`,
      ],
      [
        schema({ $ref: 'http://127.0.0.1:1/schema' }),
        `${json}.$ref: "http://127.0.0.1:1/schema" leads out of the policy`,
      ],
      [schema({ $ref: 'file:///etc/passwd' }), `${json}.$ref: "file:///etc/passwd" leads out of the policy`],
      [schema(ref('Gone')), `${json}.$ref: "#/components/schemas/Gone" leads to no schema`],
      [schema(deep(120)), `${json}.not.not.not: is nested more than`],
      [schema({}, chain), ': applies a chain of more than 50 schemas to one value'],
      [
        schema({ enum: Array.from({ length: 30_000 }, (_, index) => index) }),
        'body.policies: has more than 20000 values',
      ],
      [schema({ const: 'x'.repeat(300_000) }), 'body.policies: has more than 262144 characters'],
      [
        {
          parameters: Array.from({ length: 6 }, (_, at) => ({
            in: 'query',
            name: `${at}`,
            schema: ref('X'),
          })),
          components: { schemas: { X: { properties: { ['x'.repeat(200_000)]: true } } } },
        },
        `${at}.parameters.5.schema: is one too many: the names of members have more than 1048576 bytes`,
      ],
      [
        schema({ allOf: Array.from({ length: 100 }, () => ({ pattern: '\\s'.repeat(1_000) })) }),
        'is one too many: all together have more than 1048576 bytes once they are translated',
      ],
      [schema({ type: 'text' }), `${json}.type: "text" is not a type`],
      [schema({ nullable: true }), `${json}.nullable: is of OpenAPI 3.0; add "null" to the type`],
      [schema({ exclusiveMinimum: true }), `${json}.exclusiveMinimum: must be a number`],
      [schema({ $dynamicRef: '#a' }), `${json}.$dynamicRef: is not supported`],
      [schema({ format: 'idn-hostname' }), `${json}.format: "idn-hostname" is not supported`],
      [schema({ items: [{}] }), `${json}.items: is a list, as in older drafts; use prefixItems`],
      [schema(7), `${json}: must be a schema`],
      [
        { body: { content: { 'image/png': { schema: {} } } } },
        `${at}.body.content.image/png.schema: can only be checked`,
      ],
      [{ body: { content: { json: {} } } }, `${at}.body.content.json: is not a media type`],
      [{ parameters: [{ in: 'query', name: 'a' }] }, `${at}.parameters.0: needs either schema or content`],
      [
        { parameters: [{ in: 'header', name: 'a', style: 'form', schema: {} }] },
        `${at}.parameters.0.style: must be one of simple`,
      ],
      [{ parameters: [{ in: 'body', name: 'a', schema: {} }] }, `${at}.parameters.0.in: must be`],
      [{}, `${at}: needs parameters or body`],
      [{ ...BODY, modes: 1 }, `${at}.modes: is not accepted`],
    ];
    for (const [validate, message] of cases) {
      const answer = await one.stack.api.put(one.endpoint, {
        policies: { validate: { mode: 'enforce', ...validate } },
      });
      expectFailure(answer, 'invalid_input');
      expect((answer.body as { error: string }).error).to.include(message);
    }
    const number =
      '{"policies":{"validate":{"mode":"enforce","parameters":[{"in":"query","name":"a","schema":{"minimum":1e999}}]}}}';
    for (const [text, message] of [
      [number, `${at}.parameters.0.schema.minimum: is a number too large to be one`],
      [`{"policies":{"validate":${nested(20_000)}}}`, 'body.policies'],
    ] as const) {
      const headers = { 'content-type': 'application/json' };
      const answer = await call(`${one.stack.apiUrl}${one.endpoint}`, { method: 'PUT', headers, body: text });
      expect(answer.status).to.equal(400);
      expect(answer.text).to.include(message);
    }
  });

  it('enforces a large validate policy on all endpoints of a domain, also after a restart', async () => {
    const paths = Array.from({ length: 40 }, (_, at) => `/large-${at}`);
    for (const path of paths) {
      const fields = { name: path, path, method: 'GET', domain: one.host };
      expectData(await one.stack.api.post('/api/endpoints', fields), 201);
    }
    const values = Array.from({ length: 4000 }, (_, at) => `${'x'.repeat(50)}${at}`);
    await one.set(one.domain, {
      validate: {
        mode: 'enforce',
        parameters: [{ in: 'query', name: 'a', required: true, schema: { enum: values } }],
      },
    });
    const statuses = async (path: string) =>
      Promise.all(
        ['?a=x', `?a=${values[7]}`].map(async (query) => (await one.send({ path: path + query })).status),
      );
    for (const path of paths)
      await eventually(async () => expect(await statuses(path)).to.deep.equal([400, 503]));
    await one.stack.processes.get('gateway')?.end();
    await one.stack.start('gateway');
    for (const path of paths) expect(await statuses(path)).to.deep.equal([400, 503]);
    await one.set(one.domain, null);
  });

  it('shows a validate policy with its origin, and in brief in lists', async () => {
    await one.set(one.domain, { validate: { mode: 'enforce', ...BODY } });
    const inForce = expectData<{ policies: object; sources: object }>(
      await one.stack.api.get(`${one.post}/policies`),
    );
    await one.set(one.post, null);
    const after = expectData<{ policies: object; sources: object }>(
      await one.stack.api.get(`${one.post}/policies`),
    );
    expect(after.policies).to.deep.equal({ validate: { mode: 'enforce', ...BODY } });
    expect(after.sources).to.deep.equal({
      validate: { scope: 'domain', owner_id: one.domain.split('/').pop() },
    });
    expect(inForce.sources).to.deep.equal({
      validate: { scope: 'endpoint', owner_id: one.post.split('/').pop() },
    });
    await one.set(one.domain, null);

    await one.set(one.post, { body_limit: 1000, validate: { mode: 'report', ...BODY } });
    const listed = expectData<{ id: string; policies: object | null }[]>(
      await one.stack.api.get('/api/endpoints'),
    );
    const brief = listed.find(({ id }) => one.post.endsWith(id))?.policies;
    expect(brief).to.deep.equal({ body_limit: 1000, validate: { mode: 'report' } });
    // What a list shows cannot be taken for all of it.
    expectFailure(await one.stack.api.put(one.post, { policies: brief }), 'invalid_input');
    const whole = expectData<{ policies: object }>(await one.stack.api.get(one.post)).policies;
    expect(whole).to.deep.equal({ body_limit: 1000, validate: { mode: 'report', ...BODY } });
    await one.set(one.post, null);
  });
});
