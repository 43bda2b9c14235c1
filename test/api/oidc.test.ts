/** Sign-in with OpenID Connect, with a real provider, and attacks on it. */
import { expect } from 'chai';
import { identityProviderOf } from '../../src/api/access/identity-provider.js';
import { loadConfig } from '../../src/config.js';
import { createSecretBox } from '../../src/secrets/secret-box.js';
import { ADMIN, addUser, PASSWORD, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { Browser } from '../support/browser.js';
import type { HttpResponse } from '../support/client.js';
import { expectData, expectFailure } from '../support/expect.js';
import {
  CLIENT_ID,
  CLIENT_SECRET,
  type ProviderOptions,
  startProvider,
  type TestProvider,
} from '../support/identity-provider.js';
import { freePort } from '../support/ports.js';

interface Me {
  readonly user: {
    readonly id: string;
    readonly email: string;
    readonly name: string;
    readonly role: string;
  };
  readonly domains: readonly string[] | null;
  readonly sign_in: readonly string[];
}

const ROLES = {
  operators: 'admin',
  'team-a': { role: 'editor', domains: ['A.example'] },
  'team-b': { role: 'editor', domains: ['b.example'] },
  everybody: 'viewer',
};
const ADA = { email: 'Ada@Example.test', email_verified: true, name: 'Ada', roles: ['everybody'] };

describe('OpenID Connect', () => {
  let api: TestApi;
  let provider: TestProvider;
  let admin: Person;

  async function start(
    config: Record<string, string> = {},
    options: Omit<ProviderOptions, 'redirectUri'> = {},
  ): Promise<void> {
    const port = await freePort();
    const PUBLIC_URL = `http://127.0.0.1:${port}`;
    provider = await startProvider({ redirectUri: `${PUBLIC_URL}/api/session/oidc/callback`, ...options });
    const environment = {
      ...{ PORT: String(port), PUBLIC_URL, OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: CLIENT_ID },
      ...{ OIDC_CLIENT_SECRET: CLIENT_SECRET, OIDC_ROLES: JSON.stringify(ROLES), ...config },
    };
    const settings = loadConfig(environment);
    const names = [
      ...Object.keys(environment),
      'OIDC_SCOPES',
      'OIDC_ROLE_CLAIM',
    ] as (keyof typeof settings)[];
    api = await startApi({ config: Object.fromEntries(names.map((name) => [name, settings[name]])) });
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    provider.people.set('ada', ADA);
    provider.person = 'ada';
  }
  async function stop(): Promise<void> {
    await api.close();
    await provider.close();
  }
  async function restart(...settings: Parameters<typeof start>): Promise<void> {
    await stop();
    await start(...settings);
  }
  beforeEach(() => start());
  afterEach(() => stop());

  /** Signs in with the provider. @returns the address to which it sends the browser back, not opened */
  async function goThere(browser: Browser, query = '', change = (url: string) => url): Promise<string> {
    const begun = await browser.open(`${api.url}/api/session/oidc${query}`, { 'sec-fetch-site': 'none' });
    expect(begun.status, JSON.stringify(begun.body)).to.equal(303);
    return browser.follow(change(begun.headers.location ?? ''), `${api.url}/`);
  }
  async function signIn(browser: Browser, query = ''): Promise<HttpResponse> {
    return browser.open(await goThere(browser, query));
  }
  const meIn = async (browser: Browser) =>
    expectData<Me>(await api.get('/api/session', { headers: browser.headersFor(`${api.url}/api/session`) }));
  const setPerson = (claims: object) => provider.people.set('ada', { ...ADA, ...claims });
  const usersOf = async () =>
    expectData<{ email: string; issuer: string | null; role: string }[]>(await api.get('/api/users', admin));

  it('offers OpenID Connect only where it is set up', async () => {
    expect(expectData<Me>(await api.get('/api/session')).sign_in).to.deep.equal(['password', 'oidc']);
    const without = await startApi();
    expect(expectData<Me>(await without.get('/api/session')).sign_in).to.deep.equal(['password']);
    for (const path of ['/api/session/oidc', '/api/session/oidc/callback?code=x&state=y'])
      expectFailure(await without.get(path), 'not_found', /OIDC_ISSUER/);
    await without.close();
  });

  it('a sign-in with OpenID Connect makes the user, and the session that a password makes', async () => {
    const browser = new Browser();
    const response = await signIn(browser);
    expect(response.status, JSON.stringify(response.body)).to.equal(200);
    const [session, ended] = response.headers['set-cookie'] ?? [];
    expect(session).to.match(/^egw_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(ended).to.match(/^egw_sign_in=;.*; Max-Age=0$/);
    expect(response.body).to.include('content="0; url=/"');
    const { user, domains } = await meIn(browser);
    expect(user).to.include({ email: 'ada@example.test', name: 'Ada', role: 'viewer' });
    expect(domains).to.equal(null);
    const headers = browser.headersFor(api.url);
    const sessions = expectData<{ id: string; current: boolean }[]>(
      await api.get('/api/sessions', { headers }),
    );
    expect(sessions.map(({ current }) => current)).to.deep.equal([true]);
    expect((await usersOf()).map(({ email, issuer }) => [email, issuer])).to.deep.equal([
      [ADMIN, null],
      ['ada@example.test', provider.issuer],
    ]);
    // Again: a new session in place of that of this browser, and the same user.
    await signIn(browser);
    expectFailure(await api.get('/api/domains', { headers }), 'unauthorized');
    expect((await meIn(browser)).user.id).to.equal(user.id);
    expectData(await api.delete('/api/session', { headers: browser.headersFor(api.url) }));
    expectFailure(await api.get('/api/domains', { headers: browser.headersFor(api.url) }), 'unauthorized');
  });

  it('a user of the provider has no password, and nobody changes what the provider says', async () => {
    const browser = new Browser();
    await signIn(browser);
    const { user } = await meIn(browser);
    expectFailure(await api.post('/api/session', { email: user.email, password: PASSWORD }), 'login_failed');
    for (const body of [{ password: 'a new password' }, { role: 'admin' }, { name: 'Eve' }])
      expectFailure(await api.put(`/api/users/${user.id}`, body, admin), 'provider_user');
    const own = { headers: browser.headersFor(api.url) };
    expectFailure(
      await api.put(`/api/users/${user.id}`, { password: 'a new password', current_password: '' }, own),
      'provider_user',
    );
    expect((await meIn(browser)).user).to.deep.equal(user);
    expectData(await api.delete(`/api/users/${user.id}`, admin));
    expectFailure(await api.get('/api/domains', own), 'unauthorized');
  });

  describe('roles', () => {
    it('gives a user the mightiest role of the claim, on the domains of all values that give it', async () => {
      for (const [roles, role, domains] of [
        ['operators', 'admin', null],
        [['everybody', 'team-a'], 'editor', ['a.example']],
        [['team-b', 'nothing', 'team-a', 7], 'editor', ['a.example', 'b.example']],
        [['everybody', 'operators', 'team-a'], 'admin', null],
      ] as const) {
        setPerson({ roles });
        const browser = new Browser();
        await signIn(browser);
        const me = await meIn(browser);
        expect([me.user.role, me.domains]).to.deep.equal([role, domains]);
      }
    });

    it('changes the role, name and email of a user with the next sign-in, in all sessions', async () => {
      setPerson({ roles: ['operators'] });
      const first = new Browser();
      await signIn(first);
      const headers = first.headersFor(api.url);
      expectData(await api.get('/api/users', { headers }));
      setPerson({ roles: ['everybody'], name: 'Ada L.', email: 'ada.l@example.test' });
      expectData(await api.get('/api/users', { headers }));
      await signIn(new Browser());
      expectFailure(await api.get('/api/users', { headers }), 'forbidden');
      expect((await meIn(first)).user).to.include({ name: 'Ada L.', email: 'ada.l@example.test' });
    });

    it('refuses a sign-in without a known role, and deletes its user with sessions and tokens', async () => {
      setPerson({ roles: ['team-c', 'admin', 'constructor', '__proto__'] });
      const stranger = new Browser();
      const refused = await signIn(stranger);
      expectFailure(refused, 'oidc_no_role', /ada@example\.test/);
      expect(refused.headers).not.to.have.property('set-cookie');
      expect(await usersOf()).to.have.length(1);

      setPerson({ roles: ['operators'] });
      const browser = new Browser();
      await signIn(browser);
      const headers = browser.headersFor(api.url);
      const body = { name: 't', permissions: ['domains:read'] };
      const token = expectData<{ token: string }>(await api.post('/api/tokens', body, { headers }), 201);
      setPerson({ roles: undefined });
      expectFailure(await signIn(new Browser()), 'oidc_no_role');
      expectFailure(await api.get('/api/domains', { headers }), 'unauthorized');
      const bearer = { headers: { authorization: `Bearer ${token.token}` } };
      expectFailure(await api.get('/api/domains', bearer), 'unauthorized');
      expect(await usersOf()).to.have.length(1);
    });

    it('finds roles in nested claims, and in claims with dots in their names', async () => {
      for (const [OIDC_ROLE_CLAIM, claims] of [
        ['realm_access.roles', { realm_access: { roles: ['team-a'] } }],
        ['https://edge.example/roles', { 'https://edge.example/roles': ['team-a'] }],
      ] as const) {
        await restart({ OIDC_ROLE_CLAIM });
        setPerson({ roles: ['operators'], ...claims });
        const browser = new Browser();
        await signIn(browser);
        expect((await meIn(browser)).user.role).to.equal('editor');
      }
    });

    it('signs in with claims of the ID token, and sends the client secret in the form', async () => {
      await restart({}, { tellsInToken: true, postsSecret: true });
      const browser = new Browser();
      await signIn(browser);
      expect((await meIn(browser)).user.email).to.equal('ada@example.test');
    });
  });

  describe('emails', () => {
    it('an email takes over neither a user with a password nor a user of another subject', async () => {
      setPerson({ email: ADMIN.toUpperCase(), roles: ['operators'] });
      const browser = new Browser();
      expectFailure(await signIn(browser), 'email_taken');
      expect((await meIn(browser)).user).to.equal(null);
      expectData(await api.get('/api/users', admin));
      setPerson({});
      await signIn(browser);
      provider.people.set('eve', { ...ADA, roles: ['operators'] });
      provider.person = 'eve';
      expectFailure(await signIn(new Browser()), 'email_taken');
      expect((await meIn(browser)).user.role).to.equal('viewer');
    });

    it('refuses a sign-in whose email is missing, not valid, or not verified', async () => {
      for (const [claims, reason] of [
        [{ email_verified: false }, /not verified/],
        [{ email_verified: 'false' }, /not verified/],
        [{ email: undefined }, /no email/],
        [{ email: 'a b' }, /no email/],
      ] as const) {
        setPerson(claims);
        expectFailure(await signIn(new Browser()), 'oidc_failed', reason);
      }
      setPerson({ email_verified: undefined });
      expect((await signIn(new Browser())).status).to.equal(200);
    });
  });

  it('keeps the last admin with a password, and refuses OpenID Connect when none exists', async () => {
    setPerson({ roles: ['operators'] });
    const browser = new Browser();
    await signIn(browser);
    const own = { headers: browser.headersFor(api.url) };
    expectFailure(await api.delete(`/api/users/${admin.id}`, own), 'last_admin');
    expectFailure(await api.put(`/api/users/${admin.id}`, { role: 'viewer' }, own), 'last_admin');
    await api.store.knex('users').delete();
    expectFailure(await signIn(new Browser()), 'last_admin');
    expect(await api.store.knex('users').select()).to.have.length(0);
  });

  describe('answers of the provider', () => {
    it('an answer of the provider counts only in the browser that was sent, once, and with its state', async () => {
      const victim = new Browser();
      const attacker = new Browser();
      const [victims, attackers] = [await goThere(victim), await goThere(attacker)];
      const exchanges = () => provider.exchanges;
      // Signs a victim in as the attacker: without a cookie, and with that of another sign-in.
      expectFailure(await new Browser().open(attackers), 'oidc_failed', /not started in this browser/);
      expectFailure(await victim.open(attackers), 'oidc_failed', /not started in this browser/);
      for (const state of ['', 'x', 'a'.repeat(43)]) {
        const url = new URL(victims);
        url.searchParams.set('state', state);
        expectFailure(await victim.open(url.href), 'oidc_failed');
      }
      // None of it has reached the provider.
      expect(exchanges()).to.equal(0);
      // The code of the attacker, with the state of the victim: its challenge is another one.
      const injected = new URL(victims);
      injected.searchParams.set('code', new URL(attackers).searchParams.get('code') ?? '');
      expectFailure(await victim.open(injected.href), 'oidc_failed', /not valid/);
      const replaying = victim.copy();
      expect((await victim.open(victims)).status).to.equal(200);
      expectFailure(await victim.open(victims), 'oidc_failed', /not started in this browser/);
      expectFailure(await replaying.open(victims), 'oidc_failed', /used before/);
      expect((await meIn(replaying)).user).to.equal(null);
    });

    it('refuses an answer of the provider with another nonce, an unknown key or another issuer', async () => {
      const browser = new Browser();
      const changed = await goThere(browser, '', (url) => url.replace(/nonce=[^&]+/, 'nonce=another'));
      expectFailure(await browser.open(changed), 'oidc_failed', /not valid/);
      provider.hidesKeys = true;
      expectFailure(await signIn(browser), 'oidc_failed', /not valid/);
      provider.hidesKeys = false;
      const mixed = new URL(await goThere(browser));
      mixed.searchParams.set('iss', 'https://evil.example');
      expectFailure(await browser.open(mixed.href), 'oidc_failed', /not valid/);
      expect((await meIn(browser)).user).to.equal(null);
    });

    it('refuses cookies of a sign-in that are forged, changed, too old, or two at a time', async () => {
      const browser = new Browser();
      const begun = await browser.open(`${api.url}/api/session/oidc`, { 'sec-fetch-site': 'none' });
      const cookie = begun.headers['set-cookie']?.[0] ?? '';
      expect(cookie).to.match(/; Path=\/api\/session\/oidc; HttpOnly; SameSite=Lax; Max-Age=600$/);
      const query = new URL(begun.headers.location ?? '').searchParams;
      const { state = '', nonce = '' } = Object.fromEntries(query);
      expect(query.get('code_challenge_method')).to.equal('S256');
      const readable = Buffer.from(cookie, 'base64url').toString('latin1') + cookie;
      for (const secret of [state, nonce]) expect(readable).not.to.include(secret);
      const forged = { state: 's', nonce: 'n', verifier: 'v'.repeat(43), returnTo: 'https://evil.example' };
      const address = await goThere(browser);
      for (const change of [
        (value: string) => `${value.slice(0, -6)}${value.at(-6) === 'A' ? 'B' : 'A'}${value.slice(-5)}`,
        () =>
          Buffer.from(JSON.stringify({ kind: 'sign-in', expiresAt: 9e15, ...forged })).toString('base64url'),
        () => 'x',
      ]) {
        const tampering = browser.copy();
        tampering.tamper(`${api.url}/`, 'egw_sign_in', change);
        expectFailure(await tampering.open(address), 'oidc_failed', /not started in this browser/);
      }
      // Who has the key makes one, which is how it is shown that the others fail for one reason each.
      const box = createSecretBox('a key for the tests');
      const changed = (members: object) => (value: string) => {
        const made = JSON.parse(box.open(Buffer.from(value, 'base64url').toString()));
        return Buffer.from(box.seal(JSON.stringify({ ...made, ...members }))).toString('base64url');
      };
      for (const members of [{ expiresAt: Date.now() - 1 }, { expiresAt: null }, { kind: 'another' }]) {
        const tampering = browser.copy();
        tampering.tamper(`${api.url}/`, 'egw_sign_in', changed(members));
        expectFailure(await tampering.open(address), 'oidc_failed', /took too long/);
      }
      browser.tamper(`${api.url}/`, 'egw_sign_in', changed({}));
      const two = `${browser.headersFor(address)['cookie']}; egw_sign_in=x`;
      expectFailure(await browser.open(address, { cookie: two }), 'oidc_failed');
      expect((await browser.open(address)).status).to.equal(200);
    });

    it('shows the error code of a provider that refuses a sign-in, and no markup in its place', async () => {
      provider.person = undefined;
      const browser = new Browser();
      expectFailure(await signIn(browser), 'oidc_failed', /access_denied/);
      const url = new URL(await goThere(browser));
      url.searchParams.set('error', '<script>');
      expect(JSON.stringify((await browser.open(url.href)).body)).not.to.include('script');
    });

    it('refuses an answer of the provider in an image, a frame or a request of another site', async () => {
      const browser = new Browser();
      const address = await goThere(browser);
      for (const headers of [
        { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
        { 'sec-fetch-dest': 'iframe' },
        { origin: 'https://evil.example' },
      ])
        expectFailure(await browser.open(address, headers), 'foreign_origin');
      expectFailure(await browser.open(`${api.url}/api/session/oidc`), 'foreign_origin');
      expect((await browser.open(address)).status).to.equal(200);
    });

    it('answers 429 after 20 failed sign-ins with OpenID Connect from an address', async () => {
      const browser = new Browser();
      const url = new URL(await goThere(browser));
      url.searchParams.set('code', 'guessed');
      const answers = [];
      for (let at = 0; at < 22; at++) answers.push((await browser.open(url.href)).status);
      expect(answers).to.deep.equal([...Array(20).fill(401), 429, 429]);
      expect(provider.exchanges).to.equal(20);
    });
  });

  it('a sign-in with OpenID Connect leads to paths of this server only', async () => {
    for (const [given, place] of [
      ['/queues/?a=1&b=2#c', '/queues/?a=1&#38;b=2#c'],
      ['/a"><script>', '/a%22%3E%3Cscript%3E'],
      ["/a?b='", '/a?b=%27'],
    ] as const) {
      const response = await signIn(new Browser(), `?return_to=${encodeURIComponent(given)}`);
      expect(response.body).to.include(`content="0; url=${place}"`).and.not.include('<script');
    }
    for (const given of [
      ...[
        'https://evil.example',
        '//evil.example',
        '/\\evil.example',
        '\\\\evil.example',
        '/.//evil.example',
      ],
      ...[
        '/\t/evil.example',
        '/\n/evil.example',
        '/a/..//evil.example',
        ' //evil.example',
        'javascript:alert(1)',
      ],
      ...['http:evil.example', '', 'queues', '/%2e//evil.example'],
    ]) {
      const response = await api.get(`/api/session/oidc?return_to=${encodeURIComponent(given)}`);
      expectFailure(response, 'invalid_input', /return_to/);
    }
  });

  it('refuses a sign-in while the provider is away or answers nonsense, and completes it afterwards', async () => {
    await provider.leave();
    const browser = new Browser();
    const begin = () => api.get('/api/session/oidc');
    expectFailure(await begin(), 'oidc_unavailable');
    // Everything else goes on.
    expectData(await api.get('/api/users', admin));
    await provider.comeBack();
    const address = await goThere(browser);
    await provider.leave();
    for (let at = 0; at < 25; at++) expectFailure(await browser.open(address), 'oidc_unavailable');
    await provider.comeBack();
    for (const status of [500, 404, 200, 302]) {
      provider.failWith = status;
      expectFailure(await browser.open(address), 'oidc_unavailable');
    }
    provider.failWith = undefined;
    expect((await browser.open(address)).status).to.equal(200);
  });

  it('accepts rotated keys of the provider at once, also in the middle of a sign-in', async () => {
    for (let at = 0; at < 3; at++) {
      const browser = new Browser();
      const address = await goThere(browser);
      await provider.rotate();
      expect((await browser.open(address)).status).to.equal(200);
    }
  });

  it('the audit has sign-ins with OpenID Connect, refused ones, and what became of users', async () => {
    const rows = async () => {
      const listed = await api.get('/api/audit', admin);
      return expectData<{ action: string; outcome: string; status: number; after: object | null }[]>(listed)
        .filter(({ action }) => action.startsWith('/api/session/oidc'))
        .map(({ outcome, status, after }) => ({ outcome, status, ...after }));
    };
    const browser = new Browser();
    setPerson({ roles: ['team-a'] });
    await signIn(browser);
    const { user } = await meIn(browser);
    setPerson({ roles: [] });
    await signIn(browser);
    await new Browser().open(`${api.url}/api/session/oidc/callback?code=secret-code&state=x`);
    expect(await rows()).to.deep.equal([
      { outcome: 'refused', status: 401 },
      { outcome: 'refused', status: 403, deleted_user_id: user.id },
      { outcome: 'changed', status: 200, user_id: user.id, role: 'editor', domains: ['a.example'] },
    ]);
    const stored = JSON.stringify(await api.store.knex('audit').select());
    expect(stored).not.to.include('secret-code').and.not.include(CLIENT_SECRET);
    expect(JSON.stringify(api.logged.lines)).not.to.include('secret-code').and.not.include(CLIENT_SECRET);
  });

  it('checks the settings of OpenID Connect', () => {
    const right = {
      ...{ OIDC_ISSUER: 'https://login.example', OIDC_CLIENT_ID: 'x', PUBLIC_URL: 'https://edge.example' },
      OIDC_ROLES: '{"a": "admin"}',
    };
    expect(identityProviderOf(loadConfig(right))).not.to.equal(undefined);
    for (const [wrong, problem] of [
      [{ OIDC_CLIENT_ID: '' }, /^OIDC_CLIENT_ID: is needed/],
      [{ PUBLIC_URL: '' }, /^PUBLIC_URL: is needed/],
      [{ OIDC_ROLES: '' }, /^OIDC_ROLES: is needed/],
      [{ OIDC_ROLES: 'admin' }, /^OIDC_ROLES: must be an object in JSON/],
      [{ OIDC_ROLES: '{"a": "root"}' }, /^OIDC_ROLES: "a": the role must be one of admin/],
      [{ OIDC_ROLES: '{"a": {"role": "editor", "domain": []}}' }, /^OIDC_ROLES: "a": has "domain"/],
      [{ OIDC_ROLES: '{"a": {"role": "editor", "domains": []}}' }, /leave it out for all/],
      [{ OIDC_ROLES: '{"a": {"role": "editor", "domains": ["https://x"]}}' }, /^OIDC_ROLES: "a": domains: /],
      [{ OIDC_ISSUER: 'http://login.example' }, /^OIDC_ISSUER: must begin with https/],
      [{ PUBLIC_URL: 'http://edge.example' }, /^PUBLIC_URL: must begin with https/],
      [{ PUBLIC_URL: 'https://edge.example/x' }, /^PUBLIC_URL: must have no path/],
    ] as const)
      expect(() => identityProviderOf(loadConfig({ ...right, ...wrong }))).to.throw(problem);
    const http = { OIDC_ISSUER: 'http://login.example', OIDC_ALLOW_HTTP: 'true' };
    expect(identityProviderOf(loadConfig({ ...right, ...http }))).not.to.equal(undefined);
    expect(identityProviderOf(loadConfig({}))).to.equal(undefined);
  });
});
