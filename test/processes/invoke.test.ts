/** Trying a version before it serves, and asking where a request would go: over HTTP, with real processes. */
import { readdirSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { gatewayFolder } from '../../src/bootstrap/run-directory.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';
import { call } from '../support/http.js';
import { type Stack, startStack } from '../support/processes.js';

const HOST = 'try.example';
const SHOWS = (version: string) => `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    println!("asked for {}", req.path);
    eprintln!("attempt {}", req.attempt());
    match req.query_param("do").map(String::as_str) {
        Some("panic") => panic!("as asked"),
        Some("bytes") => Response::binary(200, [0, 159, 146, 150], "image/x"),
        _ => Response::json(201, json!({
            "version": "${version}",
            "method": req.method,
            "id": req.path_param("id"),
            "host": req.header("host"),
            "type": req.header("content-type"),
            "x": req.header("x-test"),
            "body": req.body,
            "key": std::env::var("KEY").ok(),
            "request_id": req.request_id,
        })).with_header("X-Own", "1").append_header("Set-Cookie", "a=1").append_header("Set-Cookie", "b=2"),
    }
}
handler_loop!(handle);
`;

interface Invoked {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly body_base64?: string;
  readonly duration_ms: number;
  readonly version: number;
  readonly request_id: string;
  readonly logs: readonly string[];
}

describe('invocations of a version', function () {
  this.timeout(120_000);
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack();
    expectData(await stack.api.post('/api/domains', { name: 'D', host: HOST }), 201);
    const body = { name: 'Try', path: '/things/{id}', method: 'POST', domain: HOST, code: SHOWS('one') };
    id = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201).id;
    await stack.api.put(`/api/endpoints/${id}/variables`, { KEY: 'value' });
  });
  after(() => stack?.close());

  const invoke = (body: object, endpoint = id) => stack.api.post(`/api/endpoints/${endpoint}/invoke`, body);
  const invoked = async (body: object) => expectData<Invoked>(await invoke(body));
  const compile = async (code?: string) => {
    if (code) expectData(await stack.api.put(`/api/endpoints/${id}`, { code }));
    const { status, body } = await stack.api.post(`/api/endpoints/${id}/compile`);
    expect(status, JSON.stringify(body)).to.equal(200);
  };

  it('refuses to invoke an endpoint that has no compiled version', async () => {
    expectFailure(await invoke({ path: '/things/1' }), 'endpoint_not_compiled', /compile it first/);
  });

  it('invokes a version that is not deployed, and shows its answer and its output', async () => {
    await compile();
    const {
      headers,
      duration_ms,
      logs,
      body = '',
      ...rest
    } = await invoked({
      path: '/things/7%2F8?a=b',
      headers: { 'X-Test': 'yes' },
      body: { hello: [1, 'ü'] },
    });
    expect(JSON.parse(body)).to.deep.equal({
      ...{ version: 'one', method: 'POST', id: '7/8', host: HOST, type: 'application/json', x: 'yes' },
      ...{ body: '{"hello":[1,"ü"]}', key: 'value', request_id: rest.request_id },
    });
    expect(rest).to.deep.equal({ status: 201, version: 1, request_id: rest.request_id });
    expect(headers).to.include({
      'x-own': '1',
      'content-type': 'application/json',
      'set-cookie': 'a=1, b=2',
    });
    expect(duration_ms).to.be.above(0);
    // Of two streams, which are read each for itself.
    expect(logs).to.have.members(['asked for /things/7%2F8', 'attempt 1']);
    expect(
      (await call(`${stack.gatewayUrl}/things/7`, { method: 'POST', headers: { host: HOST } })).status,
    ).to.equal(503);
  });

  it('accepts the body of an invocation in base64, and shows a binary answer in base64', async () => {
    const { body_base64, body } = await invoked({ path: '/things/1?do=bytes' });
    expect({ body_base64, body }).to.deep.equal({ body_base64: 'AJ+Slg==', body: undefined });
    const sent = await invoked({ path: '/things/1', body_base64: Buffer.from('text').toString('base64') });
    expect(JSON.parse(sent.body ?? '')).to.include({ body: 'text' });
  });

  it('shows the status 500 and the panic message of an invoked handler that panics', async () => {
    const { status, logs } = await invoked({ path: '/things/1?do=panic' });
    expect(status).to.equal(500);
    expect(logs.join('\n')).to.match(/panicked at .*\n?.*as asked/);
  });

  it('invokes the newest version, or the one that the request names, while another one serves', async () => {
    expectData(await stack.api.post(`/api/endpoints/${id}/deploy`, {}));
    await compile(SHOWS('two'));
    const versionOf = async (body: object) => {
      const { version, body: text = '' } = await invoked({ path: '/things/1', ...body });
      return [version, (JSON.parse(text) as { version: string }).version];
    };
    expect(await versionOf({})).to.deep.equal([2, 'two']);
    expect(await versionOf({ version: 1 })).to.deep.equal([1, 'one']);
    const { text } = await call(`${stack.gatewayUrl}/things/1`, { method: 'POST', headers: { host: HOST } });
    expect(JSON.parse(text)).to.include({ version: 'one' });
  });

  it('invokes a version of a disabled endpoint', async () => {
    expectData(await stack.api.put(`/api/endpoints/${id}`, { enabled: false }));
    expect((await invoked({ path: '/things/1' })).status).to.equal(201);
    expectData(await stack.api.put(`/api/endpoints/${id}`, { enabled: true }));
  });

  it('runs many invocations at a time, each with its own output', async () => {
    const all = await Promise.all(Array.from({ length: 12 }, (_, at) => invoked({ path: `/things/${at}` })));
    for (const [at, { logs }] of all.entries())
      expect(logs).to.have.members([`asked for /things/${at}`, 'attempt 1']);
  });

  it('refuses to invoke a version while no gateway runs, and invokes it when one has started', async () => {
    await stack.processes.get('gateway')?.end('SIGKILL');
    await eventually(async () =>
      expectFailure(await invoke({ path: '/things/1' }), 'no_gateway', /start the/),
    );
    await stack.start('gateway');
    expect((await invoked({ path: '/things/1' })).status).to.equal(201);
  });

  it('refuses an invocation whose request is not valid', async () => {
    const path = '/things/1';
    for (const [body, message] of [
      [{}, /body\.path: is required, because the route \/things\/\{id\} has parameters/],
      [{ path: 'http://127.0.0.1:22/' }, /body\.path: must be a path, not a URL/],
      [{ path: '//other.example/things/1' }, /body\.path: must be a path, not a URL/],
      [{ path: '/other' }, /body\.path: does not match the route/],
      [{ path: '/things/a b' }, /body\.path: must begin with/],
      [{ path: '/things/ü' }, /body\.path: must begin with/],
      [{ path: '/things/..' }, /body\.path: must be percent-encoded/],
      [{ path: '/things/1%2F..' }, /body\.path: must be percent-encoded/],
      [{ path: '/things/%ff' }, /body\.path: must be percent-encoded/],
      [{ path, headers: { a_b: '1' } }, /body\.headers: has "a_b"/],
      [{ path, method: 'GET' }, /body\.method: must be POST/],
      [{ path, method: 'BREW' }, /body\.method/],
      [{ path, headers: { 'content-length': '9' } }, /body\.headers: must not have "content-length"/],
      [{ path, headers: { a: 'b\r\nc: d' } }, /body\.headers/],
      [{ path, headers: { 'a b': 'c' } }, /body\.headers: has "a b"/],
      [{ path, headers: { A: '1', a: '2' } }, /body\.headers: has "a" twice/],
      [{ path, headers: { host: 'a b' } }, /body\.headers: has "host", whose value is no host/],
      [{ path, body: 'a', body_base64: 'YQ==' }, /exclude each other/],
      [{ path, body_base64: 'a_b' }, /body\.body_base64: is not base64/],
      [{ path, body: 5 }, /body\.body/],
      [{ path, version: 0 }, /body\.version/],
    ] as const) {
      expectFailure(await invoke(body), 'invalid_input', message);
    }
    expectFailure(await invoke({ path, version: 99 }), 'not_found', /version 99/);
    expectFailure(await invoke({ path }, NO_ID), 'not_found');
  });

  it('refuses invocations at the socket of a gateway without the token of the installation', async () => {
    const folder = await gatewayFolder(stack.runDir);
    const [socketPath = ''] = readdirSync(folder).map((name) => join(folder, name));
    expect(statSync(folder).mode & 0o007).to.equal(0);
    const ask = (authorization: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        request({ socketPath, path: '/invoke', method: 'POST', headers: { authorization } }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode));
        })
          .on('error', reject)
          .end('{}');
      });
    expect(await ask('')).to.equal(401);
    expect(await ask('Bearer x')).to.equal(401);
  });
});

describe('GET /api/route', function () {
  this.timeout(120_000);
  let stack: Stack;
  const ids = new Map<string, string>();
  before(async () => {
    stack = await startStack();
    const create = async (name: string, path: string, fields: object = {}) => {
      const code = SHOWS(name);
      const body = { name, path, method: 'GET', domain: HOST, code, ...fields };
      ids.set(name, expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201).id);
    };
    await create('static', '/files/new');
    await create('mixed', '/files/{name}.json');
    await create('parameter', '/files/{id}');
    await create('rest', '/files/{*path}');
    await create('any host', '/files/{*path}', { domain: '*' });
    await create('off', '/off/{id}', { enabled: false });
    expectData(await stack.api.post(`/api/endpoints/${ids.get('parameter')}/deploy`, {}));
    await eventually(async () => {
      expect((await where('/off/1')).reason).to.match(/disabled/);
      expect((await where('/files/new', { host: 'other.example' })).match).to.not.equal(null);
    });
  });
  after(() => stack?.close());

  interface Match {
    readonly endpoint_id: string;
    readonly name: string;
    readonly params: Readonly<Record<string, string>>;
    readonly status: string;
  }
  interface Routing {
    readonly match: Match | null;
    readonly next: Match | null;
    readonly reason: string | null;
  }
  const ask = (path: string, { host = HOST, method = 'GET' } = {}) =>
    stack.api.get(`/api/route?${new URLSearchParams({ host, method, path })}`);
  const where = async (...given: Parameters<typeof ask>) => expectData<Routing>(await ask(...given));

  it('shows the endpoint that a request would reach, its parameters, and the next one that matches', async () => {
    for (const [path, name, params, next] of [
      ['/files/new', 'static', {}, 'parameter'],
      ['/files/a.json', 'mixed', { name: 'a' }, 'parameter'],
      ['/files/a%20b', 'parameter', { id: 'a b' }, 'rest'],
      ['/files/a/b?c=d', 'rest', { path: 'a/b' }, 'any host'],
    ] as const) {
      const found = await where(path);
      expect(found.match, path).to.include({ name, endpoint_id: ids.get(name) });
      expect(found.match?.params, path).to.deep.equal(params);
      expect(found.next?.name, path).to.equal(next);
    }
    const other = await where('/files/x', { host: 'Other.Example:8080' });
    expect([other.match?.name, other.next]).to.deep.equal(['any host', null]);
    expect((await where('/files/x', { method: 'HEAD' })).match?.name).to.equal('parameter');
  });

  it('says whether a handler would answer a request, or why none would', async () => {
    expect((await where('/files/x')).reason).to.equal(null);
    expect((await where('/files/new')).reason).to.equal('The endpoint is created: start it.');
    expect((await where('/files/x', { method: 'PUT' })).reason).to.match(/has GET, HEAD, not PUT/);
    expect((await where('/none')).reason).to.match(/No endpoint of the host try\.example/);
    expect((await where('/off/1')).reason).to.match(/off \(.*disabled/);
    for (const [path, host, reason] of [
      ['/files/%ff', HOST, /not percent-encoded UTF-8/],
      ['/files/..', HOST, /"\." or "\.\."/],
      ['/files/%2e%2e/a', HOST, /"\." or "\.\."/],
      ['/files/a%00', HOST, /NUL/],
      ['/files/a\\b', HOST, /backslash/],
      ['/files/a#b', HOST, /fragment/],
      ['/files/x', 'a b', /not a host/],
      ['/files/x', `user@${HOST}`, /not a host/],
    ] as const) {
      const { match, reason: why } = await where(path, { host });
      expect(match, path).to.equal(null);
      expect(why, path)
        .to.match(/answers such a request with 400: /)
        .and.to.match(reason);
    }
  });

  it('serves requests as before while many API calls query their route', async () => {
    const get = () => call(`${stack.gatewayUrl}/files/x`, { headers: { host: HOST } });
    const asking = Promise.all(Array.from({ length: 50 }, () => where('/files/x')));
    const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await get()).status));
    await asking;
    expect(new Set(statuses)).to.deep.equal(new Set([201]));
  });

  it('refuses a query of a route whose path or method is not valid, or that has no host', async () => {
    expectFailure(await ask('files'), 'invalid_input', /query\.path/);
    expectFailure(await ask('/a', { method: 'get' }), 'invalid_input', /query\.method/);
    expectFailure(await stack.api.get('/api/route?path=/'), 'invalid_input', /query\.host/);
  });
});
