import { existsSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { metricsFolders, runDirectory } from '../../src/bootstrap/run-directory.js';
import { ERROR_CATALOGUE } from '../../src/errors.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID, UUID } from '../support/expect.js';
import { exchangeBytes } from '../support/http.js';
import { freePort } from '../support/ports.js';

const LIMIT = 10_000;

describe('HTTP', () => {
  let api: TestApi;

  before(async () => {
    api = await startApi({ config: { API_BODY_LIMIT_BYTES: LIMIT } });
  });
  after(() => api.close());

  it('responses are not shown in frames, and browsers do not guess their types', async () => {
    const alone = ['/', '/ui', '/api/', '/api/domains', '/metrics', '/no-such-path', '/queuesother'];
    for (const path of [...alone, '/queues/confirm/compile/empty', '/queues/confirm']) {
      const { headers } = await api.get(path);
      expect(headers['x-frame-options'], path).to.equal('DENY');
      if (path.startsWith('/api/')) expect(headers['cache-control'], path).to.equal('no-store');
      expect(headers['content-security-policy'], path).to.include("frame-ancestors 'none'");
      expect(headers['x-content-type-options'], path).to.equal('nosniff');
    }
  });

  it('the queue dashboard is shown in frames of the same origin only', async () => {
    for (const path of ['/queues', '/queues/queue/compile', '/queues/api/queues']) {
      const { headers } = await api.get(path);
      expect(headers['x-frame-options'], path).to.equal('SAMEORIGIN');
      expect(headers['content-security-policy'], path).to.include("frame-ancestors 'self'");
      expect(headers['x-content-type-options'], path).to.equal('nosniff');
    }
  });

  it('answers 404 to paths that the queue dashboard does not have', async () => {
    for (const path of ['/queues/nope', '/queues/api/nope', '/queues/api/queues/nope'])
      expectFailure(await api.get(path), 'not_found', /There is nothing at/);
  });

  it('refuses numbers in a query that are not whole, or out of their bounds', async () => {
    const numbers = [
      'Infinity',
      '-Infinity',
      '1e999',
      '9'.repeat(400),
      '1e1',
      '0x10',
      '1.0',
      ' 1',
      'NaN',
      '',
    ];
    for (const number of numbers) {
      const query = encodeURIComponent(number);
      for (const path of [
        'logs?limit',
        'domains?limit',
        'logs?version',
        `series?endpoint_id=${NO_ID}&version`,
      ])
        expectFailure(
          await api.get(`/api/${path}=${query}`),
          'invalid_input',
          /^query\.\w+: must be a whole number, not "/,
        );
    }
    expectFailure(await api.get('/api/domains?limit=1001'), 'invalid_input', /must be at most 1000/);
    const long = await api.post('/api/services', {
      name: 'A',
      service_type: 'x'.repeat(5_000),
      config: {},
    });
    expectFailure(long, 'invalid_input', /^body\.service_type: must be one of .{1,300}…$/);
  });

  it('a body that is not used is named in a warning', async () => {
    const { id } = expectData<{ id: string }>(
      await api.post('/api/domains', { name: 'U', host: 'unused.example' }),
      201,
    );
    const { body } = await api.send('DELETE', `/api/domains/${id}`, { body: { force: true } });
    expect(body).to.deep.include({
      ok: true,
      warnings: ['body: is not used by this request and was ignored'],
    });
  });

  it('stores ids in lower case when requests have them in upper case', async () => {
    const made = await api.post('/api/domains', { name: 'I', host: 'ids.example' });
    const { id: domain_id } = expectData<{ id: string }>(made, 201);
    const collection = { name: 'C', domain_id: domain_id.toUpperCase() };
    expect(expectData(await api.post('/api/collections', collection), 201)).to.include({ domain_id });
    const endpoint = { name: 'e', path: '/e', method: 'GET', domain: 'ids.example' };
    const { id } = expectData<{ id: string }>(await api.post('/api/endpoints', endpoint), 201);
    const scope = { endpoint_id: id.toUpperCase() };
    const alert = { on: 'crash_loop', url: 'https://93.184.215.14/hook', scope };
    const shown = expectData<{ scope: object }>(await api.post('/api/alerts', alert), 201);
    expect(shown.scope).to.deep.equal({ endpoint_id: id });
    expectData(await api.delete(`/api/domains/${domain_id}`));
  });

  describe('bodies that are refused', () => {
    const fine = { name: 'A', host: 'fine.example' };
    const post = (body: unknown, headers: Record<string, string> = {}) =>
      api.post('/api/domains', body, { headers });

    afterEach(async () => {
      expect(expectData(await api.get('/api/domains'))).to.deep.equal([]);
    });

    it('refuses a body that is not JSON', async () => {
      for (const body of [
        '{',
        '{"name": "A",}',
        'name=A',
        '{"name": "A"} x',
        "{'name': 'A'}",
        '\u0000',
        'NaN',
      ]) {
        expectFailure(await post(body), 'invalid_json', /not valid JSON/);
      }
    });

    it('refuses a body that is JSON but not an object', async () => {
      for (const body of ['[]', '[{}]', '7', '"text"', 'null', 'true']) {
        expectFailure(await post(body), 'invalid_input', /^body: must be a JSON object/);
      }
    });

    it('refuses a request whose body is missing', async () => {
      expectFailure(await api.post('/api/domains'), 'invalid_input', /^body: is required/);
      expectFailure(await post('', { 'content-length': '0' }), 'invalid_input', /^body: is required/);
    });

    it('refuses a body of another media type', async () => {
      const text = JSON.stringify(fine);
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'invalid']) {
        expectFailure(
          await post(text, { 'content-type': type }),
          'unsupported_media_type',
          /application\/json/,
        );
      }
    });

    it('refuses a body with an unknown encoding', async () => {
      expectFailure(await post('{}', { 'content-encoding': 'zip' }), 'unsupported_media_type');
    });

    it('refuses a body that is too large', async () => {
      const large = { ...fine, description: 'x'.repeat(LIMIT) };
      expectFailure(await post(large), 'body_too_large', new RegExp(`larger than ${LIMIT} bytes`));
      expectFailure(
        await api.send('POST', '/api/domains', {
          headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
          body: JSON.stringify(large),
        }),
        'body_too_large',
      );
    });

    it('refuses a compressed body that cannot be unpacked', async () => {
      const packed = gzipSync(JSON.stringify(fine));
      for (const [encoding, body] of [
        ['gzip', JSON.stringify(fine)],
        ['gzip', packed.subarray(0, -10)],
        ['gzip', Buffer.concat([packed.subarray(0, 10), Buffer.alloc(20, 0xff)])],
        ['deflate', 'not packed'],
        ['br', 'not packed'],
        ['br', brotliCompressSync(JSON.stringify(fine)).subarray(0, -3)],
      ] as const) {
        expectFailure(
          await post(body, { 'content-encoding': encoding }),
          'invalid_input',
          new RegExp(`^body: cannot be unpacked as ${encoding}: .`),
        );
      }
    });

    it('refuses a body that is too large when it is decompressed', async () => {
      const bomb = gzipSync(JSON.stringify({ ...fine, description: 'x'.repeat(LIMIT * 50) }));
      expectFailure(await post(bomb, { 'content-encoding': 'gzip' }), 'body_too_large');
    });

    it('changes nothing for a body that ends before it is complete', async () => {
      const { port } = new URL(api.url);
      await new Promise<void>((resolve, reject) => {
        const socket = connect(Number(port), '127.0.0.1', () => {
          socket.write(
            'POST /api/domains HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"na',
            () => socket.destroy(),
          );
        });
        socket.on('close', () => resolve());
        socket.on('error', reject);
      });
    });

    it('answers 400 to an invalid body with members named like properties of JavaScript objects', async () => {
      const response = await post('{"name":"A","host":1,"__proto__":{"enabled":false},"constructor":1}');
      expect(response.status).to.equal(400);
    });
  });

  it('accepts a body under other media types of JSON', async () => {
    for (const [at, type] of ['application/json; charset=utf-8', 'application/vnd.api+json'].entries()) {
      const response = await api.post(
        '/api/domains',
        { name: 'A', host: `type-${at}.example` },
        { headers: { 'content-type': type } },
      );
      const { id } = expectData<{ id: string }>(response, 201);
      expectData(await api.delete(`/api/domains/${id}`));
    }
  });

  it('names a hundred of the members that are not known, and says how many more there are', async () => {
    const unknown = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`unknown${at}`, 1]));
    const response = await api.post('/api/domains', { name: 'A', host: 'unknown.example', ...unknown });
    const { id } = expectData<{ id: string }>(response, 201);
    const { warnings } = response.body as { warnings: string[] };
    expect(warnings).to.have.length(101);
    expect(warnings.at(-1)).to.equal('body: 50 more fields are not known and were ignored');
    expectData(await api.delete(`/api/domains/${id}`));
  });

  it('refuses a member __proto__ in a body, and changes nothing', async () => {
    const body = '{"name":"A","host":"proto.example","__proto__":{"enabled":false}}';
    expectFailure(await api.post('/api/domains', body), 'invalid_input', /body\.__proto__: is not accepted/);
    expect(expectData(await api.get('/api/domains'))).to.deep.equal([]);
  });

  it('refuses a member __proto__ within other members, and names its place', async () => {
    const { id } = expectData<{ id: string }>(
      await api.post('/api/domains', { name: 'A', host: 'nested-proto.example' }),
      201,
    );
    for (const [policies, message] of [
      ['{"__proto__":{"cors":{"origins":["*"]}}}', /body\.policies\.__proto__: is not accepted/],
      ['{"__proto__":1}', /body\.policies\.__proto__: is not accepted/],
      ['{"rate_limit":[{"\\u005f_proto__":{}}]}', /rate_limit\.0\.__proto__: is not accepted/],
    ] as const) {
      const refused = await api.put(`/api/domains/${id}`, `{"policies":${policies}}`);
      expectFailure(refused, 'invalid_input', message);
    }
    expect(expectData<object>(await api.get(`/api/domains/${id}`))).to.include({ policies: null });
    expectData(await api.delete(`/api/domains/${id}`));
  });

  it('ignores the body of a GET request', async () => {
    expectData(await api.send('GET', '/api/domains', { body: 'not JSON' }));
  });

  it('answers unknown paths with 404', async () => {
    for (const path of ['/api/nothing', '/api/domains/a/b/c', '/API/domains', '/api//domains']) {
      expectFailure(await api.get(path), 'not_found');
    }
  });

  it('answers unknown methods with 405 and Allow', async () => {
    for (const [method, path, allow] of [
      ['PATCH', '/api/domains', 'GET, HEAD, POST'],
      ['POST', '/api/health', 'GET, HEAD'],
      ['OPTIONS', '/api/domains/x', 'DELETE, GET, HEAD, PUT'],
      ['GET', '/api/services/x/test', 'POST'],
      ['PROPFIND', '/api/stats', 'GET, HEAD'],
    ] as const) {
      const response = await api.send(method, path);
      expectFailure(response, 'method_not_allowed');
      expect(response.headers.allow).to.equal(allow);
    }
  });

  it('answers HEAD like GET, without the body', async () => {
    const response = await api.send('HEAD', '/api/health');
    expect(response.status).to.equal(200);
    expect(response.body).to.equal(undefined);
  });

  describe('invalid requests', () => {
    const fine = 'GET /api/health HTTP/1.1\r\nConnection: close\r\n';
    for (const [what, bytes, code] of [
      ['an unknown method', 'FETCH /api/domains HTTP/1.1\r\nHost: localhost\r\n\r\n', 'malformed_request'],
      ['bytes that are not HTTP', 'hello\r\n\r\n', 'malformed_request'],
      ['without Host', `${fine}\r\n`, 'malformed_request'],
      ['with two Hosts', `${fine}Host: localhost\r\nHost: 127.0.0.1\r\n\r\n`, 'malformed_request'],
      [
        'with large headers',
        `${fine}Host: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
        'headers_too_large',
      ],
      [
        'with a body whose pieces are broken',
        'POST /api/domains HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
          'Transfer-Encoding: chunked\r\n\r\ngarbage\r\n',
        'malformed_request',
      ],
    ] as const) {
      it(`answers an invalid request like every failure: ${what}`, async () => {
        const answer = await exchangeBytes(api.url, bytes);
        const [head = '', body = ''] = answer.split('\r\n\r\n');
        expect(head).to.match(new RegExp(`^HTTP/1.1 ${ERROR_CATALOGUE[code].status} `));
        expect(head).to.match(/^Content-Type: application\/json/im);
        expect(JSON.parse(body)).to.include({ ok: false, code });
        const id = /^X-Request-Id: (\S+)$/im.exec(head)?.[1];
        expect(id).to.match(UUID);
        expect(api.logged.lines.filter((line) => line['request_id'] === id)).to.have.lengthOf(1);
      });
    }

    it('accepts a request of HTTP/1.0 without Host', async () => {
      expect(await exchangeBytes(api.url, 'GET /api/health HTTP/1.0\r\n\r\n')).to.match(/^HTTP\/1.1 200 /);
    });
  });

  describe('request ids', () => {
    it('generates a request id for a request without one, or with an invalid one', async () => {
      for (const given of [undefined, '', 'a b', 'ü', 'x'.repeat(129), '{"a":1}']) {
        const response = await api.get('/api/health', {
          headers: given === undefined ? {} : { 'x-request-id': Buffer.from(given).toString('latin1') },
        });
        expect(response.headers['x-request-id']).to.match(UUID);
      }
    });

    it('keeps the request id of a request, and logs it with the route instead of the path', async () => {
      const id = 'trace-1.2:3_4';
      const response = await api.get('/api/domains/not-an-id?secret=1', { headers: { 'x-request-id': id } });
      expect(response.headers['x-request-id']).to.equal(id);
      const lines = api.logged.lines.filter((line) => line['request_id'] === id);
      expect(lines).to.have.lengthOf(1);
      expect(lines[0]).to.include({ level: 30, method: 'GET', route: '/api/domains/{id}', status: 400 });
      expect(lines[0]?.['ms']).to.be.a('number');
      expect(JSON.stringify(lines)).to.not.include('secret');
    });
  });

  describe('internal errors', () => {
    it('logs an internal error with its stack under the request id, and does not show it', async () => {
      api.logged.expectErrors(/cannot be divided/);
      const broken = await startApi({
        deps: (deps) => ({
          ...deps,
          log: api.logged.log,
          store: new Proxy(deps.store, {
            get() {
              throw new Error('the store cannot be divided');
            },
          }),
        }),
      });
      try {
        const response = await broken.get('/api/domains', { headers: { 'x-request-id': 'fault' } });
        expectFailure(response, 'internal_error', /request id fault$/);
        expect(JSON.stringify(response.body)).to.not.include('divided');
        const logged = api.logged.lines.find((line) => line.level === 50 && line['request_id'] === 'fault');
        expect(logged).to.have.nested.property('err.stack').that.includes('cannot be divided');
      } finally {
        await broken.close();
      }
    });
  });
});

describe('/metrics', () => {
  it('/metrics has the available metrics while Redis is down and a process sends an invalid response', async () => {
    const api = await startApi({ config: { REDIS_URL: `redis://127.0.0.1:${await freePort()}` } });
    const process = createServer((_request, response) => response.end('{'));
    const socket = join(metricsFolders(await runDirectory(api.config.DATA_DIR))[0], 'metrics-1-invalid.sock');
    await new Promise<void>((resolve) => process.listen(socket, resolve));
    try {
      for (let time = 0; time < 3; time++) {
        const { status, body } = await api.get('/metrics');
        expect(status, String(body)).to.equal(200);
        expect(body).to.include('edge_api_request_duration_seconds');
        expect(body).to.not.match(/^edge_queue_jobs/m);
      }
      const warnings = api.logged.lines.filter(({ level }) => level === 40).map(({ msg }) => msg);
      expect(warnings).to.include('jobs of the queue could not be counted');
      expect(warnings).to.include('metrics of a process could not be read');
    } finally {
      await new Promise((resolve) => process.close(resolve));
      await api.close();
    }
  });
});

describe('sockets of metrics that nobody serves', () => {
  it('/metrics removes the socket of a process that has ended, and leaves that of one that is about to listen', async () => {
    const api = await startApi();
    const [folder] = metricsFolders(await runDirectory(api.config.DATA_DIR));
    /** Refuses connections: a process has been killed, or has bound it and does not listen yet. */
    const refusing = async (pid: number) => {
      const path = join(folder, `metrics-${pid}-refuses.sock`);
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(join(folder, 'made'), resolve));
      renameSync(join(folder, 'made'), path);
      await new Promise((resolve) => server.close(resolve));
      return path;
    };
    const ended = await refusing(99_999_999);
    const beginning = await refusing(process.pid);
    try {
      expect((await api.get('/metrics')).status).to.equal(200);
      expect([existsSync(ended), existsSync(beginning)]).to.deep.equal([false, true]);
    } finally {
      rmSync(beginning, { force: true });
      await api.close();
    }
  });
});

describe('the API key', () => {
  let api: TestApi;

  before(async () => {
    api = await startApi({ config: { API_KEY: 'the-right-key' } });
  });
  after(() => api.close());

  const withAuthorization = (authorization: string) => ({ headers: { authorization } });
  const basic = (text: string) => withAuthorization(`Basic ${Buffer.from(text).toString('base64')}`);

  it('accepts the API key as a bearer token', async () => {
    for (const path of ['/api/domains', '/api/stats', '/api/openapi.json']) {
      const response = await api.get(path, withAuthorization('Bearer the-right-key'));
      expect(response.status).to.equal(200);
    }
    expectData(await api.get('/api/domains', withAuthorization('bearer the-right-key')));
  });

  it('names the API key as the actor of a change that was made with it', async () => {
    const authorized = withAuthorization('Bearer the-right-key');
    expectData(await api.put('/api/secrets/MINE', { value: 'x' }, authorized));
    const [secret] = expectData<{ actor: object }[]>(await api.get('/api/secrets', authorized));
    expect(secret?.actor).to.deep.equal({ kind: 'api_key' });
    expectData(await api.delete('/api/secrets/MINE', authorized));
  });

  it('answers the health check without the API key', async () => {
    expectData(await api.get('/api/health'));
  });

  it('refuses requests without the API key, or with another one', async () => {
    for (const headers of [
      {},
      { authorization: 'Bearer the-right-ke' },
      { authorization: 'Bearer the-right-key2' },
      { authorization: 'Bearer' },
      { authorization: 'the-right-key' },
      { authorization: 'Token the-right-key' },
      basic('admin:the-right-key').headers,
    ]) {
      for (const path of ['/api/domains', '/api/nothing', '/api/health/', '/queues2', '/api/']) {
        const response = await api.get(path, { headers });
        expectFailure(response, 'unauthorized');
        expect(response.headers['www-authenticate']).to.equal('Bearer');
      }
      expectFailure(
        await api.post('/api/domains', { name: 'A', host: 'a.example' }, { headers }),
        'unauthorized',
      );
    }
    expect(
      expectData(await api.get('/api/domains', withAuthorization('Bearer the-right-key'))),
    ).to.deep.equal([]);
  });

  it('refuses a request without the API key in the envelope of its route', async () => {
    const response = await api.post('/api/services/x/activate');
    expectFailure(response, 'unauthorized');
    expect(response.body).to.include({ success: false });
  });

  it('accepts the API key as the password for the pages of the queues', async () => {
    for (const path of ['/queues', '/queues/api/queues']) {
      const refused = await api.get(path, basic('admin:wrong'));
      expectFailure(refused, 'unauthorized');
      expect(refused.headers['www-authenticate']).to.match(/^Basic /);
      expect((await api.get(path, basic('anyone:the-right-key'))).status).to.not.equal(401);
    }
  });

  it('accepts every host name with the API key', async () => {
    const headers = { host: 'gateway.internal', authorization: 'Bearer the-right-key' };
    expectData(await api.get('/api/domains', { headers }));
  });
});

describe('requests of web pages', () => {
  let api: TestApi;

  before(async () => {
    api = await startApi({ config: { ALLOWED_HOSTS: 'gateway.internal, Other.Internal' } });
  });
  after(() => api.close());

  it('refuses requests of web pages of another origin', async () => {
    const { host, port } = new URL(api.url);
    for (const origin of [
      'https://evil.example',
      'null',
      'http://127.0.0.1',
      `http://localhost:${port}`,
      'file://',
      'invalid',
      `http://${host}.evil.example`,
    ]) {
      const headers = { origin };
      expectFailure(await api.get('/api/domains', { headers }), 'foreign_origin');
      expectFailure(
        await api.post('/api/domains', { name: 'A', host: 'a.example' }, { headers }),
        'foreign_origin',
      );
    }
    expectFailure(
      await api.get('/api/domains', { headers: { 'sec-fetch-site': 'cross-site' } }),
      'foreign_origin',
    );
    expectFailure(
      await api.get('/queues', { headers: { origin: 'https://evil.example' } }),
      'foreign_origin',
    );
    expect(expectData(await api.get('/api/domains'))).to.deep.equal([]);
  });

  it('serves requests of web pages of its own origin', async () => {
    const { host, port } = new URL(api.url);
    for (const headers of [
      { origin: `http://${host}` },
      { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' },
      { origin: `http://localhost:${port}`, host: `localhost:${port}` },
      { origin: 'https://gateway.internal', host: 'gateway.internal' },
      { origin: 'https://gateway.internal', host: 'gateway.internal:443' },
      { 'sec-fetch-site': 'none' },
    ]) {
      expectData(await api.get('/api/domains', { headers }));
    }
  });

  it('serves requests only under its own host names', async () => {
    for (const host of [
      '127.0.0.1',
      '192.0.2.7:8081',
      '[::1]:8081',
      'localhost',
      'LOCALHOST:1',
      'a.localhost',
      'gateway.internal:8081',
      'other.internal',
    ]) {
      expectData(await api.get('/api/domains', { headers: { host } }));
    }
    for (const host of [
      'evil.example',
      'localhost.evil.example',
      '127.0.0.1.evil.example:80',
      'xlocalhost',
    ]) {
      expectFailure(await api.get('/api/domains', { headers: { host } }), 'foreign_origin', /host name/);
    }
  });
});
