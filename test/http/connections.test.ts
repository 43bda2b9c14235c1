/** What happens on one connection: several requests, bodies that stop or are too large, clients that leave. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { ANYTHING } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { type Stack, startStack } from '../support/processes.js';
import { connector, rawExchange } from '../support/raw-http.js';

const BODY_LIMIT = 100_000;
/** What the gateway may hold. */
const MEMORY_MB = 16;
/** Connections at a time. */
const BATCH = 48;
const HOST = 'Host: localhost\r\n';
const JSON_TYPE = 'Content-Type: application/json\r\n';

describe('connections', () => {
  let stack: Stack;
  const connectTo = connector();

  before(async () => {
    stack = await startStack({
      env: {
        GATEWAY_BODY_LIMIT_BYTES: String(BODY_LIMIT),
        API_BODY_LIMIT_BYTES: String(BODY_LIMIT),
        GATEWAY_MEMORY_MB: String(MEMORY_MB),
      },
    });
    await stack.deploy({ path: '/any', code: ANYTHING });
    await stack.deploy({ path: '/any', code: ANYTHING, method: 'POST' });
  });
  after(() => stack.close());

  for (const server of ['gateway', 'management API'] as const) {
    const isGateway = server === 'gateway';
    const url = () => (isGateway ? stack.gatewayUrl : stack.apiUrl);
    const good = isGateway ? '/any' : '/api/stats';
    const slow = isGateway ? '/any?do=sleep&ms=300' : '/metrics';
    const post = isGateway ? '/any' : '/api/domains';
    /** The management API has read the body, and misses fields in it. */
    const takenStatus = isGateway ? 200 : 400;
    const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
    const head = (headers: string, path = post) =>
      `POST ${path} HTTP/1.1\r\n${HOST}${JSON_TYPE}${headers}\r\n`;
    const expectAlive = async () => {
      const [answer] = await rawExchange(url(), get(good, 'Connection: close\r\n'));
      expect(answer?.status).to.equal(200);
    };

    describe(`of the ${server}`, () => {
      afterEach(expectAlive);

      describe('with Expect: 100-continue', () => {
        it('get 100 Continue, and then the response', async () => {
          const connection = await connectTo(url());
          connection.send(head('Content-Length: 2\r\nExpect: 100-continue\r\n'));
          await eventually(() => expect(connection.received).to.equal('HTTP/1.1 100 Continue\r\n\r\n'));
          const [answer] = await connection.send('{}').answered(1);
          expect(answer?.status).to.equal(takenStatus);
          expect((await connection.send(get(good)).answered(2))[1]?.status).to.equal(200);
        });

        for (const [why, path, headers, status] of [
          ['nothing is there', '/nothing', 'Content-Length: 2\r\n', 404],
          ['the body is too large', post, `Content-Length: ${BODY_LIMIT + 1}\r\n`, 413],
        ] as const) {
          it(`are rejected without 100 Continue when ${why}`, async () => {
            const connection = await connectTo(url());
            const answers = await connection.send(head(`${headers}Expect: 100-continue\r\n`, path)).ended();
            expect(answers.map((answer) => answer.status)).to.deep.equal([status]);
            expect(connection.received).to.not.include('100 Continue');
            expect(answers[0]?.headers).to.include({ connection: 'close' });
          });
        }

        it('get none in HTTP/1.0', async () => {
          const connection = await connectTo(url());
          connection.send(
            head('Content-Length: 2\r\nExpect: 100-continue\r\n').replace('HTTP/1.1', 'HTTP/1.0'),
          );
          const answers = await connection.send('{}').ended();
          expect(answers.map(({ status }) => status)).to.deep.equal([takenStatus]);
          expect(connection.received).to.not.include('100 Continue');
        });
      });

      describe('with a body that is too large', () => {
        for (const [how, headers, piece] of [
          ['as its length says', `Content-Length: ${20 * BODY_LIMIT}\r\n`, 'x'.repeat(BODY_LIMIT)],
          [
            'as its chunks add up',
            'Transfer-Encoding: chunked\r\n',
            `${BODY_LIMIT.toString(16)}\r\n${'x'.repeat(BODY_LIMIT)}\r\n`,
          ],
        ] as const) {
          it(`are answered while the client still sends, ${how}`, async () => {
            const connection = await connectTo(url());
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

      describe('with several requests in one write', () => {
        it('are answered in their order', async () => {
          const ids = Array.from({ length: 50 }, (_, number) => `pipelined-${number}`);
          const connection = await connectTo(url());
          connection.send(
            ids.map((id, at) => get(at % 10 === 0 ? slow : good, `X-Request-Id: ${id}\r\n`)).join(''),
          );
          const answers = await connection.answered(50);
          expect(answers.map(({ headers }) => headers['x-request-id'])).to.deep.equal(ids);
          expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
        });

        it('are answered up to the one that cannot be read', async () => {
          const connection = await connectTo(url());
          const bad = head('Transfer-Encoding: chunked\r\nContent-Length: 3\r\n');
          const answers = await connection.send(get(slow) + get(good) + bad + get(good)).ended();
          expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 400]);
        });

        it('are answered up to the one that is refused', async () => {
          const connection = await connectTo(url());
          const bad = head('Transfer-Encoding: gzip, chunked\r\n');
          const answers = await connection.send(`${get(slow) + bad}0\r\n\r\n${get(good)}`).ended();
          expect(answers.map(({ status }) => status)).to.deep.equal([200, 400]);
        });

        it('are answered up to a tunnel', async () => {
          const connection = await connectTo(url());
          const tunnel = `CONNECT other:443 HTTP/1.1\r\n${HOST}\r\n`;
          const answers = await connection.send(get(slow) + tunnel + get(good)).ended();
          expect(answers.map(({ status }) => status)).to.deep.equal([200, 405]);
        });

        it('are answered up to the one with Connection: close', async () => {
          const connection = await connectTo(url());
          const answers = await connection.send(get(slow, 'Connection: close\r\n') + get(good)).ended();
          expect(answers.map(({ status }) => status)).to.deep.equal([200]);
        });

        it('continue after a rejected request with a complete body', async () => {
          const connection = await connectTo(url());
          connection.send(`${head('Content-Length: 5\r\n', '/nothing')}hello${get(good)}`);
          const answers = await connection.answered(2);
          expect(answers.map(({ status }) => status)).to.deep.equal([404, 200]);
        });
      });

      it('that stop in the middle of a body, and end there, are answered with 400', async () => {
        const connection = await connectTo(url());
        connection.send(`${head('Content-Length: 100\r\n')}{"na`);
        connection.socket.end();
        const answers = await connection.ended();
        expect(answers.map(({ status }) => status)).to.deep.equal([400]);
        expect(answers[0]?.headers).to.have.property('x-request-id');
      });

      it('whose clients close their sending side are answered', async () => {
        for (const path of [good, slow]) {
          const connection = await connectTo(url());
          connection.send(get(path)).socket.end();
          expect((await connection.ended()).map(({ status }) => status)).to.deep.equal([200]);
        }
      });

      it('of HTTP/1.0 are kept open only on request', async () => {
        const old = (headers: string) => `GET ${good} HTTP/1.0\r\n${HOST}${headers}\r\n`;
        const once = await connectTo(url());
        expect(await once.send(old('')).ended()).to.have.length(1);
        const kept = await connectTo(url());
        const [first] = await kept.send(old('Connection: keep-alive\r\n')).answered(1);
        expect(first?.headers).to.include({ connection: 'keep-alive' });
        expect(await kept.send(old('')).ended()).to.have.length(2);
      });

      it('that are aborted at any point do no harm', async () => {
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
            const connection = await connectTo(url());
            connection.send(bytes);
            await eventually(() => expect(connection.socket.writableLength).to.equal(0));
            connection.socket[close]();
          }
        }
      });
    });
  }

  it('with aborted compressed uploads are released by the management API', async () => {
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

  it('with aborted file uploads leave no file', async () => {
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

  /** With a body that was sent back. */
  const answeredRequests = async () => {
    const { body } = await stack.api.get('/metrics');
    const counts = String(body).matchAll(/^edge_gateway_requests_total\{.*method="POST".*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  };

  it('on which responses are not read leak nothing in the gateway', async () => {
    const body = 'x'.repeat(BODY_LIMIT);
    const first = `GET /any?do=sleep&ms=500 HTTP/1.1\r\n${HOST}\r\n`;
    const second = `POST /any?do=echo HTTP/1.1\r\n${HOST}Content-Length: ${BODY_LIMIT}\r\n\r\n${body}`;
    // More than it may hold, all together: of each, the second answer waits for the first.
    const count = Math.ceil((2 * MEMORY_MB * 1024 * 1024) / BODY_LIMIT);
    for (let at = 0; at < count; at += BATCH) {
      const connections = await Promise.all(Array.from({ length: BATCH }, () => connectTo(stack.gatewayUrl)));
      for (const connection of connections) connection.send(first + second);
      await eventually(async () => expect(await answeredRequests()).to.be.at.least(at + BATCH));
      for (const { socket } of connections) socket.resetAndDestroy();
    }
    await eventually(async () => {
      const { body: metrics } = await stack.api.get('/metrics');
      expect(String(metrics)).to.match(/^edge_gateway_requests_in_flight 0$/m);
    });
    const url = `${stack.gatewayUrl}/any?do=echo`;
    for (let asked = 0; asked < 10; asked++)
      expect((await call(url, { method: 'POST', body })).status).to.equal(200);
  });

  it('pass text in headers to handlers as UTF-8 or Latin-1', async () => {
    const utf8 = Buffer.from('Grüße, 世界').toString('latin1');
    const [answer] = await rawExchange(
      stack.gatewayUrl,
      `GET /any HTTP/1.1\r\n${HOST}X-Utf8: ${utf8}\r\nX-Latin1: caf\xe9\r\nConnection: close\r\n\r\n`,
    );
    const { headers } = JSON.parse(Buffer.from(answer?.body ?? '', 'latin1').toString('utf8')) as {
      headers: Record<string, string>;
    };
    expect(headers).to.include({ 'x-utf8': 'Grüße, 世界', 'x-latin1': 'café' });
  });

  it('may have an empty line before a request, also in two pieces', async () => {
    const connection = await connectTo(stack.gatewayUrl);
    connection.send('\r');
    await delay(50);
    connection.send(`\nGET /any HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    expect((await connection.ended()).map(({ status }) => status)).to.deep.equal([200]);
  });

  it('with a target of absolute form show its host to handlers, also without a Host', async () => {
    const [answer] = await rawExchange(stack.gatewayUrl, 'GET http://seen.example/any HTTP/1.0\r\n\r\n');
    const seen = JSON.parse(answer?.body ?? '') as { headers: Record<string, string> };
    expect(seen.headers).to.include({ host: 'seen.example' });
  });

  it('with a target of absolute form show its host to handlers', async () => {
    const [answer] = await rawExchange(
      stack.gatewayUrl,
      `GET http://seen.example:8080/any?q=1 HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n`,
    );
    const seen = JSON.parse(answer?.body ?? '') as { headers: Record<string, string>; path: string };
    expect(seen.headers).to.include({ host: 'seen.example:8080' });
    expect(seen.path).to.equal('/any');
  });
});
