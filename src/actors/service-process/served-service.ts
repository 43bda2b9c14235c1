/**
 * A service within its process: its actor, the sockets on which handlers and the actor host reach it, and its figures.
 */

import type { Server } from 'node:http';
import { listenOnSocket } from '../../internal/listen.js';
import { readServiceToken, validNonces } from '../../secrets/service-token.js';
import type { Log } from '../../util/log.js';
import { MemoryBudget } from '../../util/memory-budget.js';
import { Actor } from '../actor.js';
import { actorFiles } from '../actor-files.js';
import { BindingTable } from '../binding-table.js';
import { connectionMaximums } from '../connection-limits.js';
import type { Driver } from '../driver.js';
import { type HandlerServer, serveHandlers } from '../handler-server.js';
import type { ConnectionState } from '../reconnecting-connection.js';
import { CallRedirected, type SessionHost } from '../session-host.js';
import { FigureCollector, type Figures } from './figures.js';
import type { ServeRequest } from './messages.js';
import { tokenSigner } from './token-signer.js';

export interface ServedService {
  /** Replaces the bindings. */
  bind(bindings: ServeRequest['bindings']): void;
  /** The figures since the last time. */
  takeFigures(): Figures;
  /** Sends new calls elsewhere, and waits up to `limitMs` for those in progress; then closes connections. */
  drain(limitMs?: number): Promise<void>;
  /** Asks handlers to leave, and resolves when they have. */
  left(): Promise<void>;
}

/** Who is told of changes. */
export interface ServiceListener {
  onState(state: ConnectionState): void;
  /** Called when there are many. */
  onFiguresDue(figures: Figures): void;
}

/** Serves until it is drained. */
export async function serveService(
  request: ServeRequest,
  driver: Driver,
  log: Log,
  { onState, onFiguresDue }: ServiceListener,
): Promise<ServedService> {
  const { service, config, queueLimit, key, tokenFolder } = request;
  const metrics = new FigureCollector(() => onFiguresDue(metrics.take(actor.use)));
  const bindings = new BindingTable();
  bindings.replace(service.id, request.bindings);
  let isDraining = false;
  const host: SessionHost = {
    authenticate: (token) => readServiceToken(tokenSigner(key), tokenFolder, token),
    validNonces: () => validNonces(tokenFolder),
    actorFor: (endpointId, poolId) => {
      if (isDraining || bindings.find(endpointId, poolId) === undefined) throw new CallRedirected();
      return actor;
    },
  };
  const limits = {
    defaultCallMs: request.defaultCallMs,
    longestCallMs: request.longestCallMs,
    memory: new MemoryBudget(request.memoryBytes),
  };
  const maximums = connectionMaximums(request.handlerThreads);
  const handlers: HandlerServer = await serveHandlers(request.handlerSocket, host, limits, maximums, log);
  let objects: Server | undefined;
  if ('bucket' in config) {
    // Loaded on demand: HTTP is of no use to the other services.
    const { createWebServer } = await import('../web-server.js');
    const { bucket } = config;
    const objectFiles = () => ({ files: actorFiles(actor, bucket) });
    const view = { testService: async () => undefined, objectFiles };
    objects = createWebServer(view, { log, tokens: [key] });
    await listenOnSocket(objects, request.objectSocket);
  }
  // Last: the actor host is told that it serves before anything of the backend is read.
  const actor: Actor = new Actor({
    driver,
    config,
    queueLimit,
    answerBytes: request.answerBytes,
    metrics,
    log,
    onState,
  });
  return {
    bind: (next) => bindings.replace(service.id, next),
    takeFigures: () => metrics.take(actor.use),
    drain: async (limitMs) => {
      isDraining = true;
      await actor.drain(limitMs);
      // With a limit, the process is killed after this.
      if (limitMs !== undefined) await handlers.closeConnections();
    },
    left: async () => {
      const transferred = new Promise<void>((resolve) => {
        if (objects) objects.close(() => resolve());
        else resolve();
        objects?.closeIdleConnections();
      });
      await Promise.all([transferred, handlers.retire()]);
    },
  };
}
