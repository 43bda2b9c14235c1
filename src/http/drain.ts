/** Shuts an HTTP server down without losing requests. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';

/**
 * An idle connection is closed after this. A client that keeps connections open, such as a load balancer, may be
 * sending a request while the server closes one, and cannot know whether it was handled. So connections in use are
 * closed by a response with `Connection: close`, and only idle ones without.
 */
const IDLE_MS = 2_000;

/**
 * Accepts no new connections, and answers requests on open ones with `Connection: close`. Resolves when all are closed.
 * @param limitMs after this, connections are closed even with requests under way
 */
export async function drain<
  Request extends typeof IncomingMessage,
  Response extends typeof ServerResponse<InstanceType<Request>>,
>(server: Server<Request, Response>, limitMs: number): Promise<void> {
  for (const event of ['request', 'checkContinue', 'checkExpectation'] as const) {
    // Without a listener Node handles the event itself; adding one would change that.
    if (server.listenerCount(event) === 0) continue;
    server.prependListener(event, (_request, response) => {
      response.shouldKeepAlive = false;
    });
  }
  server.keepAliveTimeout = IDLE_MS;
  // Connections without a request so far are closed after the same time.
  server.headersTimeout = IDLE_MS;
  const closed = new Promise<void>((resolve) => {
    // The HTTP server's own `close` would close idle connections at once.
    NetServer.prototype.close.call(server, () => resolve());
  });
  const idle = setTimeout(() => server.closeIdleConnections(), IDLE_MS);
  const limit = setTimeout(() => server.closeAllConnections(), limitMs);
  await closed;
  clearTimeout(idle);
  clearTimeout(limit);
  // Stops Node's timer for slow requests.
  server.close();
}
