/** Serves the application over HTTP, with limits against slow and oversized requests, until it is told to stop. */
import type Koa from 'koa';
import type { Config } from '../config.js';
import { drain } from '../http/drain.js';
import { createHttpServer, type ServerConfig } from '../http/server.js';
import type { Logger } from '../log.js';
import type { ApiState } from './context.js';
import { wrapFailure } from './envelope.js';

/** An upload of gigabytes over a slow line included; answering may take longer. */
const REQUEST_TIMEOUT_MS = 3_600_000;
const METHODS = ['DELETE', 'GET', 'HEAD', 'POST', 'PUT'];

/** Those who wait for long work are answered earlier than this; uploads and downloads may take longer. */
const DRAIN_LIMIT_MS = 30_000;

export interface RunningServer {
  readonly url: string;
  /** Takes no new requests, and waits for those under way. */
  close(): Promise<void>;
}

/** Listens on HOST and PORT; port 0 takes any that is free. */
export async function serveApp(
  app: Koa<ApiState>,
  config: Pick<Config, 'HOST' | 'PORT' | 'API_KEY' | 'API_CONNECTIONS_LIMIT'> & ServerConfig,
  log: Logger,
): Promise<RunningServer> {
  const serve = app.callback();
  const server = createHttpServer(
    {
      config,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      connectionsLimit: config.API_CONNECTIONS_LIMIT,
      methods: METHODS,
      // The envelope with all its members: which route it would have been is not known.
      present: (error) => wrapFailure('success', error),
      refused: (error, request_id, cause) =>
        log.info({ request_id, status: error.status, code: error.code, err: cause }, 'request not taken'),
    },
    (request, response, { isAbsolute, authority, target, hasBody }) => {
      if (isAbsolute) {
        request.url = target;
        request.headers.host = authority;
      }
      // A small body has come with its head, and has been read by then: the connection survives a refusal.
      if (hasBody) setImmediate(() => void serve(request, response));
      else void serve(request, response);
    },
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
  if (config.API_KEY === undefined && !isLoopback(address.address)) {
    log.warn(
      { address: address.address },
      'the management API is open to everybody who can reach this address, and so is what handlers can do; set API_KEY',
    );
  }
  return {
    url: `http://${host}:${address.port}`,
    close: () => drain(server, DRAIN_LIMIT_MS),
  };
}

/** Whether only this machine can reach an address it listens on. */
function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}
