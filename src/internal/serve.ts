/** Serves other processes of this product over HTTP, on a Unix socket for this machine and on a port for others. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import { hostname } from 'node:os';
import pTimeout from 'p-timeout';
import { listenOnSocket } from './listen.js';

/** Where others of this product reach a process. */
export interface InternalAddress {
  /** Path of a Unix socket. */
  readonly socket: string;
  readonly host: string;
  /** Undefined: for this machine only. */
  readonly port: number | undefined;
}

/**
 * Serves until the returned function is called, which waits for the requests in progress.
 * @param create makes a server that does not listen yet
 */
export async function serveInternally(
  create: () => Server,
  { socket, host, port }: InternalAddress,
): Promise<() => Promise<void>> {
  const local = create();
  await listenOnSocket(local, socket);
  const servers = [local];
  if (port !== undefined) {
    const remote = create();
    await new Promise<void>((resolve, reject) => {
      remote.once('error', reject);
      remote.listen(port, host, () => {
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

/** What other processes read of a node to reach it. */
export function reachableAt({ socket, host, port }: InternalAddress): { socket: string; url?: string } {
  if (port === undefined) return { socket };
  const isWildcard = ['0.0.0.0', '::'].includes(host);
  const name = isWildcard ? hostname() : host.includes(':') ? `[${host}]` : host;
  return { socket, url: `http://${name}:${port}` };
}

/** Checks that requests carry one of these bearer tokens. */
export function bearerCheck(tokens: readonly string[]): (request: IncomingMessage) => boolean {
  const expected = tokens.map((token) => digest(`Bearer ${token}`));
  return ({ headers }) => {
    const given = digest(headers.authorization ?? '');
    // Digests have equal length, as the constant-time comparison requires.
    return expected.some((one) => timingSafeEqual(given, one));
  };
}

/** How long shutdown waits for requests in progress. */
const CLOSE_LIMIT_MS = 10_000;

async function closed(server: Server): Promise<void> {
  const close = new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
  await pTimeout(close, { milliseconds: CLOSE_LIMIT_MS, fallback: () => undefined });
  server.closeAllConnections();
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
