/** The Unix socket on which handlers call services. */
import { chmod } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { LineQuota } from '../line-quota.js';
import type { Logger } from '../log.js';
import { ConnectionLimits, type ConnectionNumbers } from './connection-limits.js';
import {
  HandlerSession,
  type SessionHost,
  type SessionLimits,
  type SessionServer,
} from './handler-session.js';
import { listenOnSocket } from './listen.js';

/** Of what handlers do wrong in a second, no more lines than this are logged: they must not fill the disk. */
const MAX_WARNINGS_PER_SECOND = 20;

/** A running server. */
export interface HandlerServer {
  /** Takes no more connections. Those there are go on. */
  stopListening(): void;
  /** Closes the connections that are left. */
  closeConnections(): void;
}

/**
 * Serves handlers until it is stopped.
 * @throws Error when another actor host serves this socket
 */
export async function serveHandlers(
  path: string,
  host: SessionHost,
  limits: SessionLimits,
  numbers: ConnectionNumbers,
  log: Logger,
): Promise<HandlerServer> {
  const sessions = new Set<HandlerSession>();
  const shared: SessionServer = {
    host,
    limits,
    connections: new ConnectionLimits(numbers),
    quota: new LineQuota(MAX_WARNINGS_PER_SECOND, (dropped) =>
      log.warn({ dropped }, 'handlers do more that is wrong than is logged'),
    ),
    log,
  };
  const server = createServer((socket: Socket) => {
    const session = new HandlerSession(socket, shared);
    sessions.add(session);
    socket.once('close', () => sessions.delete(session));
  });
  await listenOnSocket(server, path);
  // Handlers in a sandbox run as users of their own; what they may do, their token says.
  await chmod(path, 0o666);
  return {
    stopListening: () => {
      server.close();
    },
    closeConnections: () => {
      for (const session of sessions) session.close();
      shared.quota.reportDropped();
    },
  };
}
