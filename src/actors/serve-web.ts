/** Serves the management API, on a Unix socket for this machine and on a port for other machines. */
import type { Server } from 'node:http';
import { hostname } from 'node:os';
import pTimeout from 'p-timeout';
import type { Config } from '../config.js';
import type { Log } from '../util/log.js';
import { listenOnSocket } from './listen.js';
import { type ActorHostView, createWebServer } from './web-server.js';

export interface WebListeners {
  readonly socket: string;
  /** Bearer tokens, of which every request has one. */
  readonly tokens: readonly string[];
  readonly log: Log;
}

/** Serves until the returned function is called, which waits for the requests in progress. */
export async function serveWeb(
  host: ActorHostView,
  { HOST, ACTOR_HOST_PORT }: Pick<Config, 'HOST' | 'ACTOR_HOST_PORT'>,
  { socket, tokens, log }: WebListeners,
): Promise<() => Promise<void>> {
  const local = createWebServer(host, { log, tokens });
  await listenOnSocket(local, socket);
  const servers = [local];
  if (ACTOR_HOST_PORT !== undefined) {
    const remote = createWebServer(host, { log, tokens });
    await new Promise<void>((resolve, reject) => {
      remote.once('error', reject);
      remote.listen(ACTOR_HOST_PORT, HOST, () => {
        remote.off('error', reject);
        resolve();
      });
    });
    servers.push(remote);
  }
  return async () => {
    await Promise.all(servers.map(closed));
  };
}

/** How long shutdown waits for transfers in progress. */
const TRANSFER_LIMIT_MS = 10_000;

/** The URL for other machines; undefined without a port. */
export function urlForOthers({
  HOST,
  ACTOR_HOST_PORT,
}: Pick<Config, 'HOST' | 'ACTOR_HOST_PORT'>): string | undefined {
  if (ACTOR_HOST_PORT === undefined) return undefined;
  const isWildcard = ['0.0.0.0', '::'].includes(HOST);
  const name = isWildcard ? hostname() : HOST.includes(':') ? `[${HOST}]` : HOST;
  return `http://${name}:${ACTOR_HOST_PORT}`;
}

async function closed(server: Server): Promise<void> {
  const close = new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
  await pTimeout(close, { milliseconds: TRANSFER_LIMIT_MS, fallback: () => undefined });
  server.closeAllConnections();
}
