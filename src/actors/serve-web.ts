/** Where the management API reaches the actor host: a Unix socket on this machine, and a port for other machines. */
import type { Server } from 'node:http';
import { hostname } from 'node:os';
import type { Config } from '../config.js';
import type { Logger } from '../log.js';
import { withinTime } from '../within-time.js';
import { listenOnSocket } from './listen.js';
import { type ActorHostView, createWebServer } from './web-server.js';

export interface WebListeners {
  readonly socket: string;
  /** What requests have to carry. */
  readonly token: string;
  readonly log: Logger;
}

/** Serves the management API until the returned function is called, which waits for the requests under way. */
export async function serveWeb(
  host: ActorHostView,
  { HOST, ACTOR_HOST_PORT }: Pick<Config, 'HOST' | 'ACTOR_HOST_PORT'>,
  { socket, token, log }: WebListeners,
): Promise<() => Promise<void>> {
  const local = createWebServer(host, { log, token });
  await listenOnSocket(local, socket);
  const servers = [local];
  if (ACTOR_HOST_PORT !== undefined) {
    const remote = createWebServer(host, { log, token });
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

/** Transfers under way get this long to finish when the process ends. */
const TRANSFER_LIMIT_MS = 10_000;

/** Where processes of other machines find it; undefined when they cannot. */
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
  await withinTime(close, TRANSFER_LIMIT_MS);
  server.closeAllConnections();
}
