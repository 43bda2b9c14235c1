/**
 * What happens on one connection of the management API: several requests, bodies that stop or are too large, clients
 * that leave. Of those of the gateway, `rust/front/tests/front/connections.rs` has all cases but one.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { ANYTHING } from '../support/handler-sources.js';
import { type Stack, startStack } from '../support/processes.js';
import { connector, rawExchange } from '../support/raw-http.js';

const BODY_LIMIT = 100_000;
/** The management API has read the body, and misses fields in it. */
const TAKEN = 400;
const HOST = 'Host: localhost\r\n';
const JSON_TYPE = 'Content-Type: application/json\r\n';

describe('connections', () => {
  let stack: Stack;
  const connectTo = connector();

  before(async () => {
    stack = await startStack({
      env: { API_BODY_LIMIT_BYTES: String(BODY_LIMIT) },
    });
    await stack.deploy({ path: '/any', code: ANYTHING });
  });
  after(() => stack.close());

  const good = '/api/stats';
  const slow = '/metrics';
  const post = '/api/domains';
  const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
  const head = (headers: string, path = post) => `POST ${path} HTTP/1.1\r\n${HOST}${JSON_TYPE}${headers}\r\n`;
  afterEach(async () => {
    const [answer] = await rawExchange(stack.apiUrl, get(good, 'Connection: close\r\n'));
    expect(answer?.status).to.equal(200);
  });

  describe('requests with Expect: 100-continue', () => {
    it('answers Expect: 100-continue with 100 Continue, and then with the response', async () => {
      const connection = await connectTo(stack.apiUrl);
      connection.send(head('Content-Length: 2\r\nExpect: 100-continue\r\n'));
      await eventually(() => expect(connection.received).to.equal('HTTP/1.1 100 Continue\r\n\r\n'));
      const [answer] = await connection.send('{}').answered(1);
      expect(answer?.status).to.equal(TAKEN);
      expect((await connection.send(get(good)).answered(2))[1]?.status).to.equal(200);
    });

    for (const [why, path, headers, status] of [
      ['its path does not exist', '/nothing', 'Content-Length: 2\r\n', 404],
      ['its body is too large', post, `Content-Length: ${BODY_LIMIT + 1}\r\n`, 413],
    ] as const) {
      it(`rejects a request without 100 Continue when ${why}`, async () => {
        const connection = await connectTo(stack.apiUrl);
        const answers = await connection.send(head(`${headers}Expect: 100-continue\r\n`, path)).ended();
        expect(answers.map((answer) => answer.status)).to.deep.equal([status]);
        expect(connection.received).to.not.include('100 Continue');
        expect(answers[0]?.headers).to.include({ connection: 'close' });
      });
    }

    it('sends no 100 Continue in HTTP/1.0', async () => {
      const connection = await connectTo(stack.apiUrl);
      connection.send(head('Content-Length: 2\r\nExpect: 100-continue\r\n').replace('HTTP/1.1', 'HTTP/1.0'));
      const answers = await connection.send('{}').ended();
      expect(answers.map(({ status }) => status)).to.deep.equal([TAKEN]);
      expect(connection.received).to.not.include('100 Continue');
    });
  });

  describe('requests with a body that is too large', () => {
    for (const [how, headers, piece] of [
      ['by its length', `Content-Length: ${20 * BODY_LIMIT}\r\n`, 'x'.repeat(BODY_LIMIT)],
      [
        'by its chunks',
        'Transfer-Encoding: chunked\r\n',
        `${BODY_LIMIT.toString(16)}\r\n${'x'.repeat(BODY_LIMIT)}\r\n`,
      ],
    ] as const) {
      it(`answers 413 to a body that is too large ${how} while the client still sends`, async () => {
        const connection = await connectTo(stack.apiUrl);
        const failures: Error[] = [];
        connection.socket.on('error', (error) => failures.push(error));
        connection.send(head(headers));
        for (let count = 0; count < 20; count++) {
          connection.send(piece);
          await eventually(() => expect(connection.socket.writableLength).to.equal(0));
        }
        if (headers.startsWith('Transfer')) connection.send('0\r\n\r\n');
        const answers = await connection.ended();
        expect(failures).to.deep.equal([]);
        expect(answers.map(({ status }) => status)).to.deep.equal([413]);
        expect(answers[0]?.headers).to.include({ connection: 'close' });
        expect(JSON.parse(answers[0]?.body ?? ''))
          .to.have.property('error')
          .that.includes(`${BODY_LIMIT}`);
      });
    }
  });

  describe('several requests in one write', () => {
    it('answers several requests in one write in their order', async () => {
      const ids = Array.from({ length: 50 }, (_, number) => `pipelined-${number}`);
      const connection = await connectTo(stack.apiUrl);
      connection.send(
        ids.map((id, at) => get(at % 10 === 0 ? slow : good, `X-Request-Id: ${id}\r\n`)).join(''),
      );
      const answers = await connection.answered(50);
      expect(answers.map(({ headers }) => headers['x-request-id'])).to.deep.equal(ids);
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
    });

    it('answers several requests in one write up to the one that cannot be read', async () => {
      const connection = await connectTo(stack.apiUrl);
      const bad = head('Transfer-Encoding: chunked\r\nContent-Length: 3\r\n');
      const answers = await connection.send(get(slow) + get(good) + bad + get(good)).ended();
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 400]);
    });

    it('answers several requests in one write up to the one that is refused', async () => {
      const connection = await connectTo(stack.apiUrl);
      const bad = head('Transfer-Encoding: gzip, chunked\r\n');
      const answers = await connection.send(`${get(slow) + bad}0\r\n\r\n${get(good)}`).ended();
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 400]);
    });

    it('answers several requests in one write up to a CONNECT', async () => {
      const connection = await connectTo(stack.apiUrl);
      const tunnel = `CONNECT other:443 HTTP/1.1\r\n${HOST}\r\n`;
      const answers = await connection.send(get(slow) + tunnel + get(good)).ended();
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 405]);
    });

    it('answers several requests in one write up to the one with Connection: close', async () => {
      const connection = await connectTo(stack.apiUrl);
      const answers = await connection.send(get(slow, 'Connection: close\r\n') + get(good)).ended();
      expect(answers.map(({ status }) => status)).to.deep.equal([200]);
    });

    it('answers a request behind a rejected one with a complete body', async () => {
      const connection = await connectTo(stack.apiUrl);
      connection.send(`${head('Content-Length: 5\r\n', '/nothing')}hello${get(good)}`);
      const answers = await connection.answered(2);
      expect(answers.map(({ status }) => status)).to.deep.equal([404, 200]);
    });
  });

  it('answers 400 to a client that closes its sending side in the middle of a body', async () => {
    const connection = await connectTo(stack.apiUrl);
    connection.send(`${head('Content-Length: 100\r\n')}{"na`);
    connection.socket.end();
    const answers = await connection.ended();
    expect(answers.map(({ status }) => status)).to.deep.equal([400]);
    expect(answers[0]?.headers).to.have.property('x-request-id');
  });

  it('answers clients that close their sending side after the request', async () => {
    for (const path of [good, slow]) {
      const connection = await connectTo(stack.apiUrl);
      connection.send(get(path)).socket.end();
      expect((await connection.ended()).map(({ status }) => status)).to.deep.equal([200]);
    }
  });

  it('keeps connections of HTTP/1.0 open only on request', async () => {
    const old = (headers: string) => `GET ${good} HTTP/1.0\r\n${HOST}${headers}\r\n`;
    const once = await connectTo(stack.apiUrl);
    expect(await once.send(old('')).ended()).to.have.length(1);
    const kept = await connectTo(stack.apiUrl);
    const [first] = await kept.send(old('Connection: keep-alive\r\n')).answered(1);
    expect(first?.headers).to.include({ connection: 'keep-alive' });
    expect(await kept.send(old('')).ended()).to.have.length(2);
  });

  it('survives connections that are aborted at any point', async () => {
    for (const bytes of [
      'GE',
      `GET ${good} HTTP/1.1\r\n${HOST}X-Cut: `,
      head('Content-Length: 100\r\n'),
      `${head('Content-Length: 100\r\n')}{"name`,
      `${head('Transfer-Encoding: chunked\r\n')}5\r\n{"n`,
      get(slow),
      get(slow).repeat(20),
    ]) {
      for (const close of ['destroy', 'resetAndDestroy'] as const) {
        const connection = await connectTo(stack.apiUrl);
        connection.send(bytes);
        await eventually(() => expect(connection.socket.writableLength).to.equal(0));
        connection.socket[close]();
      }
    }
  });

  it('releases connections with aborted compressed uploads', async () => {
    const web = stack.processes.get('web');
    const logged = (id: string) =>
      web?.logged.lines.filter((line) => line['request_id'] === id && line.msg === 'request') ?? [];
    const packed = gzipSync(JSON.stringify({ name: 'x'.repeat(1_000) }));
    for (const path of ['/api/domains', '/api/import/openapi']) {
      const id = `broken-off${path}`;
      const connection = await connectTo(stack.apiUrl);
      connection.send(
        `POST ${path} HTTP/1.1\r\n${HOST}${JSON_TYPE}X-Request-Id: ${id}\r\nContent-Encoding: gzip\r\n` +
          `Content-Length: ${packed.length}\r\n\r\n${packed.subarray(0, 15).toString('latin1')}`,
      );
      await eventually(() => expect(connection.socket.writableLength).to.equal(0));
      connection.socket.resetAndDestroy();
      await eventually(() => expect(logged(id)).to.have.length(1));
    }
  });

  it('leaves no file of aborted file uploads', async () => {
    const connection = await connectTo(stack.apiUrl);
    connection.send(
      `POST /api/minio/objects HTTP/1.1\r\n${HOST}Content-Type: multipart/form-data; boundary=b\r\n` +
        'Content-Length: 90000\r\n\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' +
        'x'.repeat(20_000),
    );
    const files = async () => {
      const all = await readdir(join(stack.dataDir, 'uploads'), { recursive: true, withFileTypes: true });
      return all.filter((entry) => entry.isFile());
    };
    await eventually(async () => expect(await files()).to.have.length(1));
    connection.socket.resetAndDestroy();
    await eventually(async () => expect(await files()).to.deep.equal([]));
  });

  it('answers several requests in one write to the gateway in their order', async () => {
    const ids = Array.from({ length: 50 }, (_, number) => `pipelined-${number}`);
    const connection = await connectTo(stack.gatewayUrl);
    connection.send(ids.map((id) => get('/any', `X-Request-Id: ${id}\r\n`)).join(''));
    const answers = await connection.answered(50);
    expect(answers.map(({ headers }) => headers['x-request-id'])).to.deep.equal(ids);
  });
});
