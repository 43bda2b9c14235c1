/**
 * Keys, passwords and signatures of callers, from the API to the handler. Other cases are in
 * `rust/front/tests/front/policies`.
 */
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure, NO_ID } from '../../support/expect.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

interface Key {
  readonly id: string;
  readonly key: string;
  readonly label: string;
}

describe('the policy auth with keys, passwords and signatures', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack();
  });
  after(() => one?.close());
  const makeKey = async (label: string, more: object = {}) =>
    expectData<Key>(await one.stack.api.post(`${one.domain}/keys`, { label, ...more }), 201);
  const withKey = (key: string, headers: Record<string, string | string[]> = {}) =>
    one.send({ headers: { 'x-api-key': key, ...headers } });
  const secret = async (name: string, value: string) =>
    expectData(await one.stack.api.put(`${one.domain}/secrets/${name}`, { value }));

  it('admits API keys of the domain, and gives their label to the handler and the log', async () => {
    await one.set(one.domain, { auth: { api_key: {} } });
    const { key, id } = await makeKey('the team of Ada');
    expect(key).to.match(/^egk_[A-Za-z0-9_-]{43}$/);
    const shown = JSON.parse(
      (await withKey(key, { 'key-label': 'Mallory', subject: 'Mallory' })).text,
    ) as object;
    expect(shown).to.deep.include({ key_label: 'the team of Ada', subject: null });
    const listed = JSON.stringify(expectData(await one.stack.api.get(`${one.domain}/keys`)));
    expect(listed).to.include(id).and.to.include('the team of Ada').and.not.to.include(key);
    await eventually(async () => {
      const logs = JSON.stringify(
        expectData(await one.stack.api.get(`/api/logs?endpoint_id=${one.endpoint.split('/').pop()}`)),
      );
      expect(logs).to.include('"key_label":"the team of Ada"').and.not.to.include(key);
    });
    for (const wrong of ['', 'egk_', key.slice(0, -1), `${key} `, key.toLowerCase(), 'x'.repeat(5000)])
      expect((await withKey(wrong)).status, wrong).to.equal(wrong === `${key} ` ? 200 : 401);
    expect((await one.send()).status).to.equal(401);
    // Twice the header is none.
    expect((await withKey(key, { 'X-Api-Key': [key, key] })).status).to.equal(401);
  });

  it('refuses API keys that are revoked, expired, or of another domain', async () => {
    const { key, id } = await makeKey('short');
    expect((await withKey(key)).status).to.equal(200);
    expectData(await one.stack.api.delete(`${one.domain}/keys/${id}`));
    expect((await withKey(key)).status).to.equal(401);
    // For longer and longer, until it is admitted before it expires.
    const admitted = async (ms: number) => {
      const made = await makeKey('expiring', { expires_at: new Date(Date.now() + ms).toISOString() });
      return { ...made, status: (await withKey(made.key)).status };
    };
    let expiring = await admitted(2_500);
    for (let ms = 5_000; expiring.status !== 200 && ms < 30_000; ms *= 2) expiring = await admitted(ms);
    expect(expiring.status).to.equal(200);
    await eventually(async () => expect((await withKey(expiring.key)).status).to.equal(401));
    const other = expectData<{ id: string }>(
      await one.stack.api.post('/api/domains', { name: 'O', host: 'other-keys.example' }),
      201,
    );
    const path = `/api/domains/${other.id}/keys`;
    const foreign = expectData<Key>(await one.stack.api.post(path, { label: 'foreign' }), 201);
    expect((await withKey(foreign.key)).status).to.equal(401);
    expectFailure(await one.stack.api.delete(`${one.domain}/keys/${foreign.id}`), 'not_found');
    expectFailure(await one.stack.api.post(`/api/domains/${NO_ID}/keys`, { label: 'x' }), 'not_found');
    const past = { label: 'x', expires_at: '2001-01-01T00:00:00Z' };
    expectFailure(await one.stack.api.post(path, past), 'invalid_input', /^body\.expires_at: /);
  });

  it('admits users with the passwords that their secrets have, and refuses wrong ones', async () => {
    await one.set(one.domain, { auth: { basic: { users: { ada: 'ADA_PASSWORD' }, realm: 'tests' } } });
    const basic = (text: string) => ({
      headers: { authorization: `Basic ${Buffer.from(text).toString('base64')}` },
    });
    // Nobody gets in while the secret is not set.
    expect((await one.send(basic('ada:'))).status).to.equal(503);
    const inForce = expectData<{ problems: string[] }>(await one.stack.api.get(`${one.endpoint}/policies`));
    expect(inForce.problems.join()).to.match(/ADA_PASSWORD is not set/);
    await secret('ADA_PASSWORD', 'pass:wörd');
    expect(await one.shown(basic('ada:pass:wörd'))).to.include({ subject: 'ada' });
    const none = await one.send();
    expect([none.status, none.headers['www-authenticate']]).to.deep.equal([
      401,
      'Basic realm="tests", charset="UTF-8"',
    ]);
    for (const wrong of ['ada:', 'ada:pass', 'ada', ':pass:wörd', 'Ada:pass:wörd', 'adam:pass:wörd'])
      expect((await one.send(basic(wrong))).status, wrong).to.equal(401);
    for (const authorization of ['Basic', 'Basic %%%', 'Bearer x', 'basic'])
      expect((await one.send({ headers: { authorization } })).status, authorization).to.equal(401);
    await secret('ADA_PASSWORD', 'another');
    expect((await one.send(basic('ada:pass:wörd'))).status).to.equal(401);
    expect((await one.send(basic('ada:another'))).status).to.equal(200);
  });

  it('refuses plain variables, which others may read, as passwords and keys of signatures', async () => {
    const { api } = one.stack;
    const value = 'not hidden';
    expectData(await api.put(`${one.domain}/variables`, { PLAIN: value }));
    const signature = createHmac('sha256', value).update('').digest('hex');
    const ways: readonly (readonly [object, Record<string, string>])[] = [
      [
        { basic: { users: { ada: 'PLAIN' } } },
        { authorization: `Basic ${Buffer.from(`ada:${value}`).toString('base64')}` },
      ],
      [{ hmac: { style: 'github', secret: 'PLAIN' } }, { 'x-hub-signature-256': `sha256=${signature}` }],
    ];
    for (const [auth, headers] of ways) {
      expectData(await api.put(`${one.domain}/variables`, { PLAIN: value }));
      await one.set(one.domain, { auth });
      expect((await one.send({ headers })).status).to.equal(503);
      const { problems } = expectData<{ problems: string[] }>(await api.get(`${one.endpoint}/policies`));
      expect(problems.join()).to.match(/PLAIN is a plain variable/);
      // A secret of the same value is one.
      await secret('PLAIN', value);
      expect((await one.send({ headers })).status).to.equal(200);
      expectData(await api.delete(`${one.domain}/secrets/PLAIN`));
    }
  });

  it('verifies the signatures of bodies of GitHub and Stripe by a secret of the domain', async () => {
    const key = "It's a Secret to Everybody";
    await secret('HOOK', key);
    const sign = (text: string) => createHmac('sha256', key).update(text).digest('hex');
    const status = async (body: string, headers: Record<string, string>) =>
      (await one.send({ method: 'POST', body, headers })).status;
    await one.set(one.domain, { auth: { hmac: { style: 'github', secret: 'HOOK' } } });
    const github = { 'x-hub-signature-256': `sha256=${sign('Hello, World!')}` };
    expect(await status('Hello, World!', github)).to.equal(200);
    expect(await status('Hello, World?', github)).to.equal(401);
    await one.set(one.domain, { auth: { hmac: { style: 'stripe', secret: 'HOOK', tolerance_seconds: 60 } } });
    const stripe = (time: number) => ({ 'stripe-signature': `t=${time},v1=${sign(`${time}.{}`)}` });
    const now = Math.floor(Date.now() / 1000);
    expect(await status('{}', stripe(now))).to.equal(200);
    expect(await status('[]', stripe(now))).to.equal(401);
    expect(await status('{}', stripe(now - 120))).to.equal(401);
  });

  it('counts the requests of each API key of the domain for itself', async () => {
    const policies = {
      auth: { api_key: {} },
      rate_limit: { requests: 2, window_seconds: 3600, by: 'key' },
    };
    await one.set(one.domain, policies);
    const [first, second] = [await makeKey('first'), await makeKey('second')];
    const statuses = async ({ key }: Key) => {
      const answers = [];
      for (let sent = 0; sent < 3; sent++) answers.push((await withKey(key)).status);
      return answers;
    };
    expect(await statuses(first)).to.deep.equal([200, 200, 429]);
    expect(await statuses(second)).to.deep.equal([200, 200, 429]);
  });
});
