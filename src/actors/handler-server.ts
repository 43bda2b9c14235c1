/** The Unix socket on which handlers call services. */
import { chmod } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import type { Logger } from '../log.js';
import { HandlerSession, type SessionHost, type SessionLimits } from './handler-session.js';
import { listenOnSocket } from './listen.js';

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
  log: Logger,
): Promise<HandlerServer> {
  const sessions = new Set<HandlerSession>();
  const server = createServer((socket: Socket) => {
    const session = new HandlerSession(socket, host, limits, log);
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
    },
  };
}
