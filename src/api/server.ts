/** Serves the application over HTTP, with limits against slow and oversized requests, until it is told to stop. */
import { createServer } from 'node:http';
import type Koa from 'koa';
import type { Config } from '../config.js';
import type { ApiState } from './context.js';

export interface RunningServer {
  readonly url: string;
  /** Takes no new requests, and waits for those under way. */
  close(): Promise<void>;
}

/** Listens on HOST and PORT; port 0 takes any that is free. */
export async function serveApp(
  app: Koa<ApiState>,
  config: Pick<Config, 'HOST' | 'PORT'>,
): Promise<RunningServer> {
  const server = createServer(
    {
      // Longer than load balancers keep idle connections, so that they never send on one we have just closed.
      keepAliveTimeout: 75_000,
      headersTimeout: 20_000,
      // The time to receive a request; answering may take longer.
      requestTimeout: 120_000,
      maxHeaderSize: 16 * 1024,
    },
    app.callback(),
  );
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
