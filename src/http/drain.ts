/** The end of an HTTP server that loses no request, as far as that lies with the server. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';

/**
 * A connection on which nothing happens is closed after this. Whoever keeps connections to us, a load balancer say, may
 * be sending a request on one while we close it, and cannot know whether that was carried out: so those in use are
 * closed by an answer that says so, and only those that nobody has used for a while without a word.
 */
const IDLE_MS = 2_000;

/**
 * Takes no new connections and answers what comes on those that are open, saying that they close. Resolves when all
 * have.
 * @param limitMs after this, connections are broken off, milliseconds
 */
export async function drain<
  Request extends typeof IncomingMessage,
  Response extends typeof ServerResponse<InstanceType<Request>>,
>(server: Server<Request, Response>, limitMs: number): Promise<void> {
  for (const event of ['request', 'checkContinue', 'checkExpectation'] as const) {
    // Node acts in the place of listeners that are not there.
    if (server.listenerCount(event) === 0) continue;
    server.prependListener(event, (_request, response) => {
      response.shouldKeepAlive = false;
    });
  }
  server.keepAliveTimeout = IDLE_MS;
  // Connections that were opened ahead of a request that may never come.
  server.headersTimeout = IDLE_MS;
  const closed = new Promise<void>((resolve) => {
    // Not that of the HTTP server, which would close idle connections at once.
    NetServer.prototype.close.call(server, () => resolve());
  });
  const idle = setTimeout(() => server.closeIdleConnections(), IDLE_MS);
  const limit = setTimeout(() => server.closeAllConnections(), limitMs);
  await closed;
  clearTimeout(idle);
  clearTimeout(limit);
  // Ends the looking for slow requests.
  server.close();
}
