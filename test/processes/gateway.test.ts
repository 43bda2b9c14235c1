/** The public side over HTTP: routing, requests as handlers see them, answers as clients see them. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { ANYTHING } from '../support/handler-sources.js';
import { type Answer, call, exchangeBytes } from '../support/http.js';
import { isRunning } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';

const MIB = 1024 * 1024;
const BODY_LIMIT = 12 * MIB;

/** The request as the handler saw it. */
interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly params: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly client_ip: string;
  readonly request_id: string;
  /** Which process it was. */
  readonly instance: number;
}

const seenBy = (answer: Answer): Seen => {
  expect(answer.status, answer.text).to.equal(200);
  return JSON.parse(answer.text) as Seen;
};

describe('gateway over HTTP', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack({ env: { GATEWAY_BODY_LIMIT_BYTES: String(BODY_LIMIT) } });
  });
  after(() => stack.close());

  const at = (path: string) => `${stack.gatewayUrl}${path}`;
  const deploy = (path: string, more: Record<string, unknown> = {}) =>
    stack.deploy({ path, code: ANYTHING, ...more });
  const expectError = (answer: Answer, status: number) => {
    expect(answer.status, answer.text).to.equal(status);
    expect(answer.headers['content-type']).to.equal('application/json');
    expect(answer.headers['x-request-id']).to.be.a('string').and.not.equal('');
    expect(JSON.parse(answer.text)).to.have.all.keys('error');
  };

  describe('routing', () => {
    before(async () => {
      await deploy('/r/{x}', { name: 'any host' });
      await deploy('/r/{y}', { name: 'one host', domain: 'one.test' });
      await deploy('/r/static', { name: 'static', domain: 'one.test' });
      await deploy('/r/static', { name: 'post', domain: 'one.test', method: 'POST' });
      await deploy('/only-post', { method: 'POST' });
      await deploy('/a/{p}/b/{q}');
      await deploy('/reports/{id}', { name: 'report' });
      await deploy('/reports/{id}.json', { name: 'json' });
      await deploy('/reports/{id}:archive', { name: 'archive', method: 'POST' });
      await deploy('/files/{*path}', { name: 'rest' });
    });

    it('routes to the exact host before *, and to static segments before parameters', async () => {
      const params = async (host: string, path: string) =>
        seenBy(await call(at(path), { headers: { host } })).params;
      expect(await params('one.test', '/r/1')).to.deep.equal({ y: '1' });
      expect(await params('ONE.test:8080', '/r/1')).to.deep.equal({ y: '1' });
      expect(await params('one.test.', '/r/1')).to.deep.equal({ y: '1' });
      expect(await params('other.test', '/r/1')).to.deep.equal({ x: '1' });
      expect(await params('one.test', '/r/static')).to.deep.equal({});
      expect(await params('other.test', '/r/static')).to.deep.equal({ x: 'static' });
    });

    it('matches routes with text beside a parameter, and with a parameter for the rest of the path', async () => {
      const params = async (path: string, method = 'GET') => seenBy(await call(at(path), { method })).params;
      expect(await params('/reports/7')).to.deep.equal({ id: '7' });
      expect(await params('/reports/7.json?x=1')).to.deep.equal({ id: '7' });
      expect(await params('/reports/7.xml')).to.deep.equal({ id: '7.xml' });
      expect(await params('/reports/7%3Aarchive', 'POST')).to.deep.equal({ id: '7' });
      expect(await params('/files/a/b%20c.txt')).to.deep.equal({ path: 'a/b c.txt' });
      expectError(await call(at('/files/')), 404);
      const wrong = await call(at('/reports/7.json'), { method: 'POST' });
      expectError(wrong, 405);
      expect(wrong.headers['allow']).to.equal('GET, HEAD');
    });

    it('decodes path parameters, and accepts a trailing slash', async () => {
      expect(seenBy(await call(at('/a/J%C3%BCrgen/b/x%2Fy'))).params).to.deep.equal({
        p: 'Jürgen',
        q: 'x/y',
      });
      expect(seenBy(await call(at('/a/1/b/2/'))).params).to.deep.equal({ p: '1', q: '2' });
    });

    it('answers 404 for unknown routes', async () => {
      for (const path of ['/', '/nothing', '/a/1/b', '/a/1/b/', '/a/1/b/2/3', '/a//b/2'])
        expectError(await call(at(path)), 404);
    });

    it('answers 405 with Allow to a method that the route does not have', async () => {
      const refused = await call(at('/only-post'));
      expectError(refused, 405);
      expect(refused.headers.allow).to.equal('POST');
      const both = await call(at('/r/static'), { method: 'DELETE', headers: { host: 'one.test' } });
      expectError(both, 405);
      expect(both.headers.allow).to.equal('GET, HEAD, POST');
    });

    it('answers HEAD requests by the handler of GET, without a body', async () => {
      const get = await call(at('/r/1?do=bytes'));
      const head = await call(at('/r/1?do=bytes'), { method: 'HEAD' });
      expect(head.status).to.equal(200);
      expect(head.headers['content-length']).to.equal('256').and.equal(get.headers['content-length']);
      expect(head.body).to.have.length(0);
      expect((await call(at('/nothing'), { method: 'HEAD' })).body).to.have.length(0);
    });

    it('answers 400 to a path that cannot be decoded', async () => {
      for (const path of ['/r/%', '/r/%zz', '/r/%ff']) {
        const answer = await exchangeBytes(
          stack.gatewayUrl,
          `GET ${path} HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n`,
        );
        expect(answer, path)
          .to.match(/^HTTP\/1\.1 400 /)
          .and.match(/X-Request-Id: /i);
      }
    });

    it('answers JSON with a request id also to invalid or ambiguous HTTP', async () => {
      const send = (lines: string[]) => exchangeBytes(stack.gatewayUrl, `${lines.join('\r\n')}\r\n\r\n`);
      const close = 'Connection: close';
      const answers = {
        noHost: await send(['GET /r/1 HTTP/1.1', close]),
        twoHosts: await send(['GET /r/1 HTTP/1.1', 'Host: one.test', 'Host: other.test', close]),
        invalid: await send(['garbage']),
        twoLengths: await send([
          'GET /r/1 HTTP/1.1',
          'Host: a',
          'Content-Length: 1',
          'Transfer-Encoding: chunked',
        ]),
        longHead: await send(['GET /r/1 HTTP/1.1', 'Host: a', `X-Long: ${'x'.repeat(20_000)}`]),
      };
      for (const [name, answer] of Object.entries(answers)) {
        const status = name === 'longHead' ? 431 : 400;
        expect(answer, name).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
        expect(answer, name).to.match(/\r\nX-Request-Id: \S/i);
        expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))), name).to.have.all.keys('error');
      }
    });

    it('accepts a request target in absolute form', async () => {
      const answer = await exchangeBytes(
        stack.gatewayUrl,
        'GET http://one.test/r/7?q=1 HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n',
      );
      expect(answer).to.match(/^HTTP\/1\.1 200 /);
      const seen = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as Seen;
      expect(seen).to.deep.include({ path: '/r/7', params: { y: '7' }, query: { q: '1' } });
    });
  });

  describe('requests and answers', () => {
    before(async () => {
      await deploy('/any/{id}');
      await deploy('/any', { method: 'POST' });
    });

    it('hands query, headers, body, client address and request id to the handler', async () => {
      const answer = await call(at('/any?a=1&a=2&b=%26%20x'), {
        method: 'POST',
        headers: { 'X-Custom': 'yes', 'X-Request-Id': 'from-the-client', 'content-type': 'text/plain' },
        body: 'grüße',
      });
      const seen = seenBy(answer);
      expect(seen).to.deep.include({
        method: 'POST',
        path: '/any',
        query: { a: '2', b: '& x' },
        body: 'grüße',
      });
      expect(seen.headers).to.include({ 'x-custom': 'yes', 'content-type': 'text/plain' });
      expect(seen.client_ip).to.match(/127\.0\.0\.1$/);
      expect(seen.request_id).to.equal('from-the-client');
      expect(answer.headers['x-request-id']).to.equal('from-the-client');
    });

    it('generates a request id when the client sends none or an invalid one', async () => {
      const ids = new Set<string>();
      for (const headers of [{}, { 'x-request-id': 'not fit!' }, { 'x-request-id': 'x'.repeat(200) }]) {
        const answer = await call(at('/any/1'), { headers });
        const { request_id } = seenBy(answer);
        expect(request_id).to.match(/^[\w-]{12,40}$/);
        expect(answer.headers['x-request-id']).to.equal(request_id);
        ids.add(request_id);
      }
      expect(ids.size).to.equal(3);
    });

    it('passes each byte of bodies in both directions, with and without chunked encoding', async () => {
      const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      expect((await call(at('/any/1?do=bytes'))).body.equals(all)).to.equal(true);
      const echo = (body: Buffer | Buffer[]) => call(at('/any?do=echo'), { method: 'POST', body });
      expect((await echo(all)).body.equals(all)).to.equal(true);
      expect((await echo([all, all, all])).body.equals(Buffer.concat([all, all, all]))).to.equal(true);
      expect((await echo([])).body).to.have.length(0);
    });

    it('passes a body of 10 MiB to a handler and back unchanged', async () => {
      const large = Buffer.alloc(10 * MIB);
      for (let i = 0; i < large.length; i += 4) large.writeUInt32LE((i * 2_654_435_761) >>> 0, i);
      const answer = await call(at('/any?do=echo'), { method: 'POST', body: large });
      expect(answer.status).to.equal(200);
      expect(answer.body.equals(large)).to.equal(true);
    });

    it('answers 413 to a body over the limit, with or without Content-Length', async () => {
      const piece = Buffer.alloc(MIB);
      const tooLarge = Array.from({ length: 13 }, () => piece);
      const path = at('/any?do=echo');
      expectError(await call(path, { method: 'POST', body: tooLarge }), 413);
      expectError(await call(path, { method: 'POST', body: Buffer.concat(tooLarge) }), 413);
      const announced = await exchangeBytes(
        stack.gatewayUrl,
        `POST /any HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY_LIMIT + 1}\r\n\r\n`,
      );
      expect(announced).to.match(/^HTTP\/1\.1 413 /);
      expect((await call(path, { method: 'POST', body: Buffer.alloc(BODY_LIMIT) })).status).to.equal(200);
    });

    it('sends no body with 204 and 304', async () => {
      for (const status of [204, 304]) {
        const answer = await call(at(`/any/1?do=status&code=${status}`));
        expect(answer.status).to.equal(status);
        expect(answer.body).to.have.length(0);
        expect(answer.headers).not.to.have.any.keys('content-length', 'transfer-encoding');
      }
      expect((await call(at('/any/1?do=status&code=418'))).text).to.equal('a body');
    });

    it('sends each of several response headers of a name, and no hop-by-hop headers', async () => {
      const answer = await call(at('/any/1?do=headers'));
      expect(answer.text).to.equal('headers');
      expect(answer.headers['set-cookie']).to.have.members(['a=1', 'b=2']);
      expect(answer.headers['x-own']).to.equal('kept');
      expect(answer.headers['content-length']).to.equal('7');
      expect(answer.headers).not.to.have.any.keys('keep-alive', 'transfer-encoding');
      expect(answer.headers.connection ?? '').not.to.match(/x-own/i);
    });

    it('answers 500 to the request in which a handler panics, and serves others by the same process', async () => {
      const before = seenBy(await call(at('/any/1'))).instance;
      const slow = call(at('/any/1?do=sleep&ms=300'));
      expect((await call(at('/any/1?do=panic'))).status).to.equal(500);
      expect((await slow).status).to.equal(200);
      expect(seenBy(await call(at('/any/1'))).instance).to.equal(before);
    });

    it('writes the output of handlers to the log of the gateway, with the id of the endpoint', async () => {
      const id = await deploy('/prints');
      expect((await call(at('/prints?do=print'))).status).to.equal(204);
      const lines = stack.processes.get('gateway')?.logged.lines ?? [];
      await eventually(() => {
        for (const stream of ['stdout', 'stderr']) {
          const line = lines.find(({ msg }) => msg === `said on ${stream}`);
          expect(line).to.include({ endpoint_id: id, stream, level: 30 });
        }
      });
    });
  });

  describe('changes', () => {
    it('answers 503 for a new endpoint until it is started, and 404 when it is deleted', async () => {
      const { id } = (await must(
        stack.api.post('/api/endpoints', {
          name: 'new',
          path: '/new',
          method: 'GET',
          domain: '*',
          code: ANYTHING,
        }),
      )) as { id: string };
      await eventually(async () => {
        const answer = await call(at('/new'));
        expectError(answer, 503);
        expect(answer.headers['retry-after']).to.match(/^\d+$/);
      });
      await must(stack.api.post(`/api/endpoints/${id}/compile`));
      const { pid } = (await must(stack.api.post(`/api/endpoints/${id}/start`))) as { pid: number };
      expect((await call(at('/new'))).status).to.equal(200);
      expect(isRunning(pid)).to.equal(true);

      const slow = call(at('/new?do=sleep&ms=2000'));
      await eventually(async () => expect(await inFlight()).to.equal(1));
      await must(stack.api.delete(`/api/endpoints/${id}`));
      await eventually(async () => expectError(await call(at('/new')), 404));
      expect((await slow).status, 'a request in flight when its endpoint is deleted').to.equal(200);
      await eventually(() => expect(isRunning(pid)).to.equal(false));
    });

    it('routes by changed values of enabled, host, base path and path as soon as the API has answered', async () => {
      const domain = await must(stack.api.post('/api/domains', { name: 'd', host: 'dis.test' }));
      const { id: domainId } = domain as { id: string };
      const { id: collectionId } = (await must(
        stack.api.post('/api/collections', { domain_id: domainId, name: 'c', base_path: '/base' }),
      )) as { id: string };
      const id = await deploy('/d', { domain: 'dis.test', collection_id: collectionId });
      const status = async () => (await call(at('/base/d'), { headers: { host: 'dis.test' } })).status;
      expect(await status()).to.equal(200);
      const { pid } = (await must(stack.api.get(`/api/endpoints/${id}`))) as { pid: number };
      for (const resource of [
        `/api/endpoints/${id}`,
        `/api/collections/${collectionId}`,
        `/api/domains/${domainId}`,
      ]) {
        for (const [enabled, expected] of [
          [false, 404],
          [true, 200],
          [false, 404],
          [true, 200],
        ] as const) {
          await must(stack.api.put(resource, { enabled }));
          expect(await status(), `${resource} with the answer`).to.equal(expected);
        }
      }
      expect((await call(at('/base/d'), { headers: { host: 'dis.test' } })).status).to.equal(200);
      expect(isRunning(pid), 'nothing of this touches the process').to.equal(true);

      await must(stack.api.put(`/api/collections/${collectionId}`, { base_path: '/other' }));
      const statusAt = async (host: string, path: string) =>
        (await call(at(path), { headers: { host } })).status;
      expect(await statusAt('dis.test', '/other/d')).to.equal(200);
      expect(await statusAt('dis.test', '/base/d')).to.equal(404);
      await must(stack.api.put(`/api/domains/${domainId}`, { host: 'renamed.test' }));
      expect(await statusAt('renamed.test', '/other/d')).to.equal(200);
      expect(await statusAt('dis.test', '/other/d')).to.equal(404);
      await must(stack.api.put(`/api/endpoints/${id}`, { path: '/e/{x}' }));
      expect(await statusAt('renamed.test', '/other/e/1')).to.equal(200);
      expect(await statusAt('renamed.test', '/other/d')).to.equal(404);
    });

    it('lets two endpoints swap routes', async () => {
      const first = await deploy('/place/1');
      await deploy('/place/2');
      const instances = async () => [
        seenBy(await call(at('/place/1'))).instance,
        seenBy(await call(at('/place/2'))).instance,
      ];
      const [one, two] = await instances();
      const list = (await must(stack.api.get('/api/endpoints'))) as { id: string; path: string }[];
      const second = list.find(({ path }) => path === '/place/2')?.id ?? '';
      await must(stack.api.put(`/api/endpoints/${first}`, { path: '/place/3' }));
      await must(stack.api.put(`/api/endpoints/${second}`, { path: '/place/1' }));
      await must(stack.api.put(`/api/endpoints/${first}`, { path: '/place/2' }));
      await eventually(async () => expect(await instances()).to.deep.equal([two, one]));
    });
  });

  /** Requests in handlers. */
  async function inFlight(): Promise<number> {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  }
});
