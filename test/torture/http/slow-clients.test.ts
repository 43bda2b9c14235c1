/** Clients that send or read too slowly, which would hold connections without a limit: one by one, and many at once. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import { execa } from 'execa';
import { startAuthority } from '../../support/authority.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { call } from '../../support/http.js';
import { freePort } from '../../support/ports.js';
import { type Stack, startStack } from '../../support/processes.js';
import { connector, type RawConnection } from '../../support/raw-http.js';
import { frame, KIND, RawHttp2 } from '../../support/raw-http2.js';
import { SECRET_KEY } from '../../support/test-services.js';

const HOST = 'Host: localhost\r\n';
/** How long `slowhttptest` may go on; the servers are done with it long before. */
const ATTACK_S = 12;

/** Answers GET with 6 MiB, and POST with how much it got. */
const SIZES = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    if req.is_method("POST") {
        Response::text(200, req.body_bytes().len().to_string())
    } else {
        Response::binary(200, vec![b'x'; 6 * 1024 * 1024], "application/octet-stream")
    }
}
handler_loop!(handle);
`;

describe('slow clients', function () {
  this.timeout(120_000);
  let stack: Stack;
  let tlsPort: number;
  const connectTo = connector();

  before(async () => {
    tlsPort = await freePort();
    stack = await startStack({
      env: {
        TLS_PORT: String(tlsPort),
        SECRET_KEY,
        HTTP_HEAD_TIMEOUT_MS: '1500',
        HTTP_IDLE_TIMEOUT_MS: '1500',
        HTTP_STALL_TIMEOUT_MS: '2000',
        GATEWAY_MEMORY_MB: '1024',
      },
    });
    await stack.deploy({ path: '/sizes', code: SIZES });
    await stack.deploy({ path: '/sizes', code: SIZES, method: 'POST' });
  });
  after(() => stack.close());

  /** Sends a piece every now and then until the server closes the connection. */
  const trickle = async (connection: RawConnection, piece: string) => {
    while (!connection.isEnded) {
      connection.send(piece);
      await delay(100);
    }
    return connection.answers;
  };

  for (const server of ['gateway', 'management API'] as const) {
    const isGateway = server === 'gateway';
    const url = () => (isGateway ? stack.gatewayUrl : stack.apiUrl);
    const get = isGateway ? '/sizes' : '/api/openapi.json';
    const post = isGateway ? '/sizes' : '/api/domains';
    const expectTimeout = (answers: RawConnection['answers']) => {
      expect(answers.map(({ status }) => status)).to.deep.equal([408]);
      expect(JSON.parse(answers[0]?.body ?? '')).to.include({ error: 'The request did not arrive in time.' });
      expect(answers[0]?.headers).to.have.property('x-request-id');
    };

    describe(`slow clients of the ${server}`, () => {
      it(`clients of the ${server} that send nothing get 408 and are disconnected`, async () => {
        expectTimeout(await (await connectTo(url())).ended());
      });

      it(`clients of the ${server} whose heads trickle in get 408 and are disconnected`, async () => {
        const connection = await connectTo(url());
        connection.send(`GET ${get} HTTP/1.1\r\n${HOST}X-Slow: `);
        expectTimeout(await trickle(connection, 'x'));
      });

      const body = `POST ${post} HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n`;

      it(`clients of the ${server} whose bodies stop get 408 and are disconnected`, async () => {
        const connection = await connectTo(url());
        expectTimeout(await connection.send(`${body}{"name": "`).ended());
      });

      it(`clients of the ${server} whose bodies trickle in get 408 and are disconnected`, async () => {
        const connection = await connectTo(url());
        connection.send(`${body}{"name": "`);
        expectTimeout(await trickle(connection, 'x'));
      });

      it(`clients of the ${server} whose bodies come fast enough are served, however long it takes`, async () => {
        const connection = await connectTo(url());
        connection.send(body);
        for (let sent = 0; sent < 60; sent++) {
          connection.send(sent === 0 ? '{"x":"'.padEnd(1_000, ' ') : ' '.repeat(1_000));
          await delay(75);
        }
        const [answer] = await connection.answered(1);
        expect(answer?.status).to.equal(isGateway ? 200 : 400);
        expect(answer?.body).to.include(isGateway ? '60000' : 'invalid_json');
      });

      it(`clients of the ${server} that leave a connection idle are disconnected`, async () => {
        const connection = await connectTo(url());
        connection.send(`HEAD ${get} HTTP/1.1\r\n${HOST}\r\n`);
        await connection.ended();
        expect(connection.received).to.match(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/);
      });
    });
  }

  it('clients whose next head stops behind a request get 408', async () => {
    const connection = await connectTo(stack.gatewayUrl);
    connection.send(`HEAD /sizes HTTP/1.1\r\n${HOST}\r\nGET /sizes HT`);
    await connection.ended();
    expect(connection.received).to.match(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nHTTP\/1\.1 408 /);
  });

  for (const [what, bytes] of [
    ['an empty line', '\r\n'],
    ['half of an empty line', '\r'],
  ]) {
    it(`clients that send ${what} behind a request are disconnected without a 408`, async () => {
      const connection = await connectTo(stack.gatewayUrl);
      connection.send(`HEAD /sizes HTTP/1.1\r\n${HOST}\r\n${bytes}`);
      await connection.ended();
      expect(connection.received)
        .to.match(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/)
        .and.not.include(' 408 ');
    });
  }

  it('clients whose uploads to the management API trickle in leave no file', async () => {
    const connection = await connectTo(stack.apiUrl);
    connection.send(
      `POST /api/minio/objects HTTP/1.1\r\n${HOST}Content-Type: multipart/form-data; boundary=b\r\n` +
        'Content-Length: 90000\r\n\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n',
    );
    const answers = await trickle(connection, 'x');
    expect(answers.map(({ status }) => status)).to.deep.equal([408]);
    await eventually(async () => {
      const all = await readdir(join(stack.dataDir, 'uploads'), { recursive: true, withFileTypes: true });
      expect(all.filter((entry) => entry.isFile())).to.deep.equal([]);
    });
  });

  /** Connections to the front, and all that the management API has open. */
  const held = async () => {
    const { body } = await stack.api.get('/metrics');
    return {
      front: Number(/^edge_gateway_connections (\d+)$/m.exec(String(body))?.[1]),
      webDescriptors: (await readdir(`/proc/${stack.processes.get('web')?.pid}/fd`)).length,
    };
  };

  it('clients that do not read their response are disconnected', async () => {
    const connection = await connectTo(stack.gatewayUrl);
    connection.socket.pause();
    connection.send(`GET /sizes HTTP/1.1\r\n${HOST}\r\n`.repeat(4));
    await eventually(async () => expect((await held()).front).to.equal(1));
    await eventually(async () => expect((await held()).front).to.equal(0));
    connection.socket.resume();
    await connection.ended();
    expect(connection.received.length).to.be.below(4 * 6 * 1024 * 1024);
  });

  it('clients that do not read their responses over HTTP/2 with TLS are disconnected', async () => {
    const host = 'slow.test';
    const authority = await startAuthority();
    try {
      const { id } = expectData<{ id: string }>(
        await stack.api.post('/api/domains', { name: host, host }),
        201,
      );
      expectData(await stack.api.put(`/api/domains/${id}/certificate`, await authority.issue([host])));
      const tls = { servername: host, ca: authority.root, ALPNProtocols: ['h2'] };
      // Streams and connection may send as much as HTTP/2 can say.
      const MOST = 2 ** 31 - 1;
      const window = Buffer.alloc(4);
      window.writeUInt32BE(MOST - 65_535);
      // As soon as the certificate is in force.
      const url = `https://127.0.0.1:${tlsPort}`;
      const connection = await eventually(() => RawHttp2.open(url, [[4, MOST]], tls));
      try {
        connection.socket.pause();
        connection.send(frame(KIND.windowUpdate, 0, 0, window));
        for (let sent = 0; sent < 8; sent++)
          connection.request([
            ...([
              [':method', 'GET'],
              [':scheme', 'https'],
              [':path', '/sizes'],
            ] as const),
            [':authority', 'localhost'],
          ]);
        await eventually(async () => expect((await held()).front).to.equal(1));
        await eventually(async () => expect((await held()).front).to.equal(0));
      } finally {
        connection.socket.destroy();
      }
    } finally {
      await authority.remove();
    }
  });

  it('slow clients of slowhttptest are all disconnected while others are served', async () => {
    const attacks = [
      [stack.gatewayUrl, '/sizes', '/sizes'],
      [stack.apiUrl, '/api/openapi.json', '/api/domains'],
    ].flatMap(([server, get, post]) => [
      ['-H', '-i', '1', '-u', `${server}${get}`],
      ['-B', '-i', '1', '-s', '60000', '-f', 'application/json', '-u', `${server}${post}`],
      ['-X', '-w', '10', '-y', '20', '-n', '1', '-z', '5', '-u', `${server}${get}`],
      ['-R', '-a', '1', '-b', '3000', '-u', `${server}${get}`],
    ]);
    const before = await held();
    let isOver = false;
    const others = (async () => {
      const statuses = new Set<number>();
      let count = 0;
      while (!isOver) {
        statuses.add((await call(`${stack.gatewayUrl}/sizes`, { method: 'POST', body: 'x' })).status);
        statuses.add((await call(`${stack.apiUrl}/api/stats`)).status);
        count++;
      }
      return { statuses: [...statuses], count };
    })();
    const reports = await Promise.all(attacks.map(attack));
    // What they still hold open on their side, the servers have closed.
    const { webDescriptors, front } = await held();
    expect(front).to.be.below(10);
    expect(webDescriptors).to.be.below(before.webDescriptors + 20);
    isOver = true;
    for (const [at, report] of reports.entries()) {
      const args = attacks[at] ?? [];
      const what = `${args.join(' ')}: ${report}`;
      expect(report, what).to.match(/service available:\s+YES/);
      expect(report, what).to.not.match(/service available:\s+NO/);
      // A slow reader does not notice before it has read what its own system holds for it.
      if (args[0] !== '-X') expect(report, what).to.match(/Exit status: No open connections left/);
    }
    const { statuses, count } = await others;
    expect(statuses).to.deep.equal([200]);
    expect(count).to.be.above(10);
  });
});

/** Runs it with forty connections; resolves with what it prints, without its colours. */
async function attack(args: readonly string[]): Promise<string> {
  const common = ['-c', '40', '-r', '40', '-l', String(ATTACK_S), '-p', '5'];
  const { all, exitCode } = await execa('slowhttptest', [...common, ...args], { all: true, reject: false });
  return `${stripVTControlCharacters(all)}\nexit code ${exitCode}`;
}
