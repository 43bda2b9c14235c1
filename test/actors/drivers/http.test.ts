/** Requests of handlers to HTTP servers: where they may go, what they carry, and what comes back. */
import { expect } from 'chai';
import { httpDriver } from '../../../src/actors/drivers/http/driver.js';
import { parseServiceConfig, type ServiceConfig } from '../../../src/model/service-configs.js';
import { type HttpBackend, startHttpBackend } from '../../support/backends/http.js';
import { makeCertificates } from '../../support/certificates.js';
import {
  ALL_BYTES,
  type Answer,
  connectTo,
  expectServiceError,
  expectToCloseAtOnce,
  type TestConnection,
  useDriver,
} from '../../support/driver-calls.js';
import { tempDir } from '../../support/temp.js';
import { driverSuite } from '../driver-suite.js';

const at = (host: string, port: number): ServiceConfig<'http'> =>
  parseServiceConfig('http', { base_url: `http://${host}:${port}/v1`, allow_private_addresses: true });

interface Result {
  readonly status: number;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
}

const resultOf = (answer: Answer) => answer.result as Result;

driverSuite(httpDriver, {
  start: () => startHttpBackend(),
  wrongPassword: 'what needs a password is up to the server, path by path',
  at: (_config, host, port) => at(host, port),
  call: {
    operation: 'request',
    args: { method: 'GET', path: '/status/204' },
    check: (answer) => expect(answer.result).to.have.property('status', 204),
  },
});

describe('http driver', () => {
  let backend: HttpBackend;
  let connection: TestConnection;
  useDriver(
    httpDriver,
    () => startHttpBackend(),
    (...used) => {
      [backend, connection] = used;
    },
  );

  const get = (path: string, more: object = {}) =>
    connection.send('request', { method: 'GET', path, ...more });
  /** With another config of the same server. */
  async function withConfig<T>(settings: object, use: (other: TestConnection) => Promise<T>): Promise<T> {
    const other = await connectTo(httpDriver, parseServiceConfig('http', { ...backend.config, ...settings }));
    try {
      return await use(other);
    } finally {
      await other.close();
    }
  }

  it('an http service sends method, path, query, headers and bytes, and returns status and bytes', async () => {
    const headers = [
      { name: 'X-One', value: '1' },
      { name: 'x-one', value: '2' },
    ];
    const args = { method: 'POST', path: '/echo?a=b%20c&a=d', headers };
    const { result, payload } = await connection.send('request', args, ALL_BYTES);
    expect(payload.equals(ALL_BYTES)).to.equal(true);
    expect(result).to.have.property('status', 200);
    const seen = backend.seen.at(-1);
    expect(seen).to.include({ method: 'POST', url: '/v1/echo?a=b%20c&a=d' });
    expect(seen?.headers).to.include({
      'x-one': '1, 2',
      'content-length': '256',
      'user-agent': 'edge-gateway',
    });
    expect(seen?.headers['host']).to.equal(`127.0.0.1:${backend.port}`);
  });

  it('an http service returns all headers of a name, and responses of any status, redirects too', async () => {
    const cookies = resultOf(await get('/cookies')).headers.filter(({ name }) => name === 'set-cookie');
    expect(cookies.map(({ value }) => value)).to.deep.equal(['a=1', 'b=2']);
    expect(resultOf(await get('/status/500')).status).to.equal(500);
    const before = backend.seen.length;
    const redirected = resultOf(await get('/redirect'));
    expect(redirected.status).to.equal(302);
    expect(redirected.headers).to.deep.include({ name: 'location', value: 'http://127.0.0.1:1/elsewhere' });
    expect(backend.seen.length, 'requests that were made').to.equal(before + 1);
  });

  it('an http service keeps its connections for the next requests', async () => {
    const before = backend.connections();
    for (let i = 0; i < 5; i++) await get('/status/200');
    expect(backend.connections()).to.equal(before);
  });

  for (const [what, path] of [
    ['the folder above', '/../admin'],
    ['an escaped folder above', '/%2e%2e/admin'],
    ['a folder above, with backslashes', '/..\\admin'],
    ['a folder above, with an escaped slash', '/..%2Fadmin'],
    ['a folder above, between escaped slashes', '/a%2f..%5c%2e.%2f..%2fadmin'],
    ['an escaped folder above, with an escaped slash', '/%2e%2e%2fadmin'],
    ['a path that only begins like the base', '/../v10/echo'],
    ['a whole URL above the base', 'BASE/admin'],
  ] as const) {
    it(`an http service with a base URL does not reach ${what}`, async () => {
      const url = path.replace('BASE', `http://127.0.0.1:${backend.port}`);
      await expectServiceError(get(url), 'invalid', /args\.path: must stay below/);
    });
  }

  for (const [what, path] of [
    ['another host', 'http://localhost:1/'],
    ['another port', 'http://127.0.0.1:1/v1/echo'],
    ['another scheme', 'https://127.0.0.1/v1/echo'],
    ['a file', 'file:///etc/passwd'],
    ['an address in another notation', 'http://2130706433/'],
  ] as const) {
    it(`an http service does not reach ${what} that its config does not allow`, async () => {
      await expectServiceError(
        get(path),
        'invalid',
        /args\.path: .* is not allowed; the config .* allows http:/,
      );
    });
  }

  it('an http service sends two slashes, an @, a colon or an escaped slash as parts of a path', async () => {
    for (const path of ['//other.example/x', '/@other.example', '/:1/x', '/a%2Fb', '/a..%2F...%2f.%2e.']) {
      await get(path);
      expect(backend.seen.at(-1)?.url).to.equal(`/v1${path}`);
    }
  });

  for (const [args, message] of [
    [{ path: '/echo' }, /args\.method: is required/],
    [{ method: 'TRACE', path: '/echo' }, /args\.method: must be one of GET/],
    [{ method: 'GET\r\nX: y', path: '/echo' }, /args\.method: must be one of GET/],
    [{ method: 'GET', path: 'echo' }, /args\.path: must begin with a slash/],
    [
      { method: 'GET', path: '/a', headers: [{ name: 'a b', value: '' }] },
      /args\.headers\[0\]\.name: must be the name of a header/,
    ],
    [
      { method: 'GET', path: '/a', headers: [{ name: 'a', value: 'b\r\nc: d' }] },
      /args\.headers\[0\]\.value: must be visible ASCII/,
    ],
    [
      { method: 'GET', path: '/a', headers: [{ name: 'Host', value: 'b' }] },
      /args\.headers: "Host" is set by/,
    ],
    [{ method: 'GET', path: '/a', headers: [{ name: 'TE', value: 'b' }] }, /args\.headers: "TE" is set by/],
    [
      { method: 'POST', path: '/a', headers: [{ name: 'Content-length', value: '1' }] },
      /args\.headers: "Content-length" is set by/,
    ],
  ] as const) {
    it(`an http service refuses the request ${JSON.stringify(args)}`, async () => {
      const before = backend.seen.length;
      await expectServiceError(connection.send('request', args), 'invalid', message);
      expect(backend.seen.length).to.equal(before);
    });
  }

  it('an http service escapes line ends in a path', async () => {
    await get('/a\r\nX-Injected: 1');
    expect(backend.seen.at(-1)?.headers).to.not.have.property('x-injected');
  });

  it('an http service sends requests of the methods that its config allows, and no others', async () => {
    await withConfig({ methods: ['GET'] }, async (other) => {
      expect(resultOf(await other.send('request', { method: 'GET', path: '/echo' })).status).to.equal(200);
      const posting = other.send('request', { method: 'POST', path: '/echo' });
      await expectServiceError(posting, 'invalid', /args\.method: POST is not allowed; .* allows GET$/);
    });
  });

  for (const [what, settings, header, value] of [
    ['a token', { token: 't' }, 'authorization', 'Bearer t'],
    ['a user', { username: 'u', password: 'p:q' }, 'authorization', 'Basic dTpwOnE='],
    ['a key', { api_key: 'k' }, 'x-api-key', 'k'],
    ['a key in another header', { api_key: 'k', api_key_header: 'X-Auth' }, 'x-auth', 'k'],
    ['other headers', { headers: { 'X-Team': 'red' } }, 'x-team', 'red'],
  ] as const) {
    it(`an http service sends ${what} to the server of its config only, and handlers cannot change it`, async () => {
      const other = await startHttpBackend();
      try {
        await withConfig({ ...settings, hosts: [`127.0.0.1:${other.port}`] }, async (with_) => {
          await with_.send('request', { method: 'GET', path: '/echo' });
          expect(backend.seen.at(-1)?.headers).to.have.property(header, value);
          const url = `http://127.0.0.1:${other.port}/anywhere`;
          await with_.send('request', { method: 'GET', path: url });
          expect(other.seen.at(-1)?.headers).to.not.have.property(header);
          const forged = {
            method: 'GET',
            path: '/echo',
            headers: [{ name: header.toUpperCase(), value: 'x' }],
          };
          await expectServiceError(
            with_.send('request', forged),
            'invalid',
            /args\.headers: .* set by the service/,
          );
        });
      } finally {
        await other.remove();
      }
    });
  }

  it('an http service refuses a token that no header can have, without showing it', async () => {
    const message = await expectServiceError(
      withConfig({ token: 'a\nb' }, async () => undefined),
      'unavailable',
      /token: has characters that no header can have/,
    );
    expect(message).to.not.include('a\nb');
  });

  for (const host of ['127.0.0.1', 'localhost', '[::1]', '169.254.169.254', '[::ffff:127.0.0.1]', '0x7f.1']) {
    it(`an http service does not connect to ${host} when private addresses are not allowed`, async () => {
      const config = parseServiceConfig('http', { base_url: `http://${host}:${backend.port}` });
      const why = /is not an address of the internet; allow_private_addresses .* allows it/;
      await expectServiceError(connectTo(httpDriver, config), 'unavailable', why);
    });
  }

  it('an http service fails a call whose response breaks off, and not others', async () => {
    const slow = get('/silent', {}).catch(() => undefined);
    await expectServiceError(get('/broken'), 'backend', /closed the connection/);
    expect(resultOf(await get('/status/200')).status).to.equal(200);
    expect(connection.lost).to.deep.equal([]);
    await backend.stop();
    await backend.start();
    await slow;
  });

  it('an http service fails a request that takes longer than its time limit', async () => {
    await withConfig({ timeout_seconds: 1 }, async (other) => {
      const waiting = other.send('request', { method: 'GET', path: '/silent' });
      await expectServiceError(
        waiting,
        'deadline',
        /did not answer in time; what the request did is not known/,
      );
    });
  });

  it('an http service refuses a response with too large a head or body', async () => {
    await expectServiceError(get('/head'), 'backend', /sends a head of more than 16384 bytes/);
    const limit = 64 * 1024 * 1024;
    expect((await get(`/large?bytes=${limit}`)).payload.length).to.equal(limit);
    await expectServiceError(get(`/large?bytes=${limit + 1}`), 'backend', /the body .* is longer than/);
  });

  it('an http service verifies the certificate of its server', async () => {
    const folder = await tempDir('http-driver');
    const { ca, cert, key } = await makeCertificates(folder.path, ['127.0.0.1']);
    const secure = await startHttpBackend({}, { key: key.pem, cert: cert.pem });
    try {
      const why = /the certificate of 127\.0\.0\.1:\d+ was not accepted/;
      await expectServiceError(connectTo(httpDriver, secure.config), 'unavailable', why);
      const trusting = await connectTo(httpDriver, { ...secure.config, ssl_root_cert: ca.pem });
      expect(await trusting.test()).to.match(/^the HTTP server at 127/);
      await trusting.close();
    } finally {
      await secure.remove();
      await folder.remove();
    }
  });

  it('closes an http service at once while its server does not answer', async () => {
    await expectToCloseAtOnce(httpDriver, backend.port, (port) => at('127.0.0.1', port), [
      'request',
      { method: 'GET', path: '/echo' },
      '',
    ]);
  });
});
