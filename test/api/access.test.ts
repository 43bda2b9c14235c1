/** Users, sessions, tokens and the audit, and attacks on them. */
import { expect } from 'chai';
import { ROUTES } from '../../src/api/app.js';
import { PERMISSIONS } from '../../src/model/permission.js';
import { isToken } from '../../src/secrets/credentials.js';
import { comparedHash, hashPassword, isPassword } from '../../src/secrets/passwords.js';
import { createUser } from '../../src/store/users.js';
import { ADMIN, addUser, cookieOf, makeToken, PASSWORD, type Person, signIn } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';

describe('access', () => {
  let api: TestApi;
  let admin: Person;

  beforeEach(async () => {
    api = await startApi();
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
  });
  afterEach(() => api.close());

  const login = (email: string, password: string) => api.post('/api/session', { email, password });

  describe('an API without users', () => {
    for (const header of ['forwarded', 'x-forwarded-for', 'x-forwarded-proto', 'x-real-ip', 'via'])
      it(`an API without users refuses a request that a proxy has sent on, with the header ${header}`, async () => {
        const open = await startApi();
        expectData(await open.get('/api/domains'));
        expectFailure(
          await open.get('/api/domains', { headers: { [header]: 'x' } }),
          'unauthorized',
          /create-admin/,
        );
        await open.close();
      });

    it('an API without users refuses requests when it listens on all addresses, except for its health', async () => {
      const reachable = await startApi({ config: { HOST: '0.0.0.0' } });
      const url = reachable.url.replace('0.0.0.0', '127.0.0.1');
      expect((await fetch(`${url}/api/domains`)).status).to.equal(401);
      expect((await fetch(`${url}/api/health`)).status).to.equal(200);
      await reachable.close();
    });

    it('an API without users refuses the next request when another process has made a user', async () => {
      const open = await startApi();
      expectData(await open.get('/api/domains'));
      const password_hash = await hashPassword(PASSWORD);
      const user = { email: ADMIN, name: 'A', password_hash, role: 'admin', domains: [] } as const;
      await createUser(open.store, user);
      expectFailure(await open.get('/api/domains'), 'unauthorized');
      await open.close();
    });

    it('an API without users is closed by its first user, who has to be an admin of all domains', async () => {
      const open = await startApi();
      const user = { email: 'a@b.test', name: 'A', password: PASSWORD };
      expectFailure(await open.post('/api/users', { ...user, role: 'viewer' }), 'last_admin');
      expectFailure(
        await open.post('/api/users', { ...user, role: 'admin', domains: ['a.test'] }),
        'last_admin',
      );
      expectFailure(
        await open.post('/api/tokens', { name: 't', permissions: ['domains:read'] }),
        'forbidden',
      );
      expectData(await open.post('/api/users', { ...user, role: 'admin' }), 201);
      expectFailure(await open.get('/api/domains'), 'unauthorized');
      await open.close();
    });
  });

  describe('users', () => {
    it('lists, changes and deletes users without showing their passwords', async () => {
      const editor = await addUser(api, admin, { email: 'Ed@Example.test', role: 'editor' });
      const listed = await api.get('/api/users', admin);
      expect(JSON.stringify(listed.body)).not.to.match(/argon|hash|password/);
      expect(expectData<{ email: string }[]>(listed).map(({ email }) => email)).to.deep.equal([
        ADMIN,
        'ed@example.test',
      ]);
      const again = { email: 'ED@example.test', name: 'x', password: PASSWORD, role: 'viewer' };
      expectFailure(await api.post('/api/users', again, admin), 'email_taken');
      expectFailure(
        await api.post('/api/users', { ...again, password: 'elevenchars' }, admin),
        'invalid_input',
      );
      expectData(await api.put(`/api/users/${editor.id}`, { role: 'viewer' }, admin));
      expectFailure(await api.post('/api/domains', { name: 'x', host: 'x.test' }, editor), 'forbidden');
      expectData(await api.delete(`/api/users/${editor.id}`, admin));
      expectFailure(await api.get('/api/domains', editor), 'unauthorized');
      expectFailure(await api.get(`/api/users/${editor.id}`, admin), 'not_found');
    });

    it('refuses to delete, demote or limit the last admin, also when two are deleted at a time', async () => {
      const own = `/api/users/${admin.id}`;
      expectFailure(await api.delete(own, admin), 'last_admin');
      expectFailure(await api.put(own, { role: 'editor' }, admin), 'last_admin');
      expectFailure(await api.put(own, { domains: ['a.test'] }, admin), 'last_admin');
      const second = await addUser(api, admin, { email: 'second@example.test', role: 'admin' });
      const both = await Promise.all([api.delete(own, admin), api.delete(`/api/users/${second.id}`, admin)]);
      expect(both.map(({ status }) => status).filter((status) => status === 200)).to.have.length(1);
    });

    it('lets a viewer change only their own name and password (mass assignment)', async () => {
      const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
      const own = `/api/users/${viewer.id}`;
      for (const body of [
        { role: 'admin' },
        { domains: [] },
        { email: 'x@y.test' },
        { name: 'N', role: 'admin' },
      ])
        expectFailure(await api.put(own, body, viewer), 'forbidden');
      const sneaky = { name: 'N', password_hash: 'x', id: NO_ID, permissions: ['users:write'] };
      expect(expectData(await api.put(own, sneaky, viewer))).to.include({
        id: viewer.id,
        role: 'viewer',
        name: 'N',
      });
      expectFailure(await api.put(`/api/users/${admin.id}`, { name: 'x' }, viewer), 'forbidden');
      expectFailure(await api.get(`/api/users/${admin.id}`, viewer), 'forbidden');
      expectFailure(await api.put(own, { password: 'another password' }, viewer), 'login_failed');
      const changed = { password: 'another password', current_password: PASSWORD };
      expectData(await api.put(own, changed, viewer));
      expectFailure(await api.get('/api/domains', viewer), 'unauthorized');
      expectFailure(await login('v@example.test', PASSWORD), 'login_failed');
      await signIn(api, 'v@example.test', 'another password');
    });
  });

  describe('sessions', () => {
    it('signs in with one HttpOnly, SameSite=Strict cookie, and believes no stranger who says https', async () => {
      const plain = await login(ADMIN, PASSWORD);
      expect(plain.headers['set-cookie']).to.have.length(1);
      expect(plain.headers['set-cookie']?.[0]).to.match(
        /^egw_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
      );
      for (const headers of [
        { 'x-forwarded-proto': 'https' },
        { forwarded: 'for=192.0.2.1;proto=https', host: 'edge.example' },
      ]) {
        const stranger = await api.post('/api/session', { email: ADMIN, password: PASSWORD }, { headers });
        expect(stranger.headers['set-cookie']?.[0] ?? '').not.to.include('Secure');
      }
    });

    it('says who is signed in, and names no user for a request without a session', async () => {
      const me = expectData<{ user: { email: string }; permissions: string[] }>(
        await api.get('/api/session', admin),
      );
      expect(me.user.email).to.equal(ADMIN);
      expect(me.permissions).to.have.members([...PERMISSIONS]);
      for (const headers of [{}, { cookie: 'egw_session=no' }])
        expect(expectData(await api.get('/api/session', { headers }))).to.include({ user: null, kind: null });
    });

    it('lists sessions, revokes them, and ends the current one when its user signs out', async () => {
      const other = { headers: await signIn(api, ADMIN) };
      const listed = expectData<{ id: string; current: boolean }[]>(await api.get('/api/sessions', admin));
      expect(listed.map(({ current }) => current)).to.have.members([true, false]);
      const id = listed.find(({ current }) => !current)?.id;
      expectData(await api.delete(`/api/sessions/${id}`, admin));
      expectFailure(await api.get('/api/domains', other), 'unauthorized');
      const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
      const mine = listed.find(({ current }) => current)?.id;
      expectFailure(await api.delete(`/api/sessions/${mine}`, viewer), 'not_found');
      // Those of others are shown to, and ended by, who may change them.
      const others = `/api/users/${admin.id}/sessions`;
      expectFailure(await api.get(others, viewer), 'forbidden');
      expectFailure(await api.delete(others, viewer), 'forbidden');
      const own = `/api/users/${viewer.id}/sessions`;
      expect(expectData<object[]>(await api.get(own, viewer))).to.have.length(1);
      expectData(await api.delete(own, admin));
      expectFailure(await api.get(own, viewer), 'unauthorized');
      expect(expectData<object[]>(await api.get(own, admin))).to.deep.equal([]);
      expectData(await api.delete('/api/session', admin));
      expectFailure(await api.get('/api/domains', admin), 'unauthorized');
    });

    it('ends sessions that have been idle for too long, or are too old', async () => {
      const other = { headers: await signIn(api, ADMIN) };
      const sessions = api.store.knex('sessions').where({ user_id: admin.id });
      const [first, second] = await sessions.clone().orderBy('created_at').pluck('id');
      const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000);
      await api.store
        .knex('sessions')
        .where({ id: first })
        .update({ seen_at: ago(13) });
      await api.store
        .knex('sessions')
        .where({ id: second })
        .update({ created_at: ago(169) });
      expectFailure(await api.get('/api/domains', admin), 'unauthorized');
      expectFailure(await api.get('/api/domains', other), 'unauthorized');
    });

    it('makes a new session with each login (session fixation), and accepts none of two cookies', async () => {
      const planted = { cookie: 'egw_session=planted-by-somebody-else' };
      const body = { email: ADMIN, password: PASSWORD };
      const response = await api.post('/api/session', body, { headers: planted });
      expect(cookieOf(response)).not.to.equal(planted.cookie);
      expectFailure(await api.get('/api/domains', { headers: planted }), 'unauthorized');
      const again = await api.post('/api/session', body, admin);
      expect(cookieOf(again)).not.to.equal(admin.headers['cookie']);
      expectFailure(await api.get('/api/domains', admin), 'unauthorized');
      const both = { cookie: `egw_session=planted; ${cookieOf(again)}` };
      expectFailure(await api.get('/api/domains', { headers: both }), 'unauthorized');
    });

    it('refuses requests of other sites with a session at every route that changes something (CSRF)', async () => {
      for (const { method, path } of ROUTES.filter((route) => route.method !== 'GET'))
        for (const headers of [
          { origin: 'https://evil.example' },
          { origin: 'null' },
          { 'sec-fetch-site': 'cross-site' },
        ]) {
          const place = path.replace(/\{[^}]+\}/g, NO_ID);
          const response = await api.send(method, place, { headers: { ...admin.headers, ...headers } });
          expect((response.body as { code: string }).code, `${method} ${path}`).to.equal('foreign_origin');
        }
    });
  });

  describe('passwords', () => {
    it('answers five wrong passwords with 401, and more with 429, whether the account exists or not', async () => {
      const answers = async (email: string) => {
        const all = [];
        for (let at = 0; at < 7; at++) all.push(await login(email, `wrong password ${at}`));
        return all.map(({ status, body, headers }) => {
          const { code, error } = body as { code: string; error: string };
          return [status, code, error.replace(/\d+ s$/, ''), 'retry-after' in headers];
        });
      };
      const known = await answers(ADMIN);
      expect(known.map(([status]) => status)).to.deep.equal([401, 401, 401, 401, 401, 429, 429]);
      expect(await answers('nobody@example.test')).to.deep.equal(known);
      // Not even the right one, as long as it lasts.
      expectFailure(await login(ADMIN, PASSWORD), 'too_many_logins');
      // Those who are signed in stay so.
      expectData(await api.get('/api/domains', admin));
    });

    it('answers 429 to a signed-in user after five wrong current passwords', async () => {
      const change = (current_password: string) =>
        api.put(`/api/users/${admin.id}`, { password: 'a new password', current_password }, admin);
      for (let at = 0; at < 5; at++) expectFailure(await change(`guess ${at}`), 'login_failed');
      expectFailure(await change(PASSWORD), 'too_many_logins');
    });

    it('demands the current password for a new one, also when the id of the user is in upper case', async () => {
      const own = `/api/users/${admin.id.toUpperCase()}`;
      expectFailure(await api.put(own, { password: 'a new password' }, admin), 'login_failed');
      const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
      expectData(await api.get(`/api/users/${viewer.id.toUpperCase()}`, viewer));
    });

    it('counts wrong passwords for many accounts by address, also when they come at once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, at) => login(`user${at}@example.test`, 'wrong password')),
      );
      expect(answers.filter(({ status }) => status === 401)).to.have.length(20);
      expect(answers.filter(({ status }) => status === 429)).to.have.length(20);
    });

    it('compares a password with the same work when the account does not exist', async () => {
      const parameters = (hash: string) => hash.split('$').slice(1, 4);
      const real = await hashPassword(PASSWORD);
      expect(parameters(real)).to.deep.equal(['argon2id', 'v=19', 'm=19456,t=2,p=1']);
      for (const stored of [undefined, null]) {
        expect(parameters(await comparedHash(stored))).to.deep.equal(parameters(real));
        expect(await isPassword(stored, PASSWORD)).to.equal(false);
      }
      expect(await comparedHash(real)).to.equal(real);
      expect(await isPassword(real, PASSWORD)).to.equal(true);
      expect(await isPassword(real, `${PASSWORD} `)).to.equal(false);
    });
  });

  describe('tokens', () => {
    it('shows a token once, with a checksum, and stores only its digest', async () => {
      const { token, id, headers } = await makeToken(api, admin, ['domains:read']);
      expect(token).to.match(/^egw_[0-9A-Za-z]{36}$/);
      expect(isToken(token)).to.equal(true);
      expect(isToken(`${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`)).to.equal(false);
      expectData(await api.get('/api/domains', { headers }));
      const listed = await api.get('/api/tokens', admin);
      expect(JSON.stringify(listed.body)).not.to.include(token);
      expect(expectData<{ last_used_at: string | null }[]>(listed)[0]?.last_used_at).to.be.a('string');
      expect(JSON.stringify(await api.store.knex('tokens').select())).not.to.include(token.slice(4));
      expectFailure(await api.get('/api/endpoints', { headers }), 'forbidden', /endpoints:read/);
      expectData(await api.delete(`/api/tokens/${id}`, admin));
      expectFailure(await api.get('/api/domains', { headers }), 'unauthorized');
    });

    it('lets a token do no more than its user may, also later, and make no other tokens', async () => {
      const editor = await addUser(api, admin, {
        email: 'e@example.test',
        role: 'editor',
        domains: ['a.test'],
      });
      const make = (body: object) => api.post('/api/tokens', { name: 't', ...body }, editor);
      expectFailure(await make({ permissions: ['users:write'] }), 'forbidden');
      expectFailure(await make({ permissions: ['domains:read'], domains: ['b.test'] }), 'forbidden');
      expectFailure(await make({ permissions: ['domains:fly'] }), 'invalid_input', /permissions/);
      expectFailure(
        await make({ permissions: ['domains:read'], expires_at: '2001-01-01T00:00:00Z' }),
        'invalid_input',
      );
      const { headers, id } = await makeToken(api, editor, ['domains:write', 'domains:read', 'tokens:write']);
      // Whose it is, it may say; what they may do themselves, it may not.
      const me = expectData<{ user: object }>(await api.get('/api/session', { headers }));
      expect(me.user).to.include({ id: editor.id, email: 'e@example.test', role: 'editor' });
      expectFailure(await api.put(`/api/users/${editor.id}`, { name: 'E' }, { headers }), 'forbidden');
      expectFailure(await api.post('/api/domains', { name: 'b', host: 'b.test' }, { headers }), 'not_found');
      expectData(await api.post('/api/domains', { name: 'a', host: 'a.test' }, { headers }), 201);
      const other = { name: 't', permissions: ['domains:read'] };
      expectFailure(await api.post('/api/tokens', other, { headers }), 'forbidden');
      expectData(await api.put(`/api/users/${editor.id}`, { role: 'viewer' }, admin));
      expectFailure(await api.post('/api/domains', { name: 'a', host: 'a.test' }, { headers }), 'forbidden');
      const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
      expectFailure(await api.delete(`/api/tokens/${id}`, viewer), 'not_found');
      expectData(await api.delete(`/api/users/${editor.id}`, admin));
      expectFailure(await api.get('/api/domains', { headers }), 'unauthorized');
    });

    it('refuses a token that has expired, and one without a user when no API_KEY is set', async () => {
      const { headers } = await makeToken(api, admin, ['domains:read']);
      await api.store.knex('tokens').update({ expires_at: new Date(Date.now() - 1_000) });
      expectFailure(await api.get('/api/domains', { headers }), 'unauthorized');
      await api.store.knex('tokens').update({ expires_at: null, user_id: null });
      expectFailure(await api.get('/api/domains', { headers }), 'unauthorized');
    });

    it('refuses a token that was made with an API_KEY after another key has replaced it', async () => {
      const withKey = (API_KEY: string) =>
        startApi({ config: { API_KEY }, deps: (deps) => ({ ...deps, store: api.store }) });
      const first = await withKey('the first key');
      const by = { headers: { authorization: 'Bearer the first key' } };
      const { headers } = await makeToken(first, by, ['domains:read']);
      expectData(await first.get('/api/domains', { headers }));
      await first.close();
      const second = await withKey('the second key');
      expectFailure(await second.get('/api/domains', { headers }), 'unauthorized');
      await second.close();
    });

    it('shows metrics to a token with metrics:read, and lets one with users:write make no admin', async () => {
      const metrics = await makeToken(api, admin, ['metrics:read']);
      expect((await api.get('/metrics', metrics)).status).to.equal(200);
      expectFailure(await api.get('/queues', metrics), 'forbidden');
      const users = await makeToken(api, admin, ['users:write', 'users:read']);
      const body = { email: 'x@y.test', name: 'x', password: PASSWORD, role: 'admin' };
      expectFailure(await api.post('/api/users', body, users), 'forbidden');
      expectFailure(
        await api.put(`/api/users/${admin.id}`, { password: 'a new password' }, users),
        'forbidden',
      );
    });
  });

  it('editors and viewers see no secrets, and send none elsewhere', async () => {
    const config = { host: 'db.example', port: 1, password: 'the secret of the service' };
    const service = { name: 's', service_type: 'redis', config };
    const { id } = expectData<{ id: string }>(await api.post('/api/services', service, admin), 201);
    expectData(await api.put('/api/secrets/TOP', { value: 'the secret of the installation' }, admin));
    const headers = { 'X-Auth-Token': 'the secret of a header' };
    const http = { name: 'h', service_type: 'http', config: { base_url: 'https://h.example', headers } };
    expectData(await api.post('/api/services', http, admin), 201);
    const refers = { name: 'r', service_type: 'redis', config: { ...config, password: { secret: 'TOP' } } };
    const referring = expectData<{ id: string }>(await api.post('/api/services', refers, admin), 201);
    const url = 'https://93.184.215.14/secret-path';
    expectData(await api.post('/api/alerts', { on: 'crash_loop', url }, admin), 201);
    const editor = await addUser(api, admin, { email: 'e@example.test', role: 'editor' });
    const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
    for (const person of [editor, viewer])
      for (const path of ['/api/services', `/api/services/${id}`])
        expect(JSON.stringify((await api.get(path, person)).body)).not.to.include('the secret of');
    expect(JSON.stringify((await api.get('/api/services', admin)).body)).to.include(
      'the secret of the service',
    );
    expect(JSON.stringify((await api.get('/api/alerts', viewer)).body)).not.to.include('secret-path');
    expectFailure(await api.get('/api/secrets', viewer), 'forbidden');
    expectFailure(
      await api.put(`/api/services/${id}`, { config: { host: 'evil.example' } }, editor),
      'invalid_config',
    );
    expectFailure(await api.post('/api/services', refers, editor), 'forbidden');
    const inHeader = { ...http.config, headers: { 'X-Auth-Token': { secret: 'TOP' } } };
    expectFailure(await api.post('/api/services', { ...http, config: inHeader }, editor), 'forbidden');
    expectFailure(
      await api.put(`/api/services/${referring.id}`, { config: { host: 'evil.example' } }, editor),
      'forbidden',
    );
    expectData(await api.put(`/api/services/${referring.id}`, { name: 'renamed' }, editor));
  });

  describe('the audit', () => {
    interface Entry {
      readonly id: number;
      readonly action: string;
      readonly outcome: string;
      readonly status: number;
      readonly actor: { readonly kind: string; readonly id?: string };
      readonly before: Record<string, unknown> | null;
      readonly after: Record<string, unknown> | null;
    }
    const read = async (query = '') => expectData<Entry[]>(await api.get(`/api/audit${query}`, admin));

    it('the audit has every change, with what it changed, and every refusal', async () => {
      const domain = await api.post('/api/domains', { name: 'One', host: 'a.test' }, admin);
      const { id } = expectData<{ id: string }>(domain, 201);
      const request = { headers: { ...admin.headers, 'x-request-id': 'the-request' } };
      await api.put(`/api/domains/${id}`, { name: 'Two' }, request);
      await api.delete(`/api/domains/${id}`, admin);
      const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
      await api.post('/api/domains', { name: 'x', host: 'x.test' }, viewer);
      await api.get('/api/domains');

      const entries = await read(`?object_id=${id}`);
      expect(entries.map(({ action, outcome }) => [action, outcome])).to.deep.equal([
        ['/api/domains/{id}', 'changed'],
        ['/api/domains/{id}', 'changed'],
        ['/api/domains', 'changed'],
      ]);
      const [deleted, changed, created] = entries;
      expect([changed?.before, changed?.after]).to.deep.equal([{ name: 'One' }, { name: 'Two' }]);
      expect(created?.after).to.include({ name: 'One', host: 'a.test' });
      expect(deleted?.after).to.equal(null);
      expect(await read('?request_id=the-request')).to.have.length(1);
      const refused = await read('?outcome=refused');
      expect(refused.map(({ status, actor }) => [status, actor.kind])).to.deep.equal([
        [401, 'anonymous'],
        [403, 'user'],
      ]);
      expect(await read(`?actor_id=${viewer.id}`)).to.have.length(1);
    });

    it('the audit has no secrets', async () => {
      const config = { host: 'db.example', port: 1, password: 'secret-one' };
      const service = { name: 's', service_type: 'redis', config };
      const { id } = expectData<{ id: string }>(await api.post('/api/services', service, admin), 201);
      await api.put(`/api/services/${id}`, { config: { password: 'secret-two' } }, admin);
      await api.put('/api/secrets/NAME', { value: 'secret-three' }, admin);
      await api.put(
        `/api/users/${admin.id}`,
        { password: 'secret-four!', current_password: PASSWORD },
        admin,
      );
      admin = { ...admin, headers: await signIn(api, ADMIN, 'secret-four!') };
      const { token } = await makeToken(api, admin, ['domains:read']);
      const rows = JSON.stringify(await api.store.knex('audit').select());
      for (const secret of [
        'secret-one',
        'secret-two',
        'secret-three',
        'secret-four',
        PASSWORD,
        token,
        'argon2',
      ])
        expect(rows).not.to.include(secret);
      const [changed] = (await read(`?object_id=${id}`)).slice(0, 1);
      expect(changed?.after).to.deep.equal({ config_encrypted: '***' });
    });

    it('returns the audit in pages, with a link to the next one', async () => {
      for (const host of ['a.test', 'b.test', 'c.test'])
        await api.post('/api/domains', { name: 'x', host }, admin);
      const page = await api.get('/api/audit?limit=2&object_kind=domain', admin);
      expect(expectData<Entry[]>(page)).to.have.length(2);
      const next = /<([^>]+)>/.exec(String(page.headers['link']))?.[1] ?? '';
      expect(expectData<Entry[]>(await api.get(next, admin))).to.have.length(1);
    });
  });
});
