/**
 * Tokens of an issuer, with the library that issuers use, and attacks on them; with real processes. What else a policy
 * can ask of them is tested in `rust/front/tests/front/policies/jwt.rs`.
 */
import { createHmac, createPublicKey, type JsonWebKey } from 'node:crypto';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import {
  AUDIENCE,
  ISSUER,
  type IssuerKey,
  type KeyServer,
  newKey,
  serveKeys,
  signText,
  signToken,
} from '../../support/issuer.js';
import { outcomes, startLoad } from '../../support/load.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('the policy auth with tokens', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  let issuer: KeyServer;
  let keys: Record<string, IssuerKey>;
  before(async () => {
    one = await startPolicyStack({ ALLOW_PRIVATE_URLS: 'true' });
    const algorithms = ['RS256', 'RS512', 'PS256', 'ES256', 'ES384', 'EdDSA'];
    keys = Object.fromEntries(
      await Promise.all(algorithms.map(async (alg) => [alg, await newKey(alg, `key of ${alg}`)] as const)),
    );
    issuer = await serveKeys([]);
  });
  after(async () => {
    await one?.close();
    await issuer?.close();
  });
  const key = (alg: string) => keys[alg] as IssuerKey;
  const jwt = (more: object = {}) => ({ auth: { jwt: { issuer: ISSUER, audience: AUDIENCE, ...more } } });
  const inline = (more: object = {}) =>
    jwt({ jwks: { keys: Object.values(keys).map(({ jwk }) => jwk) }, ...more });
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  const status = async (token: string) => (await one.send(bearer(token))).status;

  it('accepts tokens of all kinds of keys, and takes subject and claims from them, not from headers', async () => {
    await one.set(one.domain, inline());
    for (const each of Object.values(keys)) {
      const token = await signToken(each, { roles: ['a', { b: 1 }], email: 'ada@example.com' });
      const shown = await one.shown({
        headers: {
          authorization: `Bearer ${token}`,
          subject: 'eve',
          'x-subject': 'eve',
          auth: '{"subject":"eve"}',
        },
      });
      expect(shown.subject, each.alg).to.equal('ada');
      expect(shown.claims).to.deep.include({ roles: ['a', { b: 1 }], email: 'ada@example.com', iss: ISSUER });
    }
    expect((await one.send()).headers['www-authenticate']).to.equal('Bearer');
  });

  it('refuses every token that is forged, malformed, expired, too early or for somebody else', async () => {
    await one.set(one.domain, inline({ clock_skew_seconds: 60 }));
    const now = Math.floor(Date.now() / 1000);
    const rs = key('RS256');
    const [head = '', claims = '', signature = ''] = (await signToken(rs)).split('.');
    const payload = { iss: ISSUER, aud: AUDIENCE, sub: 'ada', exp: now + 300 };
    const pem = createPublicKey({ key: rs.jwk as JsonWebKey, format: 'jwk' }).export({
      type: 'spki',
      format: 'pem',
    });
    const kid = { kid: rs.kid };
    const signed = (more: object, claims: unknown = payload, hash?: string) =>
      signText(rs, `${base64({ alg: 'RS256', ...kid, ...more })}.${base64(claims)}`, hash);
    // Whatever is changed of it is the reason for which it is refused.
    expect(await status(signed({}))).to.equal(200);
    const confused = (alg: string, secret: string | Buffer) => {
      const signed = `${base64({ alg, kid: rs.kid })}.${base64(payload)}`;
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
    };
    const stranger = await newKey('RS256', rs.kid);
    const strange = await newKey('RS256', 'unknown');
    const attacks: Record<string, string> = {
      'no signature': `${head}.${claims}.`,
      'two parts': signText(rs, head),
      'four parts': signText(rs, `${head}.${claims}.x`),
      'alg none': `${base64({ alg: 'none' })}.${base64(payload)}.`,
      'alg None with a signature': signed({ alg: 'None' }),
      'no alg': signed({ alg: undefined }),
      'HS256 with the public key as PEM': confused('HS256', pem),
      'HS256 with the public key as JSON': confused('HS256', JSON.stringify(rs.jwk)),
      'RS256 that is a MAC': confused('RS256', pem),
      'another algorithm than the key has': signed({ alg: 'RS512' }, payload, 'sha512'),
      'an extension that has to be known': signed({ crit: ['exp'] }),
      'claims that are not encoded': signed({ b64: false }),
      'other claims': `${head}.${base64({ ...payload, sub: 'eve' })}.${signature}`,
      'the same id, another key': await signToken(stranger),
      'an unknown id': await signToken(strange),
      'an id as a path': await signToken(stranger, {}, { kid: '../../../../dev/null' }),
      'an id with SQL': await signToken(stranger, {}, { kid: "x' UNION SELECT 'key' --" }),
      'an id that is no text': signed({ kid: { $ne: null } }),
      'a key of its own': await signToken(stranger, {}, { jwk: stranger.jwk, kid: 'own' }),
      'an address of keys of its own': await signToken(
        stranger,
        {},
        { jku: 'http://127.0.0.1/', kid: 'own' },
      ),
      expired: await signToken(rs, { exp: now - 61 }),
      'without an end': await signToken(rs, { exp: undefined }),
      'an end that is text': signed({}, { ...payload, exp: '9999999999' }),
      'too early': await signToken(rs, { nbf: now + 600 }),
      'of the future': await signToken(rs, { iat: now + 600 }),
      'of another issuer': await signToken(rs, { iss: `${ISSUER}.evil.example` }),
      'for another audience': await signToken(rs, { aud: ['invoices', 'x'] }),
      'without an audience': await signToken(rs, { aud: undefined }),
      oversized: await signToken(rs, { filler: 'x'.repeat(9_000) }),
      'claims that are no object': signed({}, [payload]),
      'with padding': signText(rs, `${head}=.${claims}`),
      'of standard base64': `${head}.${claims}.${signature.replace(/[-_]/, '+')}${/[-_]/.test(signature) ? '' : '+'}`,
    };
    const accepted = [];
    for (const [name, token] of Object.entries(attacks))
      if ((await status(token)) !== 401) accepted.push(name);
    expect(accepted).to.deep.equal([]);
    // What is right stays right.
    expect(await status(await signToken(rs, { exp: now - 3, aud: ['invoices', AUDIENCE] }))).to.equal(200);
    expect(await status(await signToken(rs, { nbf: now + 3 }))).to.equal(200);
  });

  it('fetches the keys of the issuer, keeps them while it is away, and says why it has none', async () => {
    issuer.keys = [key('ES256').jwk];
    await one.set(one.domain, jwt({ jwks_url: issuer.url }));
    expect(await status(await signToken(key('ES256')))).to.equal(200);
    issuer.failWith = 500;
    expect(await status(await signToken(key('EdDSA')))).to.equal(401);
    expect(await status(await signToken(key('ES256')))).to.equal(200);
    await eventually(async () => {
      const { problems } = expectData<{ problems: string[] }>(
        await one.stack.api.get(`${one.endpoint}/policies`),
      );
      expect(problems.join()).to.match(/it answered 500/);
    });
    issuer.failWith = 302;
    const other = issuer.url.replace('/jwks.json', '/moved');
    const { body } = await one.stack.api.put(one.endpoint, { policies: jwt({ jwks_url: other }) });
    expect(JSON.stringify(body)).to.match(/redirects are not followed/);
    await one.set(one.endpoint, null);
    issuer.failWith = undefined;
  });

  it('lets a request wait only for a key that its token names, and that the issuer may have', async () => {
    issuer.keys = [key('ES256').jwk];
    const rate_limit = { requests: 100, window_seconds: 3600, by: 'address' };
    await one.set(one.domain, { ...jwt({ jwks_url: issuer.url }), rate_limit });
    const forger = await newKey('ES256', 'missing');
    const { status: refused, headers } = await one.send(bearer(await signToken(forger)));
    expect([refused, headers['ratelimit']]).to.deep.equal([401, '"address-3600s";r=99;t=3600']);
    const answered: string[] = [];
    const send = async (name: string, token: string) => {
      expect(await status(token), name).to.equal(401);
      answered.push(name);
    };
    const waiting = send('waits', await signToken(forger, {}, { kid: 'perhaps new' }));
    await send('names no key', await signToken(forger, {}, { kid: undefined }));
    await send('was missing before', await signToken(forger));
    await send('names a key of another kind', await signToken(await newKey('RS256', key('ES256').kid)));
    await waiting;
    expect(answered.at(-1)).to.equal('waits');
  });

  it('refuses no valid token and accepts no forged one while an issuer rotates keys under load', async () => {
    let current = await newKey('ES256', 'rotated 0');
    const all = [current];
    issuer.keys = [current.jwk];
    await one.set(one.domain, jwt({ jwks_url: issuer.url }));
    let token = await signToken(current);
    const forger = await newKey('ES256', 'forged');
    const forged = await signToken(forger);
    const load = await startLoad({
      targets: [one.stack.gatewayUrl],
      clients: 6,
      request: (client) => {
        const isForged = client === 0;
        const authorization = `Bearer ${isForged ? forged : token}`;
        return {
          path: '/shown',
          headers: { host: one.host, authorization },
          ...(isForged ? { status: 401, text: /signature/ } : { text: /"subject":"ada"/ }),
        };
      },
    });
    for (let turn = 1; turn <= 6; turn++) {
      current = await newKey('ES256', `rotated ${turn}`);
      // The issuer signs with its new key at once, and keeps the one before.
      issuer.keys = [current.jwk, ...all.slice(-1).map(({ jwk }) => jwk)];
      all.push(current);
      token = await signToken(current);
      const before = load.served();
      await eventually(() => expect(load.served()).to.be.greaterThan(before + 200));
      expect(await status(forged)).to.equal(401);
    }
    expect(outcomes(await load.stop())).to.deep.equal({});
    // The first key was withdrawn long ago.
    expect(await status(await signToken(all[0] as IssuerKey))).to.equal(401);
    expect(issuer.asked).to.be.lessThan(200);
  });
});
