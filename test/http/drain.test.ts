/** How an HTTP server ends: what becomes of connections that are open when it does. */
import { once } from 'node:events';
import { Agent, createServer, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { expect } from 'chai';
import { drain } from '../../src/http/drain.js';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { freePort } from '../support/ports.js';

describe('the end of an HTTP server', () => {
  let server: Server;
  let url: string;
  /** Requests that are answered later. */
  let waiting: ServerResponse[];
  beforeEach(async () => {
    waiting = [];
    server = createServer({ connectionsCheckingInterval: 200 }, (request, response) => {
      if (request.url === '/later') waiting.push(response);
      else response.end('at once');
    });
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  });

  async function expectRefused(): Promise<void> {
    const code = await call(`${url}/`).then(
      () => undefined,
      (error: { code: string }) => error.code,
    );
    expect(code).to.equal('ECONNREFUSED');
  }

  it('answers requests on open connections of a server that ends, and closes them with the response', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await call(`${url}/`, { agent })).headers.connection).to.equal('keep-alive');
    const ended = drain(server, 60_000);
    const answer = await call(`${url}/`, { agent });
    expect(answer).to.include({ status: 200, text: 'at once' });
    expect(answer.headers.connection).to.equal('close');
    await ended;
    agent.destroy();
  });

  it('accepts no new connections of a server that ends', async () => {
    const agent = new Agent({ keepAlive: true });
    await call(`${url}/`, { agent });
    const ended = drain(server, 60_000);
    await expectRefused();
    await ended;
    agent.destroy();
  });

  it('waits for active requests of a server that ends', async () => {
    const answer = call(`${url}/later`);
    await eventually(() => expect(waiting).to.have.length(1));
    let isOver = false;
    const ended = drain(server, 60_000).then(() => {
      isOver = true;
    });
    await expectRefused();
    expect(isOver).to.equal(false);
    waiting[0]?.end('in the end');
    expect((await answer).text).to.equal('in the end');
    await ended;
  });

  it('closes connections of a server that ends when they are idle or had no request', async () => {
    const agent = new Agent({ keepAlive: true });
    await call(`${url}/`, { agent });
    const unused = connect(Number(new URL(url).port), '127.0.0.1');
    await once(unused, 'connect');
    unused.resume();
    await Promise.all([drain(server, 60_000), once(unused, 'close')]);
    agent.destroy();
  });

  it('aborts requests of a server that ends when they take longer than the limit', async () => {
    const answer = call(`${url}/later`).then(
      () => 'answered',
      () => 'aborted',
    );
    await eventually(() => expect(waiting).to.have.length(1));
    await drain(server, 10);
    expect(await answer).to.equal('aborted');
  });
});
