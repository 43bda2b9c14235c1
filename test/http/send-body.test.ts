/** Large bodies go out whole, and let others have their turn. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { sendBody } from '../../src/http/send-body.js';

const BODY = randomBytes(9_999_999);

describe('bodies in chunks', () => {
  let server: Server;
  let closed = 0;
  /** Turns of the event loop while bodies are being sent. */
  let turns = 0;
  before(async () => {
    server = createServer((_, response) => {
      response.setHeader('Content-Length', BODY.length);
      sendBody(response, BODY);
      const count = () => {
        turns++;
        if (!response.writableEnded && !response.destroyed) setImmediate(count);
      };
      setImmediate(count);
      response.once('close', () => {
        closed++;
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  beforeEach(() => {
    closed = 0;
    turns = 0;
  });
  after(async () => {
    server.closeAllConnections();
    await once(server.close(), 'close');
  });
  const options = (more = {}) => ({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    agent: false as const,
    ...more,
  });

  it('arrive unchanged, with other tasks in between', async () => {
    const [response] = (await once(get(options()), 'response')) as [IncomingMessage];
    expect((await buffer(response)).equals(BODY)).to.equal(true);
    expect(turns).to.be.above(50);
  });

  it('are left out for HEAD', async () => {
    const asked = request(options({ method: 'HEAD' })).end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    expect(response.headers['content-length']).to.equal(String(BODY.length));
    expect(await buffer(response)).to.have.length(0);
  });

  it('end when the client disconnects in the middle', async () => {
    const [response] = (await once(get(options()), 'response')) as [IncomingMessage];
    await once(response, 'data');
    response.destroy();
    while (closed === 0) await new Promise((resolve) => setImmediate(resolve));
    const [again] = (await once(get(options()), 'response')) as [IncomingMessage];
    expect((await buffer(again)).length).to.equal(BODY.length);
  });
});
