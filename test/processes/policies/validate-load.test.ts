/** The policy `validate` while much is to be checked, in a front of one thread; over HTTP, with real processes. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import type { Answer } from '../../support/http.js';
import {
  type PolicyStack,
  problemsOf,
  reportedOf,
  reportsOf,
  startPolicyStack,
} from '../../support/policies.js';
import { connector, type RawAnswer, RawConnection } from '../../support/raw-http.js';

/** Two ways at each level: all steps that a check may take are taken. */
const ALTERNATIVES = {
  anyOf: [{ $ref: '#/components/schemas/One' }, { $ref: '#/components/schemas/Other' }],
};
const ENDLESS = {
  body: { content: { 'application/json': { schema: ALTERNATIVES } } },
  components: {
    schemas: {
      One: { type: 'object', properties: { a: ALTERNATIVES } },
      Other: { type: 'object', properties: { a: ALTERNATIVES }, maxProperties: 9 },
    },
  },
};
/** Steps come with the length. */
const LONG_BODY = `${'{"a":'.repeat(100)}1${'}'.repeat(100)}${' '.repeat(1_000_000)}`;
/** Of few steps, and large enough not to be checked at once. */
const SHORT_BODY = `{}${' '.repeat(100_000)}`;
const ROUNDS = 5;
const ATTEMPTS = 50;
/** The same in a parameter: steps come with the length of the head, and the cost of the pattern. */
const ENDLESS_PARAMETER = {
  parameters: [
    { in: 'query', name: 'endless', content: ENDLESS.body.content },
    { in: 'query', name: 'word', schema: { type: 'string', pattern: '^\\p{L}{1,90}$' } },
  ],
  components: ENDLESS.components,
};
const LONG_TARGET = `/shown?endless=${encodeURIComponent(LONG_BODY.trim())}${'+'.repeat(12_000)}`;

describe('the policy validate under load', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack({ GATEWAY_CONCURRENCY: '1' });
  });
  after(() => one?.close());
  const connect = connector();

  const set = (validate: object, others: object = {}) =>
    one.set(one.post, { validate: { mode: 'enforce', ...validate }, ...others });
  const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
    one.send({ method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });

  /**
   * That requests are answered, one after the other, while another one is checked: between the moment when the front
   * has read that, and its refusal, which the front writes as soon as it knows. A front that is kept waiting answers
   * one at most, however busy the machine is. One that is not may answer few on a busy machine: seeing it once is
   * enough.
   * @returns the refusal
   */
  async function answersMeanwhile(
    requestToRefuse: string,
    send: () => Promise<Answer>,
    prepare: () => Promise<void> = () => Promise.resolve(),
  ): Promise<RawAnswer> {
    const counts: number[] = [];
    while (counts.length < ATTEMPTS) {
      await prepare();
      const connection = await connect(one.stack.gatewayUrl);
      await connection.send(requestToRefuse).read();
      let answered = 0;
      while (connection.answers.length === 0) {
        expect((await send()).status).to.equal(200);
        answered++;
      }
      const [refusal] = connection.answers;
      if (refusal && answered > ROUNDS) return refusal;
      counts.push(answered);
    }
    throw new Error(`Others were kept waiting: only ${counts.join(', ')} were answered`);
  }

  const rawPost = (body: string, lines = '') =>
    `POST /shown HTTP/1.1\r\nHost: ${one.host}\r\n${lines}Content-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  /** The policy is ready when it has let a body through. */
  const isReady = async (fitting: string) => expect((await post(fitting)).status).to.equal(200);

  /** Takes a while to be made ready. No two are the same: such a one is ready already. */
  function slowToBeReady(): object {
    const pattern = (at: number) => ({ pattern: `^(?:\\p{L}|${at}){1,90}$` });
    const anyOf = Array.from({ length: 5 }, (_, at) => pattern(at));
    const schema = { type: 'string', anyOf, maxLength: 1000 + policies++ };
    return { body: { content: { 'application/json': { schema } } } };
  }
  let policies = 0;

  it('checks large bodies without keeping other requests waiting', async () => {
    const content = {
      'application/json': { schema: { type: 'array', uniqueItems: true, items: { type: 'integer' } } },
    };
    await set({ body: { content } });
    await isReady('[]');
    const numbers = Array.from({ length: 400_000 }, (_, at) => at);
    const { body } = await answersMeanwhile(rawPost(JSON.stringify([...numbers, 7])), () => one.send());
    expect(problemsOf(body)).to.deep.equal(['body: must have no equal items, as 7 and 400000 are']);
    const { status, text } = await post(JSON.stringify(numbers));
    expect([status, JSON.parse(text).bytes]).to.deep.equal([200, JSON.stringify(numbers).length]);
  });

  it('checks large bodies while another check takes long', async () => {
    await set(ENDLESS);
    await isReady('{}');
    const { body } = await answersMeanwhile(rawPost(LONG_BODY), () => post(SHORT_BODY));
    expect(problemsOf(body)).to.deep.equal(['body: is too complex to be checked']);
  });

  it('answers 504 where a check outlasts the deadline', async () => {
    await set(ENDLESS, { timeout: 20 });
    const { status, text } = await post(LONG_BODY);
    expect([status, JSON.parse(text).error]).to.deep.equal([
      504,
      'The request could not be checked within 20 ms.',
    ]);
    await set(ENDLESS);
    expect((await post(SHORT_BODY)).status).to.equal(200);
  });

  it('ends a check when its client resets the connection, and not when it closes its sending side', async () => {
    await set(ENDLESS);
    // The others have their turns first.
    const first = Array.from({ length: 6 }, () => post(LONG_BODY));
    const send = async (id: string) => {
      const connection = await RawConnection.open(one.stack.gatewayUrl);
      await connection.send(rawPost(LONG_BODY, `X-Request-Id: ${id}\r\n`)).read();
      return connection;
    };
    const [gone, half] = await Promise.all(['gone', 'half'].map(send));
    half?.socket.end();
    gone?.socket.resetAndDestroy();
    for (const { status } of await Promise.all(first)) expect(status).to.equal(400);
    expect(await half?.answered(1)).to.have.nested.property('[0].status', 400);
    half?.close();
    // Whatever was checked beside them has ended when these have.
    const last = ['last-1', 'last-2'];
    for (const id of last) expect((await post(LONG_BODY, { 'x-request-id': id })).status).to.equal(400);
    const logged = async (id: string) =>
      expectData<{ items: object[] }>(await one.stack.api.get(`/api/logs?request_id=${id}`)).items.length;
    await eventually(async () => expect(await logged('last-2')).to.equal(1));
    expect([await logged('half'), await logged('gone')]).to.deep.equal([1, 0]);
  });

  it('refuses nothing in the mode report where a check outlasts the deadline, which is counted and logged', async () => {
    let number = 0;
    // The handler has as much time as the check: on a busy machine, it may take longer, too.
    const isLetThrough = async (validate: () => object, timeout: number, body: string) => {
      const before = await reportsOf(one.stack);
      let answer: Answer;
      do {
        await one.set(one.post, { validate: { mode: 'report', ...validate() }, timeout });
        answer = await post(body, { 'x-request-id': `check-${++number}` });
      } while (answer.status === 504);
      expect([answer.status, JSON.parse(answer.text).bytes]).to.deep.equal([200, body.length]);
      await eventually(async () => {
        expect(await reportedOf(one.stack, `check-${number}`)).to.deep.equal([
          'not checked: it takes too long',
        ]);
        expect(await reportsOf(one.stack)).to.be.above(before);
      });
    };
    await isLetThrough(() => ENDLESS, 100, LONG_BODY);
    await isLetThrough(slowToBeReady, 20, '"abc"');
  });

  it('checks bodies of another endpoint while many checks of one wait', async () => {
    await set(ENDLESS);
    const code =
      'use rust_edge_gateway_sdk::prelude::*;\nfn handle(_: Request) -> Response { Response::json(200, json!({})) }\nhandler_loop!(handle);\n';
    const id = await one.stack.deploy({
      ...{ name: 'other', path: '/other', method: 'POST', code },
      domain: one.host,
    });
    const schema = { type: 'object' };
    const body = { content: { 'application/json': { schema } } };
    await one.set(`/api/endpoints/${id}`, { validate: { mode: 'enforce', body } });
    const other = () =>
      one.send({
        ...{ method: 'POST', path: '/other', body: SHORT_BODY },
        headers: { 'content-type': 'application/json' },
      });
    await other();
    let ended = 0;
    const flood = Array.from({ length: 12 }, async () => {
      await post(LONG_BODY);
      ended++;
    });
    // Their bodies have arrived, and the first of them are being checked.
    while (ended === 0) expect((await other()).status).to.equal(200);
    for (let round = 0; round < ROUNDS; round++) expect((await other()).status).to.equal(200);
    expect(ended).to.be.lessThan(flood.length);
    await Promise.all(flood);
  });

  it('makes a validate policy ready without keeping other requests waiting', async () => {
    const isNotReady = () => set(slowToBeReady());
    const { body } = await answersMeanwhile(rawPost('"1-2"'), () => one.send(), isNotReady);
    expect(problemsOf(body)).to.deep.equal(['body: fits none of the schemas of anyOf']);
    expect((await post('"abc"')).status).to.equal(200);
  });

  it('checks parameters without keeping other requests waiting, and answers 504 at the deadline', async () => {
    const costsLittle = () =>
      eventually(async () => {
        const { text } = await one.send({ method: 'POST', path: '/shown?endless=%7B%7D&word=1' });
        expect(problemsOf(text)).to.deep.equal(['query.word: must match the pattern ^\\p{L}{1,90}$']);
      });
    await set(ENDLESS_PARAMETER);
    await costsLittle();
    const request = `POST ${LONG_TARGET} HTTP/1.1\r\nHost: ${one.host}\r\nContent-Length: 0\r\n\r\n`;
    const { body } = await answersMeanwhile(request, () => one.send());
    expect(problemsOf(body)).to.deep.equal(['query.endless: is too complex to be checked']);
    await set(ENDLESS_PARAMETER, { timeout: 10 });
    await costsLittle();
    const { status, text } = await one.send({ method: 'POST', path: LONG_TARGET });
    expect([status, JSON.parse(text).error]).to.deep.equal([
      504,
      'The request could not be checked within 10 ms.',
    ]);
  });

  it('answers 504 where a validate policy is not ready by the deadline', async () => {
    await set(slowToBeReady(), { timeout: 10, cors: { origins: ['*'] } });
    const { status, text, headers } = await post('"abc"', { origin: 'https://a.example' });
    expect([status, JSON.parse(text).error]).to.deep.equal([
      504,
      'The request could not be checked within 10 ms.',
    ]);
    expect(headers['access-control-allow-origin']).to.equal('*');
    await eventually(async () => expect((await post('"abc"')).status).to.equal(200));
  });
});
