/** Entry of the process `actor-host`: owns the connections to backend services, and serves handlers and the management API. */
import { Registry } from 'prom-client';
import { connectionNumbers } from '../actors/connection-limits.js';
import { loadDriver } from '../actors/drivers/index.js';
import { type HandlerServer, serveHandlers } from '../actors/handler-server.js';
import { ActorHost } from '../actors/host.js';
import { refuseSecond } from '../actors/listen.js';
import { serveWeb, urlForOthers } from '../actors/serve-web.js';
import { ServiceMetrics } from '../actors/service-metrics.js';
import { MemoryBudget } from '../memory-budget.js';
import { offerMetrics, registrySource } from '../metrics/process-metrics.js';
import { startProcess } from '../process.js';
import { Changes } from '../reconcile/changes.js';
import { joinNodes } from '../reconcile/node.js';
import { actorHostSocket, handlerSocket, runDirectory, serviceFolder } from '../run-directory.js';
import { loadSecretBox } from '../secrets.js';
import { actorHostToken } from '../service-token.js';
import { openDatabase } from '../store/database.js';

const POOL_SIZE = 4;
/** Calls end by their deadlines; a transfer may take as long as it likes, but not hold up the end of the process. */
const DRAIN_LIMIT_MS = 20_000;

await startProcess('actor-host', async ({ config, log, shutdown }) => {
  const secrets = await loadSecretBox(config);
  const runDir = await runDirectory(config.DATA_DIR);
  await refuseSecond(handlerSocket(runDir));
  const registry = new Registry();

  const store = openDatabase(
    config.DATABASE_URL,
    (error) => log.warn({ err: error }, 'announcements failed'),
    POOL_SIZE,
  );
  shutdown.add('database', () => store.close());
  const info = { socket: actorHostSocket(runDir), url: urlForOthers(config) };
  const node = await joinNodes(store, 'actor-host', info, log, () => host.observeAgain());
  shutdown.add('node', () => node.leave());
  const changes = new Changes(config.DATABASE_URL, ['service', 'endpoint'], log);
  shutdown.add('changes', () => changes.stop());

  const host: ActorHost = new ActorHost({
    store,
    changes,
    secrets,
    loadDriver,
    nodeId: node.id,
    metrics: new ServiceMetrics(registry, () => host.poolUse()),
    queueLimit: config.SERVICE_QUEUE_LIMIT,
    sqliteDir: config.SQLITE_DIR,
    log,
  });
  const limits = {
    defaultCallMs: config.SERVICE_TIMEOUT_MS,
    longestCallMs: config.REQUEST_TIMEOUT_MS,
    memory: new MemoryBudget(config.SERVICE_MEMORY_MB * 1024 * 1024),
  };
  let handlers: HandlerServer | undefined;
  shutdown.add('services', async () => {
    handlers?.stopListening();
    await host.stop(DRAIN_LIMIT_MS);
    handlers?.closeConnections();
  });
  // Services first, then the sockets.
  await host.begin();
  await serviceFolder(runDir);
  const connections = connectionNumbers(config.HANDLER_THREADS);
  handlers = await serveHandlers(handlerSocket(runDir), host, limits, connections, log);
  const closeWeb = await serveWeb(host, config, {
    socket: actorHostSocket(runDir),
    token: actorHostToken(secrets),
    log,
  });
  shutdown.add('management API', closeWeb);
  shutdown.add('metrics', await offerMetrics(runDir, 'actor-host', config, registrySource(registry)));
});
