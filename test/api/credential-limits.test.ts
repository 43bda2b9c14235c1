/** Keys and tokens that are guessed: how many of one network may be wrong, and who goes on working meanwhile. */
import { expect } from 'chai';
import { loadConfig } from '../../src/config.js';
import { makeToken } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import type { HttpResponse } from '../support/client.js';
import { expectData, expectFailure } from '../support/expect.js';

const API_KEY = 'a key of 20 or more characters';
const { TRUSTED_PROXIES } = loadConfig({ TRUSTED_PROXIES: '127.0.0.0/8' });
const GUESSER = '203.0.113.7';

describe('wrong keys and tokens', () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startApi({ config: { API_KEY, TRUSTED_PROXIES } });
  });
  afterEach(() => api.close());

  /** A request with a credential, from an address. */
  const ask = (credential: string, from = GUESSER, path = '/api/domains') =>
    api.get(path, { headers: { authorization: `Bearer ${credential}`, 'x-forwarded-for': from } });
  const guess = async (times: number, from = GUESSER) => {
    const answers: HttpResponse[] = [];
    for (let at = 0; at < times; at++) answers.push(await ask(`guess ${at}`, from));
    return answers;
  };

  it('answers 429 to keys and tokens from a network after 20 wrong ones, and from no other network', async () => {
    const answers = await guess(22);
    expect(answers.map(({ status }) => status)).to.deep.equal([...Array(20).fill(401), 429, 429]);
    const last = answers.at(-1) as HttpResponse;
    expectFailure(
      last,
      'too_many_credentials',
      /^Too many keys and tokens from this network were wrong; try again in \d+ s$/,
    );
    expect(Number(last.headers['retry-after'])).to.be.within(1, 900);
    // Not even the right one: whoever guesses would know it by that.
    expectFailure(await ask(API_KEY), 'too_many_credentials');
    expectData(await ask(API_KEY, '203.0.113.8'));
    expect((await ask('guess', '203.0.113.8')).status).to.equal(401);
  });

  it('answers 429 after 20 wrong keys that come at once', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => ask(`guess ${at}`)));
    expect(answers.filter(({ status }) => status === 401)).to.have.length(20);
  });

  it('lets many requests through at once that have the same new key', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(API_KEY)));
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
    expect(await api.store.knex('login_failures').where('failures', '>', 0)).to.deep.equal([]);
  });

  it('counts a wrong key once, however often it is sent', async () => {
    for (let at = 0; at < 30; at++) expect((await ask('the old key')).status).to.equal(401);
    expectData(await ask(API_KEY));
  });

  it('lets a key and a token go on that were right in a network before others were guessed there', async () => {
    const admin = { headers: { authorization: `Bearer ${API_KEY}`, 'x-forwarded-for': '203.0.113.9' } };
    const { token } = await makeToken(api, admin, ['domains:read']);
    const unused = await makeToken(api, admin, ['domains:read']);
    for (const credential of [API_KEY, token]) expectData(await ask(credential));
    await guess(30);
    for (let at = 0; at < 3; at++)
      for (const credential of [API_KEY, token]) expectData(await ask(credential));
    expectFailure(await ask(unused.token), 'too_many_credentials');
    expectFailure(await ask('guess'), 'too_many_credentials');
  });

  it('lets them go on by every process of the API, also one that has started since', async () => {
    expectData(await ask(API_KEY));
    await guess(30);
    const other = await startApi({
      config: { API_KEY, TRUSTED_PROXIES },
      deps: (deps) => ({ ...deps, store: api.store }),
    });
    try {
      const headers = { authorization: `Bearer ${API_KEY}`, 'x-forwarded-for': GUESSER };
      expectData(await other.get('/api/domains', { headers }));
    } finally {
      await other.close();
    }
  });

  it('counts no request without a key or token, and none that is right', async () => {
    const from = { 'x-forwarded-for': GUESSER };
    for (let at = 0; at < 25; at++) {
      expect((await api.get('/api/domains', { headers: from })).status).to.equal(401);
      expectData(await ask(API_KEY));
    }
    expect((await ask('guess')).status).to.equal(401);
  });

  it('warns the operator of an API_KEY under 20 characters', async () => {
    const warnings = async (key: string) => {
      const one = await startApi({ config: { API_KEY: key } });
      try {
        const answer = await one.get('/api/nodes', { headers: { authorization: `Bearer ${key}` } });
        return expectData<{ warnings: string[] }>(answer).warnings;
      } finally {
        await one.close();
      }
    };
    const [warning, ...others] = await warnings('12345678');
    expect(warning).to.match(/^API_KEY has fewer than 20 characters/);
    expect(warning).to.not.include('12345678');
    expect(others).to.deep.equal([]);
    expect(await warnings('a key of 20 letters.')).to.deep.equal([]);
  });

  it('warns the operator of a host name that the API and endpoints share', async () => {
    const warnings = async (host: string) => {
      const headers = { authorization: `Bearer ${API_KEY}`, host };
      return expectData<{ warnings: string[] }>(await api.get('/api/nodes', { headers })).warnings;
    };
    const admin = { headers: { authorization: `Bearer ${API_KEY}` } };
    expect(await warnings('edge.example:3000')).to.deep.equal([]);
    expectData(await api.post('/api/domains', { name: 'edge', host: 'edge.example' }, admin), 201);
    const [warning] = await warnings('Edge.example:3000');
    expect(warning).to.match(/the same host name, edge\.example: .*Give the API a host name of its own/);
    expect(await warnings('api.example')).to.deep.equal([]);
    const alone = { name: 'alone', path: '/', method: 'GET', domain: 'alone.example' };
    expectData(await api.post('/api/endpoints', alone, admin), 201);
    expect(await warnings('alone.example')).to.have.length(1);
    const everywhere = { name: 'all', path: '/', method: 'GET', domain: '*' };
    expectData(await api.post('/api/endpoints', everywhere, admin), 201);
    expect(await warnings('api.example')).to.have.length(1);
    expect(await warnings('localhost:3000')).to.deep.equal([]);
  });
});
