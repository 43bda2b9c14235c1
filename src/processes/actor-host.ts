/**
 * Entry of the process `actor-host`: owns the connections to backend services, and serves handlers and the management
 * API.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { connectionMaximums } from '../actors/connection-limits.js';
import { type HandlerServer, serveHandlers } from '../actors/handler-server.js';
import { ActorHost } from '../actors/host.js';
import { ServiceMetrics } from '../actors/service-metrics.js';
import { createWebServer } from '../actors/web-server.js';
import { warnOfClosedCertificates } from '../bootstrap/certificate-files.js';
import {
  actorHostSocket,
  handlerSocket,
  objectFolder,
  runDirectory,
  serviceFolder,
  tokenFolder,
} from '../bootstrap/run-directory.js';
import { reachableNodeProgram } from '../bootstrap/service-program.js';
import { makeSqliteFolder } from '../bootstrap/sqlite-folder.js';
import { type ProcessContext, startProcess } from '../bootstrap/start-process.js';
import { toError } from '../errors.js';
import { refuseSecond } from '../internal/listen.js';
import { reachableAt, serveInternally } from '../internal/serve.js';
import { registrySource, serveMetrics } from '../metrics/process-metrics.js';
import { SECRET_SETTINGS } from '../model/service-configs.js';
import { type SqliteFolders, sqliteFolders } from '../model/sqlite-folders.js';
import { Changes } from '../reconcile/changes.js';
import { joinNodes } from '../reconcile/nodes.js';
import { removeShared } from '../sandbox/remove-tree.js';
import { killAbandoned } from '../sandbox/run-user.js';
import { loadSecretBox } from '../secrets/secret-box.js';
import { actorHostTokens } from '../secrets/service-token.js';
import { openDatabase } from '../store/database.js';
import type { Logger } from '../util/log.js';
import { MemoryBudget } from '../util/memory-budget.js';

const POOL_SIZE = 4;
/** Calls have deadlines; transfers have none, and are aborted after this when the process ends. */
const DRAIN_LIMIT_MS = 20_000;

await startProcess('actor-host', start, SECRET_SETTINGS);

async function start({ config, log, shutdown }: ProcessContext): Promise<void> {
  const secrets = await loadSecretBox(config);
  const runDir = await runDirectory(config.DATA_DIR);
  await refuseSecond(handlerSocket(runDir));
  await killAbandoned(runDir);
  // Processes of services end with their actor host.
  for (const folder of [await serviceFolder(runDir), await objectFolder(runDir)]) await empty(folder);
  await warnOfClosedCertificates(log);
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
      sqliteFolders: await sqliteFoldersOf(config, log),
      // What is made of an answer takes as much again.
      answerBytes: Math.min(config.SERVICE_ANSWER_MB, config.SERVICE_MEMORY_MB / 2) * 1024 ** 2,
      logsDebug: log.isLevelEnabled('debug'),
      handlerFolder: await serviceFolder(runDir),
      objectFolder: await objectFolder(runDir),
      tokenFolder: await tokenFolder(runDir),
      programs: { node: await reachableNodeProgram(), runDir },
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
  handlers = await serveHandlers(handlerSocket(runDir), host, limits, connections, log);
  const tokens = actorHostTokens(secrets);
  const closeWeb = await serveInternally(() => createWebServer(host, { log, tokens }), address);
  shutdown.add('management API', closeWeb);
  const own = registrySource(registry);
  const metrics = async () => {
    await host.measure();
    return own();
  };
  shutdown.add('metrics', await serveMetrics(runDir, 'actor-host', config, metrics));
}

async function empty(folder: string): Promise<void> {
  await removeShared(...(await readdir(folder)).map((name) => join(folder, name)));
}

/** Only sqlite services do without their files; each says so. */
async function sqliteFoldersOf(config: ProcessContext['config'], log: Logger): Promise<SqliteFolders> {
  try {
    return await makeSqliteFolder(config, log);
  } catch (error) {
    log.error({ err: toError(error) }, 'the folder of sqlite services cannot be used');
    return sqliteFolders(config);
  }
}
