/** The policy `validate`: texts are read as their schemas say; over HTTP, with real processes. */
import { expect } from 'chai';
import { type PolicyStack, problemsOf, startPolicyStack } from '../../support/policies.js';

describe('the policy validate and texts', function () {
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

  it('reads an empty text as the empty list, unless it fits as an item', async () => {
    const integers = { type: 'array', items: { type: 'integer' } };
    const texts = { type: 'array', items: { type: 'string' }, minItems: 1 };
    const oneOrMore = { oneOf: [{ type: 'integer' }, integers] };
    const point = { type: 'object', properties: { x: { type: 'number' } }, additionalProperties: false };
    const form = { type: 'object', properties: { ids: integers, texts } };
    await set({
      parameters: [
        { in: 'query', name: 'ids', schema: integers },
        { in: 'query', name: 'csv', schema: integers, explode: false },
        { in: 'query', name: 'pipes', schema: integers, style: 'pipeDelimited', explode: false },
        { in: 'query', name: 'some', schema: { ...integers, minItems: 1 } },
        { in: 'query', name: 'either', schema: oneOrMore },
        { in: 'query', name: 'csvOr', schema: oneOrMore, explode: false },
        { in: 'query', name: 'texts', schema: texts },
        { in: 'query', name: 'csvTexts', schema: texts, explode: false },
        { in: 'query', name: 'point', schema: point, explode: false },
        { in: 'header', name: 'X-List', schema: integers },
      ],
    });
    const get = async (query: string, headers: Record<string, string> = {}) => {
      const { status, text } = await one.send({ path: `/shown?${query}`, headers });
      return status === 200 ? [] : problemsOf(text);
    };
    expect(await get('ids=&csv=&pipes=&either=&csvOr=&texts=&point=', { 'x-list': '' })).to.deep.equal([]);
    expect(await get('ids=&ids=&csv=,&some=&csvTexts=')).to.deep.equal([
      'query.ids.0: must be of type integer',
      'query.ids.1: must be of type integer',
      'query.csv.0: must be of type integer',
      'query.csv.1: must be of type integer',
      'query.some: must have at least 1 items',
      'query.csvTexts: must have at least 1 items',
    ]);
    await set({ body: { content: { 'application/x-www-form-urlencoded': { schema: form } } } }, one.post);
    const sent = await post('ids=&texts=', { 'content-type': 'application/x-www-form-urlencoded' });
    expect(sent.status, sent.text).to.equal(200);
    await one.set(one.post, null);
  });

  it('reads parameters of all places and styles as their schemas say', async () => {
    const integers = { type: 'array', items: { type: 'integer' } };
    const point = {
      type: 'object',
      properties: { x: { type: 'number' }, on: { type: 'boolean' } },
      required: ['x'],
    };
    await set({
      parameters: [
        { in: 'query', name: 'ids', schema: integers },
        { in: 'query', name: 'csv', schema: integers, explode: false },
        { in: 'query', name: 'pipes', schema: integers, style: 'pipeDelimited', explode: false },
        { in: 'query', name: 'at', schema: point, style: 'deepObject' },
        { in: 'query', name: 'flag', schema: { type: 'boolean' }, allowEmptyValue: true },
        {
          in: 'query',
          name: 'either',
          schema: { anyOf: [{ type: 'integer' }, { type: 'string', pattern: '^[a-z]+$' }] },
        },
        { in: 'query', name: 'json', content: { 'application/json': { schema: point } } },
        { in: 'header', name: 'X-Level', schema: { type: 'integer' } },
        { in: 'header', name: 'X-List', schema: integers },
        { in: 'cookie', name: 'session', required: true, schema: { type: 'string', format: 'uuid' } },
      ],
    });
    const cookie = 'a=b; session=2eb8aa08-aa98-11ea-b4aa-73b441d16380';
    const get = async (query: string, headers: Record<string, string | string[]> = {}) => {
      const { status, text } = await one.send({ path: `/shown?${query}`, headers: { cookie, ...headers } });
      return status === 200 ? [] : problemsOf(text);
    };
    expect(
      await get('ids=1&ids=2&csv=1,2&pipes=1%7C2&at[x]=1.5&at%5Bon%5D=true&flag=&either=5'),
    ).to.deep.equal([]);
    expect(
      await get('either=ab&json=%7B%22x%22:1%7D&flag=false', { 'x-level': '7', 'x-list': '1, 2' }),
    ).to.deep.equal([]);
    expect(
      await get('ids=1&ids=b&csv=1,c&pipes=x&at[x]=y&at[on]=1&flag=yes&either=AB&json=%7B'),
    ).to.deep.equal([
      'query.ids.1: must be of type integer',
      'query.csv.1: must be of type integer',
      'query.pipes.0: must be of type integer',
      'query.at.on: must be of type boolean',
      'query.at.x: must be of type number',
      'query.flag: must be of type boolean',
      'query.either: must match the pattern ^[a-z]+$',
      'query.json: cannot be read as JSON: EOF while parsing an object at line 1 column 1',
    ]);
    expect(await get('flag=true&flag=false')).to.deep.equal(['query.flag: is given more than once']);
    // Encoded names are the same names.
    expect(await get('fl%61g=7&a%ff=1')).to.deep.equal([
      'query: is not percent-encoded UTF-8',
      'query.flag: must be of type boolean',
    ]);
    expect(await get('either=%ff')).to.deep.equal(['query.either: is not percent-encoded UTF-8']);
    expect(await get('', { 'x-level': '07', cookie: 'session=1' })).to.deep.equal([
      'header.X-Level: must be of type integer',
      'cookie.session: must fit the format uuid',
    ]);
    expect(await get('', { 'x-level': ['1', '2'], cookie: '' })).to.deep.equal([
      'header.X-Level: is given more than once',
      'cookie.session: is required',
    ]);
    await one.set(one.endpoint, null);
  });

  it('reads forms and plain texts as their schemas say', async () => {
    const form = {
      type: 'object',
      required: ['age'],
      properties: { age: { type: 'integer' }, tags: { type: 'array', items: { enum: ['a', 'b'] } } },
    };
    const content = {
      'application/x-www-form-urlencoded': { schema: form },
      'text/plain': { schema: { type: 'string', maxLength: 3 } },
      'image/*': {},
    };
    await set({ body: { content } }, one.post);
    const send = async (type: string, body: string) => {
      const { status, text } = await post(body, { 'content-type': type });
      return status === 200 ? 200 : problemsOf(text);
    };
    expect(await send('application/x-www-form-urlencoded', 'age=7&tags=a&tags=b')).to.equal(200);
    expect(await send('application/x-www-form-urlencoded', 'age=x&tags=c&tags=a')).to.deep.equal([
      'body.age: must be of type integer',
      'body.tags.0: must be one of "a", "b"',
    ]);
    expect(await send('text/plain', 'abc')).to.equal(200);
    expect(await send('text/plain', 'abcd')).to.deep.equal(['body: must have at most 3 characters']);
    expect(await send('image/png', '\u0089PNG')).to.equal(200);
    expect(await send('application/json', '{}')).to.have.length(1);
  });

  it('checks every value of members that have no names in the schema', async () => {
    const integer = { type: 'integer' };
    const schema = {
      type: 'object',
      properties: { kind: {} },
      patternProperties: {
        '^n_': integer,
        '^l_': { type: 'array', items: integer },
        '^s_': { maxLength: 2 },
      },
      dependentSchemas: { kind: { properties: { size: integer } } },
      allOf: [{ properties: { v: integer } }, { properties: { v: { maximum: 9 } } }],
      unevaluatedProperties: { type: 'array', items: { enum: ['a', 'b'] } },
    };
    const content = {
      'application/x-www-form-urlencoded': { schema },
    };
    await set({ body: { content } }, one.post);
    const at = { in: 'query', name: 'at', style: 'deepObject', schema };
    const free = {
      in: 'query',
      name: 'free',
      style: 'deepObject',
      schema: { additionalProperties: integer },
    };
    await set({ parameters: [at, free] });
    const both = async (form: string) => {
      const posted = await post(form, { 'content-type': 'application/x-www-form-urlencoded' });
      const query = form.replace(/(^|&)(\w+)=/g, '$1at[$2]=');
      const asked = await one.send({ path: `/shown?${query}` });
      const [inBody, inQuery] = [posted, asked].map(({ status, text }) =>
        status === 200 ? [] : problemsOf(text),
      );
      expect(inQuery?.map((text) => text.replace('query.at', 'body'))).to.deep.equal(inBody);
      return inBody;
    };
    expect(await both('n_a=5&l_a=1&l_a=2&s_a=x&s_a=yz&kind=1&size=3&v=9&other=a&other=b')).to.deep.equal([]);
    expect(await both('n_a=x&l_a=1&l_a=y&s_a=x&s_a=yyy&kind=1&size=z&v=10')).to.deep.equal([
      'body.s_a.1: must have at most 2 characters',
      'body.l_a.1: must be of type integer',
      'body.n_a: must be of type integer',
      'body.v: must be at most 9',
      'body.size: must be of type integer',
    ]);
    // What is left over is known where nothing else is wrong.
    expect(await both('other=a&other=c')).to.deep.equal(['body.other.1: must be one of "a", "b"']);
    expect(await both('n_a=5&n_a=6')).to.deep.equal(['body.n_a: is given more than once']);
    const asked = async (query: string) => {
      const { status, text } = await one.send({ path: `/shown?${query}` });
      return status === 200 ? [] : problemsOf(text);
    };
    expect(await asked('free[a]=1&free[b]=2')).to.deep.equal([]);
    expect(await asked('free[a]=1&free[b]=c')).to.deep.equal(['query.free.b: must be of type integer']);
    await one.set(one.endpoint, null);
  });
});
