/** Serves the application over HTTP, with limits against slow and oversized requests, until it is told to stop. */
import { createServer } from 'node:http';
import type Koa from 'koa';
import { answerClientError } from '../client-errors.js';
import type { Config } from '../config.js';
import type { Logger } from '../log.js';
import type { ApiState } from './context.js';
import { wrapFailure } from './envelope.js';

const MAX_HEADER_BYTES = 16 * 1024;

export interface RunningServer {
  readonly url: string;
  /** Takes no new requests, and waits for those under way. */
  close(): Promise<void>;
}

/** Listens on HOST and PORT; port 0 takes any that is free. */
export async function serveApp(
  app: Koa<ApiState>,
  config: Pick<Config, 'HOST' | 'PORT'>,
  log: Logger,
): Promise<RunningServer> {
  const server = createServer(
    {
      // Longer than load balancers keep idle connections, so that they never send on one we have just closed.
      keepAliveTimeout: 75_000,
      headersTimeout: 20_000,
      // The time to receive a request, an upload of gigabytes over a slow line included; answering may take longer.
      requestTimeout: 3_600_000,
      maxHeaderSize: MAX_HEADER_BYTES,
      // Looked at by the application, so that the answer is in its envelope.
      requireHostHeader: false,
    },
    app.callback(),
  );
  server.on('clientError', (cause, socket) => {
    const answered = answerClientError(cause, socket, MAX_HEADER_BYTES, (error) => wrapFailure('ok', error));
    if (!answered) return;
    const { error, requestId } = answered;
    log.info({ request_id: requestId, status: error.status, err: cause }, 'not a request');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.PORT, config.HOST, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('A TCP server has no port');
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return {
    url: `http://${host}:${address.port}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeIdleConnections();
      }),
  };
}
