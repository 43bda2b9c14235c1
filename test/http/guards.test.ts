/**
 * The key, and where requests of browsers come from, on every path of the management API as it runs, Bull Board
 * included.
 */
import { expect } from 'chai';
import { ROUTES } from '../../src/api/app.js';
import { type Answer, call } from '../support/http.js';
import { freePort } from '../support/ports.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { rawExchange } from '../support/raw-http.js';

const KEY = 'clé-of-many-characters';
/** As bytes on the wire. */
const KEY_BYTES = Buffer.from(KEY).toString('latin1');

const routes = ROUTES.map(({ method, path }) => ({
  method,
  path: path.replace(/\{\w+(\.\.\.)?\}/g, '00000000-0000-4000-8000-000000000000'),
}));
/** What Bull Board can do to a queue, without a page. */
const BOARD = [
  { method: 'GET', path: '/queues' },
  { method: 'GET', path: '/queues/' },
  { method: 'GET', path: '/queues/api/queues' },
  { method: 'GET', path: '/queues/static/js/main.js' },
  { method: 'PUT', path: '/queues/api/queues/compile/pause' },
  { method: 'PUT', path: '/queues/api/queues/compile/empty' },
  { method: 'GET', path: '/queues/confirm/compile/empty' },
  { method: 'POST', path: '/queues/confirm/compile/empty' },
  { method: 'PUT', path: '/queues/api/queues/compile/clean/completed' },
  { method: 'POST', path: '/queues/api/queues/compile/add' },
];
const PUBLIC: ReadonlySet<string> = new Set([
  ...['/api/health', '/api/session', '/api/session/oidc', '/api/session/oidc/callback'],
]);
/** A stream of events: only its beginning can be waited for. */
const ENDLESS = '/api/events';
const EVERYTHING = [...routes, ...BOARD, { method: 'GET', path: '/metrics' }];

describe('guards of the management API', () => {
  let stack: Stack;

  before(async () => {
    stack = await startStack({ processes: ['web'], env: { API_KEY: KEY } });
  });
  after(() => stack.close());

  const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
    call(`${stack.apiUrl}${path}`, { method, headers });
  /** The status of an answer, which is not read. */
  const beginningOf = async (path: string, headers: Record<string, string>) => {
    const response = await fetch(`${stack.apiUrl}${path}`, { headers });
    await response.body?.cancel();
    return response.status;
  };
  const codeOf = ({ text }: Answer) => (JSON.parse(text) as { code?: string }).code;
  const isPaused = async () => {
    const { text } = await ask('GET', '/queues/api/queues', { authorization: `Bearer ${KEY_BYTES}` });
    const { queues } = JSON.parse(text) as { queues: { name: string; isPaused: boolean }[] };
    return queues.find(({ name }) => name === 'compile')?.isPaused;
  };

  const WRONG: Readonly<Record<string, Record<string, string>>> = {
    'no key': {},
    'a wrong key': { authorization: 'Bearer wrong' },
    'the beginning of the key': { authorization: `Bearer ${KEY_BYTES.slice(0, -1)}` },
    'the key and more': { authorization: `Bearer ${KEY_BYTES}x` },
    'a very long key': { authorization: `Bearer ${'x'.repeat(12_000)}` },
    'the key in another encoding': { authorization: `Bearer ${KEY}` },
    'the key by another scheme': { authorization: `Digest ${KEY_BYTES}` },
    'the key without a scheme': { authorization: KEY_BYTES },
    'the key as a user': { authorization: `Basic ${Buffer.from(`${KEY}:`).toString('base64')}` },
    'an empty key': { authorization: 'Bearer ' },
  };
  for (const [what, headers] of Object.entries(WRONG)) {
    it(`rejects requests to the management API with ${what}`, async () => {
      for (const { method, path } of EVERYTHING.filter((one) => !PUBLIC.has(one.path))) {
        const answer = await ask(method, path, headers);
        expect(answer.status, `${method} ${path}`).to.equal(401);
        expect(codeOf(answer)).to.equal('unauthorized');
        expect(answer.headers['x-request-id']).to.be.a('string');
      }
    });
  }

  it('accepts requests to the management API with the key', async () => {
    for (const { method, path } of EVERYTHING) {
      const headers = { authorization: `bearer ${KEY_BYTES}` };
      const status =
        path === ENDLESS ? await beginningOf(path, headers) : (await ask(method, path, headers)).status;
      expect(status, `${method} ${path}`).to.not.be.oneOf([401, 403]);
    }
    // What the list above has done.
    await ask('PUT', '/queues/api/queues/compile/resume', { authorization: `Bearer ${KEY_BYTES}` });
    expect(await isPaused()).to.equal(false);
  });

  it('lets nobody bypass the key by other spellings of a path', async () => {
    for (const [path, status] of [
      ['/api/health/../endpoints', 400],
      ['/api/health/%2e%2e/endpoints', 400],
      ['/api/health%2f..%2fendpoints', 400],
      ['/api/health\\..\\endpoints', 400],
      ['/api/health#/../endpoints', 400],
      ['/api/health%00/endpoints', 400],
      ['/api/health/', 401],
      ['/api/session/', 401],
      ['/api/session/oidc/', 401],
      ['/api/session/oidc/callback/', 401],
      ['/api/session/oidc/callback/endpoints', 401],
      ['/api/health;/endpoints', 401],
      ['/api/health/endpoints', 401],
      ['/api/health%2fendpoints', 401],
      ['//api/health', 401],
      ['//api/endpoints', 401],
      ['/API/HEALTH', 401],
      ['/api/%68ealth', 401],
      ['/api/%65ndpoints', 401],
      ['//queues', 401],
      ['//queues/api/queues', 401],
      ['/Queues', 401],
      ['/QUEUES/api/queues', 401],
      ['/%71ueues', 401],
      ['/%71ueues/api/queues', 401],
      ['/queues%2fapi%2fqueues', 401],
      ['/queues;/api/queues', 401],
      ['/Metrics', 401],
      ['/%6detrics', 401],
      ['http://localhost/api/endpoints', 401],
      ['http://localhost/queues', 401],
    ] as const) {
      const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
      const [answer] = await rawExchange(stack.apiUrl, request);
      expect(answer?.status, path).to.equal(status);
    }
  });

  it('asks for the key whatever the method of a request', async () => {
    for (const path of ['/api/endpoints', '/queues', '/metrics'])
      for (const method of ['HEAD', 'OPTIONS', 'TRACE', 'PATCH', 'PROPFIND', 'PURGE'])
        expect((await ask(method, path)).status, `${method} ${path}`).to.equal(401);
    for (const method of ['GET', 'HEAD']) expect((await ask(method, '/api/health')).status).to.equal(200);
  });

  it('names allowed methods to callers without the key only for public paths', async () => {
    for (const path of [...PUBLIC, '/', '/ui'])
      for (const method of ['PUT', 'PATCH', 'OPTIONS', 'PROPFIND']) {
        const answer = await ask(method, path);
        expect([answer.status, codeOf(answer)], `${method} ${path}`).to.deep.equal([
          405,
          'method_not_allowed',
        ]);
        expect(answer.headers['allow']).to.be.a('string');
      }
    for (const path of ['/api/domains', '/api/domains/x', '/api/nothing', '/api/health/', '/uix']) {
      const answer = await ask('PATCH', path);
      expect([answer.status, answer.headers['allow']], path).to.deep.equal([401, undefined]);
    }
    const known = { authorization: `Bearer ${KEY_BYTES}` };
    expect((await ask('PATCH', '/api/domains', known)).status).to.equal(405);
    expect((await ask('PATCH', '/api/nothing', known)).status).to.equal(404);
  });

  it('rejects requests of pages of other origins, with the key or without', async () => {
    const before = await isPaused();
    for (const authorization of [{}, { authorization: `Bearer ${KEY_BYTES}` }] as const)
      for (const headers of [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: `${stack.apiUrl}0` },
        { 'sec-fetch-site': 'cross-site' },
      ] as const)
        for (const { method, path } of EVERYTHING) {
          const answer = await ask(method, path, { ...authorization, ...headers });
          expect(answer.status, `${method} ${path} ${JSON.stringify(headers)}`).to.equal(403);
          expect(codeOf(answer)).to.equal('foreign_origin');
        }
    expect(await isPaused()).to.equal(before);
  });

  it('refuses preflights to the management API', async () => {
    for (const path of ['/api/endpoints', '/queues/api/queues/compile/pause']) {
      const preflight = { origin: 'https://evil.example', 'access-control-request-method': 'PUT' };
      const answer = await ask('OPTIONS', path, preflight);
      expect(answer.status).to.equal(403);
      expect(Object.keys(answer.headers).filter((name) => /^access-control/.test(name))).to.deep.equal([]);
    }
  });
});

describe('guards of a management API without a key', () => {
  let stack: Stack;

  before(async () => {
    stack = await startStack({ processes: ['web'] });
  });
  after(() => stack.close());

  it('refuses host names of others on every path of a management API without a key', async () => {
    const { port } = new URL(stack.apiUrl);
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      'localhost.',
    ]) {
      // The browser takes the page for one of this origin: its own name is in both.
      for (const headers of [{ host }, { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }])
        for (const { method, path } of EVERYTHING)
          expect(
            (await call(`${stack.apiUrl}${path}`, { method, headers })).status,
            `${method} ${path}`,
          ).to.equal(403);
    }
    const target = `GET http://evil.example/api/endpoints HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    expect((await rawExchange(stack.apiUrl, target))[0]?.status).to.equal(403);
  });

  it('logs a warning when other machines can reach a management API without a key', async () => {
    const warned = (lines: readonly { msg?: string }[]) =>
      lines.filter(({ msg }) => /^the management API is closed until it has a user/.test(msg ?? ''));
    expect(warned(stack.processes.get('web')?.logged.lines ?? [])).to.deep.equal([]);
    for (const [env, warnings] of [
      [{}, 1],
      [{ API_KEY: KEY }, 0],
    ] as const) {
      const open = stack.launch('web', { HOST: '0.0.0.0', PORT: String(await freePort()), ...env });
      await open.ready;
      await open.end();
      expect(warned(open.logged.lines)).to.have.length(warnings);
    }
    await must(stack.api.get('/api/stats'));
  });
});
