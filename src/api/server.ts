/** Serves the application over HTTP, with limits for slow and oversized requests. */
import type Koa from 'koa';
import type { Config } from '../config.js';
import { drain } from '../http/drain.js';
import { createHttpServer, type ServerConfig } from '../http/server.js';
import type { Logger } from '../util/log.js';
import { wrapFailure } from './response/envelope.js';
import type { ApiState } from './route/context.js';

/** Time to receive a request, including an upload of gigabytes over a slow connection. */
const REQUEST_TIMEOUT_MS = 3_600_000;
/** Connections that the kernel keeps until they are accepted. Of a burst beyond that, it drops or resets some. */
const BACKLOG = 4096;
const METHODS = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'];

/** Requests that wait for builds or imports are answered earlier; uploads and downloads are aborted after this. */
const DRAIN_LIMIT_MS = 30_000;

export interface RunningServer {
  readonly url: string;
  /** Stops accepting requests and waits for those in progress. */
  close(): Promise<void>;
}

/** Listens on HOST and PORT; port 0 selects a free one. */
export async function serveApp(
  app: Koa<ApiState>,
  config: Pick<Config, 'HOST' | 'PORT' | 'API_CONNECTIONS_LIMIT'> & ServerConfig,
  log: Logger,
): Promise<RunningServer> {
  const serve = app.callback();
  const server = createHttpServer(
    {
      config,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      connectionsLimit: config.API_CONNECTIONS_LIMIT,
      methods: METHODS,
      // The envelope with all members, because the route is unknown.
      present: (error) => wrapFailure('success', error),
      refused: (error, request_id, cause) =>
        log.info({ request_id, status: error.status, code: error.code, err: cause }, 'request rejected'),
    },
    (request, response, { isAbsolute, authority, target, hasBody }) => {
      if (isAbsolute) {
        request.url = target;
        request.headers.host = authority;
      }
      // By then Node has read a small body that came with the head, so the connection can stay open after an error.
      if (hasBody) setImmediate(() => void serve(request, response));
      else void serve(request, response);
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: config.PORT, host: config.HOST, backlog: BACKLOG }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('A TCP server has no port');
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return {
    url: `http://${host}:${address.port}`,
    close: () => drain(server, DRAIN_LIMIT_MS),
  };
}
