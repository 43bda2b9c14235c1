/** The management API behind proxies (`TRUSTED_PROXIES`): whose address counts, and when cookies are `Secure`. */
import { expect } from 'chai';
import { loadConfig } from '../../src/config.js';
import { ADMIN, addUser, cookieOf, PASSWORD, type Person, signIn } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';

const { TRUSTED_PROXIES } = loadConfig({ TRUSTED_PROXIES: '127.0.0.0/8, 10.0.0.0/8' });

describe('the API behind proxies', () => {
  let api: TestApi;
  let admin: Person;
  const start = async (config: Parameters<typeof startApi>[0] = {}) => {
    api = await startApi(config);
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
  };
  afterEach(() => api.close());

  const login = (email: string, password: string, headers: Readonly<Record<string, string>>) =>
    api.post('/api/session', { email, password }, { headers });
  const addressesIn = async () => {
    const rows = await api.get('/api/audit?outcome=refused', admin);
    return expectData<{ address: string; actor: { address?: string } }[]>(rows).map(({ address, actor }) => [
      address,
      actor.address,
    ]);
  };

  it('counts logins by the address that a trusted proxy tells, whatever stands before it', async () => {
    await start({ config: { TRUSTED_PROXIES } });
    const from = (address: string, at: number) =>
      login(`user${at}@example.test`, 'wrong password', {
        'x-forwarded-for': `203.0.113.${at}, ${address}, 10.0.0.7`,
      });
    for (let at = 0; at < 20; at++) expectFailure(await from('192.0.2.1', at), 'login_failed');
    expectFailure(await from('192.0.2.1', 20), 'too_many_logins');
    // All others are let in, the proxy itself included.
    expectFailure(await from('192.0.2.2', 21), 'login_failed');
    expectFailure(await login(ADMIN, 'wrong password', {}), 'login_failed');
    expect((await addressesIn()).slice(0, 4)).to.deep.equal([
      ['127.0.0.1', '127.0.0.1'],
      ['192.0.2.2', '192.0.2.2'],
      ['192.0.2.1', '192.0.2.1'],
      ['192.0.2.1', '192.0.2.1'],
    ]);
  });

  it('counts logins of a network of IPv6 as one address, and stores none over the limit', async () => {
    await start({ config: { TRUSTED_PROXIES } });
    const from = (at: number) =>
      login(`user${at}@example.test`, 'wrong password', { 'x-forwarded-for': `2001:db8::${at}, 10.0.0.7` });
    for (let at = 0; at < 20; at++) expectFailure(await from(at), 'login_failed');
    const rows = () => api.store.knex('login_failures').count().first();
    const before = await rows();
    for (let at = 20; at < 30; at++) expectFailure(await from(at), 'too_many_logins');
    expect(await rows()).to.deep.equal(before);
    const other = { 'x-forwarded-for': '2001:db8:0:1::1, 10.0.0.7' };
    expectFailure(await login('user@example.test', 'wrong password', other), 'login_failed');
  });

  it('lets a user in from a known address, however many others guess the password', async () => {
    await start({ config: { TRUSTED_PROXIES } });
    const from = (address: string) => ({ 'x-forwarded-for': `${address}, 10.0.0.7` });
    expectData(await login(ADMIN, PASSWORD, from('192.0.2.1')), 201);
    for (let at = 0; at < 50; at++)
      expectFailure(await login(ADMIN, 'wrong password', from(`203.0.113.${at}`)), 'login_failed');
    expectFailure(await login(ADMIN, PASSWORD, from('203.0.113.200')), 'too_many_logins');
    expectData(await login(ADMIN, PASSWORD, from('192.0.2.1')), 201);
    for (let at = 0; at < 5; at++)
      expectFailure(await login(ADMIN, 'wrong password', from('192.0.2.1')), 'login_failed');
    expectFailure(await login(ADMIN, PASSWORD, from('192.0.2.1')), 'too_many_logins');
  });

  it('believes no forwarding headers of strangers', async () => {
    await start({
      config: { TRUSTED_PROXIES: loadConfig({ TRUSTED_PROXIES: '10.0.0.0/8' }).TRUSTED_PROXIES },
    });
    for (let at = 0; at < 21; at++) {
      const headers = {
        'x-forwarded-for': `192.0.2.${at}`,
        forwarded: `for=192.0.2.${at}`,
        'x-real-ip': '::1',
      };
      const answer = await login(`user${at}@example.test`, 'wrong password', headers);
      expectFailure(answer, at < 20 ? 'login_failed' : 'too_many_logins');
    }
    expect(new Set((await addressesIn()).flat())).to.deep.equal(new Set(['127.0.0.1']));
  });

  it('lists sessions with the address of the client that a trusted proxy tells', async () => {
    await start({ config: { TRUSTED_PROXIES } });
    expectData(await login(ADMIN, PASSWORD, { forwarded: 'for="[2001:db8::1]:4711";proto=https' }), 201);
    const listed = expectData<{ address: string }[]>(await api.get('/api/sessions', admin));
    expect(listed.map(({ address }) => address)).to.deep.equal(['2001:db8::1', '127.0.0.1']);
  });

  it('an API without users refuses a request that a trusted proxy has sent on', async () => {
    await start({ config: { TRUSTED_PROXIES } });
    const open = await startApi({ config: { TRUSTED_PROXIES } });
    expectData(await open.get('/api/domains'));
    for (const headers of [{ 'x-forwarded-for': '127.0.0.1' }, { forwarded: 'for=127.0.0.1' }])
      expectFailure(await open.get('/api/domains', { headers }), 'unauthorized');
    await open.close();
  });

  describe('cookies of sessions', () => {
    const isSecure = async (headers: Readonly<Record<string, string>>) => {
      const response = await login(ADMIN, PASSWORD, headers);
      expectData(response, 201);
      const [cookie = ''] = response.headers['set-cookie'] ?? [];
      const ended = await api.delete('/api/session', { headers });
      expect(ended.headers['set-cookie']?.[0]?.includes('; Secure')).to.equal(cookie.endsWith('; Secure'));
      expect(cookie.startsWith('__Host-egw_session=')).to.equal(cookie.endsWith('; Secure'));
      return cookie.endsWith('; Secure');
    };

    it('takes by TLS only a cookie of a session that no other host can have planted', async () => {
      await start({ config: { TRUSTED_PROXIES } });
      const https = { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https' };
      const own = cookieOf(await login(ADMIN, PASSWORD, https));
      const planted = own.replace('__Host-', '');
      const domains = (cookie: string) => api.get('/api/domains', { headers: { ...https, cookie } });
      expectFailure(await domains(planted), 'unauthorized');
      expectData(await domains(`egw_session=planted; ${own}`));
      // A browser takes this name from other hosts.
      expectFailure(await domains(`\u00a0${own}`), 'unauthorized');
      expect((await api.get('/api/domains', { headers: { cookie: own } })).status).to.equal(401);
    });

    it('sets a Secure cookie of a session where a trusted proxy says https', async () => {
      await start({ config: { TRUSTED_PROXIES } });
      const xff = { 'x-forwarded-for': '192.0.2.1' };
      for (const [headers, expected] of [
        [{}, false],
        [{ ...xff, 'x-forwarded-proto': 'https' }, true],
        [{ ...xff, 'x-forwarded-proto': 'http' }, false],
        [{ 'x-forwarded-for': '192.0.2.1, 10.0.0.1', 'x-forwarded-proto': 'https, http' }, true],
        [{ forwarded: 'for=192.0.2.1;proto=https' }, true],
        // Sent by the client, and added to by the proxy.
        [{ 'x-forwarded-for': '6.6.6.6, 192.0.2.1', 'x-forwarded-proto': 'https, http' }, false],
      ] as const)
        expect(await isSecure(headers), JSON.stringify(headers)).to.equal(expected);
    });

    it('sets a Secure cookie of a session under the host of a PUBLIC_URL with https', async () => {
      await start({ config: { PUBLIC_URL: 'https://edge.example' } });
      for (const [headers, expected] of [
        [{}, false],
        [{ host: 'edge.example' }, true],
        [{ host: 'EDGE.example:443' }, true],
        [{ host: 'edge.example:8443' }, false],
      ] as const)
        expect(await isSecure({ ...headers }), JSON.stringify(headers)).to.equal(expected);
      expectFailure(await api.get('/api/session', { headers: { host: 'evil.example' } }), 'foreign_origin');
      await signIn(api, ADMIN);
    });
  });
});
