/** Entry of the process `gateway`: the supervisor and its fronts. */
import { join } from 'node:path';
import { AggregatorRegistry, Registry } from 'prom-client';
import { openArtifactStore } from '../artifacts/open.js';
import { searchPath, toolEnvironment } from '../config.js';
import { secretPaths } from '../data-directory.js';
import { ArtifactCache } from '../gateway/artifact-cache.js';
import { Fronts } from '../gateway/fronts.js';
import { HandlerWatch } from '../gateway/handler-watch.js';
import { removeStaleSockets } from '../gateway/socket-folders.js';
import { Supervisor } from '../gateway/supervisor.js';
import { killLeftovers } from '../limited-process.js';
import { type MetricSnapshot, offerMetrics, registrySource } from '../metrics/process-metrics.js';
import { startProcess } from '../process.js';
import { Changes, Periodically } from '../reconcile/changes.js';
import { joinNodes, type NodeRegistration } from '../reconcile/node.js';
import { handlerSocket, runDirectory, serviceFolder } from '../run-directory.js';
import { openSandbox } from '../sandbox/sandbox.js';
import { loadSecretBox } from '../secrets.js';
import { makeServiceToken } from '../service-token.js';
import { openDatabase } from '../store/database.js';
import { desiredArtifacts } from '../store/endpoint-runs.js';
import { foldRequestCounters } from '../store/request-counters.js';

/** Executables that have not been used for long, and counts of gateways that are gone. */
const TIDY_EVERY_MS = 600_000;

await startProcess('gateway', async ({ config, log, shutdown }) => {
  const registry = new Registry();
  const runDir = await runDirectory(config.DATA_DIR);
  const secrets = await loadSecretBox(config);
  killLeftovers();
  await removeStaleSockets(runDir, log);
  await serviceFolder(runDir);
  const sandbox = await openSandbox(
    config.SANDBOX,
    searchPath(),
    log,
    secretPaths(config, toolEnvironment()),
  );
  if (sandbox.level === 'limits') {
    const asWhom =
      process.getuid?.() === 0 ? 'as root, who may do everything' : 'as the user of this process';
    log.warn(`handlers run ${asWhom}; HANDLER_NETWORK and HANDLER_PROCESSES are not in force`);
  }

  const store = openDatabase(config.DATABASE_URL, (error) =>
    log.warn({ err: error }, 'announcements failed'),
  );
  shutdown.add('database', () => store.close());
  const artifacts = new ArtifactCache(join(config.DATA_DIR, 'handlers'), await openArtifactStore(config));
  const tidy = async () => {
    await artifacts.keepOnly(await desiredArtifacts(store));
    await foldRequestCounters(store);
  };
  await tidy();
  const tidying = new Periodically(TIDY_EVERY_MS, tidy, (error) =>
    log.warn({ err: error }, 'tidying failed'),
  );
  shutdown.add('tidying', () => tidying.stop());

  const changes = new Changes(config.DATABASE_URL, ['endpoint'], log);
  shutdown.add('changes', () => changes.stop());

  let node: NodeRegistration | undefined;
  let supervisor: Supervisor | undefined;
  const fronts = new Fronts(log, {
    stuck: (endpointId, instanceId) => supervisor?.stuck(endpointId, instanceId),
    lost: (endpointId, instanceId, reason) => supervisor?.lost(endpointId, instanceId, reason),
    counted: (requests) => supervisor?.counted(requests),
  });
  node = await joinNodes(store, 'gateway', { sandbox: sandbox.level }, log, () => supervisor?.observeAgain());
  shutdown.add('node', async () => node?.leave());
  const { id: nodeId } = node;

  supervisor = new Supervisor({
    store,
    changes,
    fronts,
    artifacts,
    nodeId: () => nodeId,
    runDir,
    services: (endpointId) => ({
      socket: handlerSocket(runDir),
      token: makeServiceToken(secrets, endpointId),
      timeoutMs: config.SERVICE_TIMEOUT_MS,
    }),
    handlers: {
      sandbox,
      network: config.HANDLER_NETWORK,
      watch: new HandlerWatch(log),
      threads: config.HANDLER_THREADS,
      startTimeoutMs: config.START_TIMEOUT_MS,
    },
    limits: config,
    frontCount: config.GATEWAY_CONCURRENCY,
    registry,
    log,
  });
  const running = supervisor;
  shutdown.add('handlers', () => running.stop());
  shutdown.add('fronts', () => fronts.stop());

  // Routes first, then the port: nobody gets a 404 because the gateway is still reading.
  await supervisor.lookAtAll();
  await fronts.start(config.GATEWAY_CONCURRENCY);

  const metrics = async (): Promise<MetricSnapshot> => {
    const snapshots = [await registrySource(registry)(), ...(await fronts.metrics())];
    return registrySource(AggregatorRegistry.aggregate(snapshots))();
  };
  shutdown.add('metrics', await offerMetrics(runDir, 'gateway', config, metrics));
  log.info(
    { url: `http://${config.HOST}:${config.GATEWAY_PORT}`, fronts: config.GATEWAY_CONCURRENCY },
    'gateway listening',
  );
});
