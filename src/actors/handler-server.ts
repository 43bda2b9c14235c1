/** The Unix socket on which handlers call services. */
import { rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import pTimeout from 'p-timeout';
import { listenOnSocket } from '../internal/listen.js';
import type { Log } from '../util/log.js';
import { LogRateLimiter } from '../util/log-rate-limiter.js';
import { PeriodicTask } from '../util/periodic-task.js';
import { ConnectionLimits, type ConnectionMaximums } from './connection-limits.js';
import { HandlerSession } from './handler-session.js';
import type { CallLimits, SessionHost, SessionServer } from './session-host.js';

/** Warnings about handlers that are logged per second, at most: untrusted code must not fill the disk. */
const MAX_WARNINGS_PER_SECOND = 20;

/** Interval for closing connections whose handler process has ended. */
const EXPIRE_EVERY_MS = 2_000;
/** How long a call can be on its way. */
const GOODBYE_MS = 100;
/** How long handlers may take to read their last answers. */
const FLUSH_LIMIT_MS = 1_000;

/** A running server. */
export interface HandlerServer {
  /** Asks handlers to leave; resolves when they have closed all connections. */
  retire(): Promise<void>;
  /** Stops accepting connections. Existing ones stay open. */
  stopListening(): void;
  /** Closes the remaining connections; resolves when answers have been sent, or after a while. */
  closeConnections(): Promise<void>;
}

/**
 * Serves handlers until it is stopped.
 * @throws Error when another actor host serves this socket
 */
export async function serveHandlers(
  path: string,
  host: SessionHost,
  limits: CallLimits,
  maximums: ConnectionMaximums,
  log: Log,
): Promise<HandlerServer> {
  const sessions = new Set<HandlerSession>();
  const shared: SessionServer = {
    host,
    limits,
    connections: new ConnectionLimits(maximums),
    warningLimiter: new LogRateLimiter(MAX_WARNINGS_PER_SECOND, (dropped) =>
      log.warn({ dropped }, 'handlers do more that is wrong than is logged'),
    ),
    isRetiring: false,
    log,
  };
  const server = createServer((socket: Socket) => {
    const session = new HandlerSession(socket, shared);
    sessions.add(session);
    socket.once('close', () => sessions.delete(session));
  });
  // Others than the process itself may have used its token.
  const expiring = new PeriodicTask(
    EXPIRE_EVERY_MS,
    async () => {
      // Looked at first: the file of a nonce that is valid now was made before.
      const held = [...sessions].map((session) => ({ session, nonce: session.nonce }));
      if (held.length === 0) return;
      const valid = await host.validNonces();
      for (const { session, nonce } of held) if (nonce !== undefined && !valid.has(nonce)) session.drop();
    },
    (error) => log.warn({ err: error }, 'connections of ended handlers could not be looked for'),
  );
  const allClosed = () => Promise.all([...sessions].map((session) => session.closed));
  // Handlers in a sandbox run as other users, and may connect; they are authorised by their token.
  await listenOnSocket(server, path);
  /** Asks handlers to leave. */
  const sendRetireNotices = async () => {
    await rm(path, { force: true });
    shared.isRetiring = true;
    for (const session of sessions) session.retire();
  };
  return {
    retire: async () => {
      await sendRetireNotices();
      // Connections that wait to be accepted come in the next turn of the event loop.
      do {
        await allClosed();
        await setImmediate();
      } while (sessions.size > 0);
      await expiring.stop();
      server.close();
    },
    stopListening: () => {
      server.close();
    },
    closeConnections: async () => {
      await sendRetireNotices();
      // Calls may be on their way, and have to be answered.
      if (sessions.size > 0) await delay(GOODBYE_MS);
      for (const session of sessions) session.close();
      shared.warningLimiter.reportDropped();
      await expiring.stop();
      await pTimeout(allClosed(), { milliseconds: FLUSH_LIMIT_MS, fallback: () => undefined });
    },
  };
}
