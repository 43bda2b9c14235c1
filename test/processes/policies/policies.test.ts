/** Where policies are set, which of them are in force, and what is refused; over HTTP, with real processes. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure } from '../../support/expect.js';
import { call } from '../../support/http.js';
import { outcomes, startLoad } from '../../support/load.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

interface InForce {
  readonly policies: Record<string, unknown>;
  readonly sources: Record<string, { scope: string; owner_id: string }>;
  readonly problems: string[];
}

const NOBODY = { deny: ['0.0.0.0/0', '::/0'] };
const ALL = { allow: ['127.0.0.0/8'] };

describe('policies', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack();
  });
  after(() => one?.close());
  const status = async () => (await one.send()).status;
  const inForce = async (endpoint = one.endpoint) =>
    expectData<InForce>(await one.stack.api.get(`${endpoint}/policies`));
  const idOf = (path: string) => path.split('/').pop();

  it('applies each policy of the nearest owner that has it, where null switches it off', async () => {
    await one.set(one.domain, { ip: NOBODY, cors: { origins: ['*'] } });
    expect(await status()).to.equal(403);
    await one.set(one.collection, { ip: ALL });
    expect((await one.send()).headers).to.include({ 'access-control-allow-origin': '*' });
    expect(await status()).to.equal(200);
    await one.set(one.endpoint, { ip: NOBODY });
    expect(await status()).to.equal(403);
    await one.set(one.endpoint, { ip: null });
    expect(await status()).to.equal(200);
    expect(await inForce()).to.deep.equal({
      policies: { cors: { origins: ['*'] } },
      sources: {
        cors: { scope: 'domain', owner_id: idOf(one.domain) },
        ip: { scope: 'endpoint', owner_id: idOf(one.endpoint) },
      },
      problems: [],
    });
    await one.set(one.endpoint, null);
    expect((await inForce()).sources['ip']).to.deep.equal({
      scope: 'collection',
      owner_id: idOf(one.collection),
    });
    await one.set(one.collection, null);
    expect(await status()).to.equal(403);
    await one.set(one.domain, null);
    expect(await status()).to.equal(200);
    expect(await inForce()).to.deep.equal({ policies: {}, sources: {}, problems: [] });
  });

  it('enforces changed policies as soon as the API has answered, without a failed request', async () => {
    const load = await startLoad({
      targets: [one.stack.gatewayUrl],
      clients: 4,
      request: () => ({ path: '/shown', headers: { host: one.host }, text: /"method":"GET"/ }),
    });
    for (let turn = 0; turn < 20; turn++) {
      await one.set(one.domain, { headers: { response: { set: { 'X-Turn': String(turn) } } } });
      expect((await one.send()).headers['x-turn']).to.equal(String(turn));
    }
    await one.set(one.domain, null);
    expect(outcomes(await load.stop())).to.deep.equal({});
  });

  it('applies policies of a domain neither to endpoints on all hosts nor on hosts without a domain', async () => {
    const code =
      'use rust_edge_gateway_sdk::prelude::*;\nfn handle(_: Request) -> Response { Response::text(200, "x") }\nhandler_loop!(handle);';
    const collection_id = idOf(one.collection);
    const anywhere = await one.stack.deploy({ path: '/anywhere', code, collection_id });
    await one.set(one.collection, { ip: NOBODY });
    await one.stack.deploy({ path: '/other', code, domain: 'other.example' });
    await one.set(one.domain, { ip: NOBODY });
    const get = async (path: string, host: string) =>
      (await call(`${one.stack.gatewayUrl}${path}`, { headers: { host } })).status;
    expect(await get('/anywhere', one.host)).to.equal(200);
    expect(await get('/other', 'other.example')).to.equal(200);
    expect(await get('/shown', one.host)).to.equal(403);
    expect(await inForce(`/api/endpoints/${anywhere}`)).to.deep.equal({
      policies: {},
      sources: {},
      problems: [],
    });
    await one.set(`/api/endpoints/${anywhere}`, { ip: NOBODY });
    expect(await get('/anywhere', one.host)).to.equal(403);
    await one.set(one.domain, null);
    await one.set(one.collection, null);
  });

  it('enforces policies after a restart of the gateway', async () => {
    await one.set(one.domain, { ip: NOBODY });
    const gateway = one.stack.processes.get('gateway');
    await gateway?.end();
    await one.stack.start('gateway');
    expect(await status()).to.equal(403);
    await one.set(one.domain, null);
    expect(await status()).to.equal(200);
  });

  it('wakes no handler for a request that a policy refuses', async () => {
    await one.set(one.endpoint, { ip: NOBODY });
    await one.stack.api.put(one.endpoint, { limits: { idle_ms: 1 } });
    const asleep = async () =>
      expectData<{ pid: number | null }>(await one.stack.api.get(one.endpoint)).pid === null;
    await eventually(async () => expect(await asleep()).to.equal(true));
    for (let count = 0; count < 20; count++) expect(await status()).to.equal(403);
    expect(await asleep()).to.equal(true);
    await one.stack.api.put(one.endpoint, { limits: null });
    await one.set(one.endpoint, null);
    expect(await status()).to.equal(200);
  });

  const REFUSED: readonly (readonly [object, RegExp])[] = [
    [{ cros: {} }, /^body\.policies\.cros: is not accepted; possible are .*cors/],
    [{ cors: { origins: ['*'], credential: true } }, /^body\.policies\.cors\.credential: is not accepted/],
    [{ cors: { origins: [] } }, /^body\.policies\.cors\.origins: /],
    [
      { cors: { origins: ['https://a.example/path'] } },
      /^body\.policies\.cors\.origins\.0: .*without a path/,
    ],
    [{ cors: { origins: ['https://a.example/'] } }, /^body\.policies\.cors\.origins\.0: /],
    [{ cors: { origins: ['https://a.*.example'] } }, /^body\.policies\.cors\.origins\.0: /],
    [{ cors: { origins: ['null'] } }, /^body\.policies\.cors\.origins\.0: /],
    [
      { cors: { origins: ['https://A.example:443'] } },
      /origins\.0: .*as browsers send it: https:\/\/a\.example/,
    ],
    [{ cors: { origins: ['*'], credentials: true } }, /^body\.policies\.cors\.credentials: /],
    [{ ip: { allow: ['10.0.0.0/33'] } }, /^body\.policies\.ip\.allow\.0: must be an address or a network/],
    [{ ip: { deny: ['::1', 'localhost'] } }, /^body\.policies\.ip\.deny\.1: /],
    [
      { rate_limit: { requests: 0, window_seconds: 1, by: 'address' } },
      /^body\.policies\.rate_limit\.requests: /,
    ],
    [{ rate_limit: { requests: 1, window_seconds: 1, by: 'cookie' } }, /^body\.policies\.rate_limit\.by: /],
    [
      { rate_limit: [{ requests: 1, by: 'key' }] },
      /^body\.policies\.rate_limit\.0\.window_seconds: is required/,
    ],
    [{ auth: {} }, /^body\.policies\.auth: must have at least 1 of its members api_key, basic, hmac, jwt$/],
    [
      { auth: { jwt: { issuer: 'i', audience: 'a' } } },
      /^body\.policies\.auth\.jwt: needs either jwks or jwks_url/,
    ],
    [
      { auth: { jwt: { issuer: 'i', audience: 'a', jwks: { keys: [{ kty: 'oct', k: 'AA' }] } } } },
      /jwks\.keys\.0: /,
    ],
    [
      { auth: { jwt: { issuer: 'i', audience: 'a', jwks_url: 'http://localhost:1/x' } } },
      /jwks_url: .* is not an address/,
    ],
    [
      { auth: { jwt: { issuer: 'i', audience: 'a', jwks_url: 'http://127.0.0.1/x' } } },
      /jwks_url: 127\.0\.0\.1 is not/,
    ],
    [
      { auth: { jwt: { issuer: 'i', audience: 'a', jwks_url: 'http://[::ffff:10.0.0.1]/' } } },
      /jwks_url: .* is not/,
    ],
    [{ auth: { jwt: { issuer: 'i', audience: 'a', algorithms: ['none'] } } }, /auth\.jwt\.algorithms\.0: /],
    [{ auth: { jwt: { issuer: 'i', audience: 'a', algorithms: ['HS256'] } } }, /auth\.jwt\.algorithms\.0: /],
    [{ auth: { hmac: { style: 'github', secret: 'not a name' } } }, /^body\.policies\.auth\.hmac\.secret: /],
    [
      { headers: { response: { set: { 'Content-Length': '1' } } } },
      /^body\.policies\.headers\.response\.set\.Content-Length: /,
    ],
    [
      { headers: { request: { add: { 'X-A': 'a\r\nX-B: b' } } } },
      /^body\.policies\.headers\.request\.add\.X-A: /,
    ],
    [{ redirect: { to: 'javascript:alert(1)' } }, /^body\.policies\.redirect\.to: /],
    [
      { redirect: { to: 'https://a.example/\r\nSet-Cookie: egw_session=planted' } },
      /^body\.policies\.redirect\.to: must have visible ASCII characters only/,
    ],
    [{ redirect: { to: 'https://a.example/a b' } }, /^body\.policies\.redirect\.to: .*%20/],
    [{ body_limit: -1 }, /^body\.policies\.body_limit: /],
    [{ timeout: 0 }, /^body\.policies\.timeout: /],
    [{ compress: { algorithms: ['deflate'] } }, /^body\.policies\.compress\.algorithms\.0: /],
    [{ maintenance: { message: 'a\u0000b' } }, /^body\.policies\.maintenance/],
  ];
  for (const [policies, message] of REFUSED)
    it(`refuses invalid policies, naming the place: ${JSON.stringify(policies).slice(0, 80)}`, async () => {
      for (const owner of [one.domain, one.collection, one.endpoint])
        expectFailure(await one.stack.api.put(owner, { policies }), 'invalid_input', message);
    });
});
