/**
 * The process `actor-host`: owns the connections to backend services, and serves handlers and the management
 * API.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Registry } from 'prom-client';
import { connectionMaximums } from '../actors/connection-limits.js';
import { type HandlerServer, serveHandlers } from '../actors/handler-server.js';
import { ActorHost } from '../actors/host.js';
import { ServiceMetrics } from '../actors/service-metrics.js';
import { Starter } from '../actors/service-process/starter.js';
import { channelSocket, spawnStarter } from '../actors/service-process/starter-program.js';
import { createWebServer } from '../actors/web-server.js';
import {
  actorHostSocket,
  metricsFolders,
  objectFolder,
  servedHandlerSocket,
  serviceFolder,
  tokenFolder,
} from '../bootstrap/run-directory.js';
import { type ProcessContext, startProcess } from '../bootstrap/start-process.js';
import { preparedProcess } from '../config.js';
import { removeUnserved } from '../internal/listen.js';
import { reachableAt, serveInternally } from '../internal/serve.js';
import { registrySource, serveMetrics } from '../metrics/process-metrics.js';
import { SECRET_SETTINGS } from '../model/service-configs.js';
import { sqliteFolders } from '../model/sqlite-folders.js';
import { Changes } from '../reconcile/changes.js';
import { joinNodes } from '../reconcile/nodes.js';
import { prepareActorHost } from '../rights/prepare-actor-host.js';
import { loadSecretBox } from '../secrets/secret-box.js';
import { actorHostTokens } from '../secrets/service-token.js';
import { openDatabase } from '../store/database.js';
import { MemoryBudget } from '../util/memory-budget.js';

const POOL_SIZE = 4;
/** Calls have deadlines; transfers have none, and are aborted after this when the process ends. */
const DRAIN_LIMIT_MS = 20_000;

await startProcess('actor-host', start, SECRET_SETTINGS);

async function start({ config, log, shutdown }: ProcessContext): Promise<void> {
  const secrets = await loadSecretBox(config);
  const { runDir, control } = await preparedStarter(config, log);
  // Sockets that are left of an actor host that was killed.
  await removeUnserved(metricsFolders(runDir)[1]);
  const registry = new Registry();

  const store = openDatabase(
    config.DATABASE_URL,
    (error) => log.warn({ err: error }, 'announcements failed'),
    POOL_SIZE,
  );
  shutdown.add('database', () => store.close());
  const address = { socket: actorHostSocket(runDir), host: config.HOST, port: config.ACTOR_HOST_PORT };
  const info = { ...reachableAt(address), keys: secrets.keyIds };
  const node = await joinNodes(store, 'actor-host', info, log, () => host.saveAgain());
  shutdown.add('node', () => node.leave());
  const changes = new Changes(config.DATABASE_URL, ['service', 'endpoint'], log);
  shutdown.add('changes', () => changes.stop());

  const starter = await Starter.open(control, await channelSocket(runDir), () => {
    log.fatal('what starts the processes of services has ended');
    process.exitCode = 1;
    void shutdown.run('it cannot start services');
  });
  shutdown.add('starter of services', () => starter.close());

  const callLimits = { defaultCallMs: config.SERVICE_TIMEOUT_MS, longestCallMs: config.REQUEST_TIMEOUT_MS };
  const host: ActorHost = new ActorHost({
    store,
    changes,
    secrets,
    node,
    metrics: new ServiceMetrics(registry, () => host.poolUse()),
    isolation: {
      ...callLimits,
      queueLimit: config.SERVICE_QUEUE_LIMIT,
      handlerThreads: config.HANDLER_THREADS,
      memoryMb: config.SERVICE_MEMORY_MB,
      // What is made of an answer takes as much again.
      answerBytes: Math.min(config.SERVICE_ANSWER_MB, config.SERVICE_MEMORY_MB / 2) * 1024 ** 2,
      logsDebug: log.isLevelEnabled('debug'),
      sqliteFolders: sqliteFolders(config),
      handlerFolder: await serviceFolder(runDir),
      objectFolder: await objectFolder(runDir),
      tokenFolder: await tokenFolder(runDir),
      starter,
    },
    log,
  });
  const limits = { ...callLimits, memory: new MemoryBudget(config.SERVICE_MEMORY_MB * 1024 * 1024) };
  let handlers: HandlerServer | undefined;
  shutdown.add('services', async () => {
    handlers?.stopListening();
    await host.stop(DRAIN_LIMIT_MS);
    await handlers?.closeConnections();
  });
  // Services first, then the sockets.
  await host.start();
  const connections = connectionMaximums(config.HANDLER_THREADS);
  handlers = await serveHandlers(servedHandlerSocket(runDir), host, limits, connections, log);
  const tokens = actorHostTokens(secrets);
  const closeWeb = await serveInternally(() => createWebServer(host, { log, tokens }), address);
  shutdown.add('management API', closeWeb);
  const own = registrySource(registry);
  const metrics = async () => {
    await host.measure();
    return own();
  };
  shutdown.add('metrics', await serveMetrics(metricsFolders(runDir)[1], config, metrics));
}

/** The channel to what starts the processes of services: root has started it before, or it is started now. */
async function preparedStarter(
  config: ProcessContext['config'],
  log: ProcessContext['log'],
): Promise<{ readonly runDir: string; readonly control: Duplex }> {
  const prepared = preparedProcess();
  if (prepared?.starter !== undefined)
    return { runDir: prepared.runDir, control: new Socket({ fd: prepared.starter }) };
  const { runDir, starter } = await prepareActorHost(config, log);
  return { runDir, control: spawnStarter(starter) };
}
