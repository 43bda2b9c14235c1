/**
 * A service within its process: its actor, the sockets on which handlers and the actor host reach it, and its figures.
 */
import { Registry } from 'prom-client';
import { type MetricSource, registrySource } from '../../metrics/process-metrics.js';
import { readServiceToken } from '../../secrets/service-token.js';
import type { Log } from '../../util/log.js';
import { MemoryBudget } from '../../util/memory-budget.js';
import { Actor } from '../actor.js';
import { actorFiles } from '../actor-files.js';
import { BindingTable } from '../binding-table.js';
import { connectionMaximums } from '../connection-limits.js';
import type { Driver } from '../driver.js';
import { type HandlerServer, serveHandlers } from '../handler-server.js';
import { Moved, type SessionHost } from '../handler-session.js';
import { listenOnSocket } from '../listen.js';
import type { ConnectionState } from '../reconnecting-connection.js';
import { ServiceMetrics } from '../service-metrics.js';
import { createWebServer } from '../web-server.js';
import type { ServeRequest } from './messages.js';
import { tokenSigner } from './token-signer.js';

export interface ServedService {
  /** Replaces the bindings. */
  bind(bindings: ServeRequest['bindings']): void;
  readonly measure: MetricSource;
  /** Sends new calls elsewhere, and waits up to `limitMs` for those in progress. */
  drain(limitMs?: number): Promise<void>;
  /** Asks handlers to leave, and resolves when they have. */
  left(): Promise<void>;
}

/** Serves until it is drained. */
export async function serveService(
  request: ServeRequest,
  driver: Driver,
  log: Log,
  onState: (state: ConnectionState) => void,
): Promise<ServedService> {
  const { service, config, queueLimit, key } = request;
  const registry = new Registry();
  const labels = { service: service.id, service_type: service.type };
  const metrics = new ServiceMetrics(registry, () => [[labels, actor.use]]);
  const bindings = new BindingTable();
  bindings.replace(service.id, request.bindings);
  let isDraining = false;
  const actor: Actor = new Actor({
    driver,
    config,
    queueLimit,
    // Files of sqlite services are opened by the actor host's own driver.
    sqliteDir: undefined,
    metrics: metrics.of(service.id, service.type),
    log,
    onState,
  });
  const host: SessionHost = {
    authenticate: (token) => readServiceToken(tokenSigner(key), token),
    actorFor: (endpointId, poolId) => {
      if (isDraining || bindings.find(endpointId, poolId) === undefined) throw new Moved();
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
  if ('bucket' in config) {
    const files = actorFiles(actor, config.bucket);
    const view = { testService: async () => undefined, objectFiles: () => ({ files }) };
    await listenOnSocket(createWebServer(view, { log, token: key }), request.objectSocket);
  }
  return {
    bind: (next) => bindings.replace(service.id, next),
    measure: registrySource(registry),
    drain: async (limitMs) => {
      isDraining = true;
      await actor.drain(limitMs);
    },
    left: () => handlers.retire(),
  };
}
