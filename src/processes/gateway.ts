/** Entry of the process `gateway`: the supervisor and its fronts. */
import { join } from 'node:path';
import { AggregatorRegistry, Registry } from 'prom-client';
import { openArtifactStore } from '../artifacts/open.js';
import { secretPaths } from '../bootstrap/data-directory.js';
import { handlerSocket, runDirectory, serviceFolder, tokenFolder } from '../bootstrap/run-directory.js';
import { startProcess } from '../bootstrap/start-process.js';
import { searchPath, toolEnvironment } from '../config.js';
import { ArtifactCache } from '../gateway/artifact-cache.js';
import { Fronts } from '../gateway/fronts.js';
import { HandlerWatch } from '../gateway/handler-watch.js';
import { removeStaleSockets } from '../gateway/socket-folders.js';
import { Supervisor } from '../gateway/supervisor.js';
import { type MetricSnapshot, registrySource, serveMetrics } from '../metrics/process-metrics.js';
import { Changes } from '../reconcile/changes.js';
import { joinNodes } from '../reconcile/nodes.js';
import { removeAbandoned } from '../sandbox/abandoned.js';
import { killAbandoned } from '../sandbox/run-user.js';
import { openSandbox } from '../sandbox/sandbox.js';
import { loadSecretBox } from '../secrets/secret-box.js';
import { issueServiceToken, NONCE_FILE } from '../secrets/service-token.js';
import { openDatabase } from '../store/database.js';
import { desiredArtifacts } from '../store/endpoint-runs.js';
import { foldRequestCounters } from '../store/request-counters.js';
import { PeriodicTask } from '../util/periodic-task.js';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';

/** Interval for deleting unused executables and adding up the counts of deleted gateways. */
const TIDY_EVERY_MS = 600_000;

await startProcess('gateway', async ({ config, log, shutdown }) => {
  const registry = new Registry();
  const runDir = await runDirectory(config.DATA_DIR);
  const secrets = await loadSecretBox(config);
  await killAbandoned(runDir);
  await removeStaleSockets(runDir, log);
  await serviceFolder(runDir);
  const nonces = await tokenFolder(runDir);
  await removeAbandoned(nonces, NONCE_FILE, log);
  const sandbox = await openSandbox(
    config.SANDBOX,
    searchPath(),
    log,
    secretPaths(config, toolEnvironment()),
    runDir,
  );
  if (sandbox.level === 'limits') {
    const ignored = HAS_UNTRUSTED_USERS ? 'HANDLER_NETWORK is' : 'HANDLER_NETWORK and HANDLER_PROCESSES are';
    log.warn(`${ignored} not in force without a sandbox`);
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
  const tidying = new PeriodicTask(TIDY_EVERY_MS, tidy, (error) =>
    log.warn({ err: error }, 'tidying failed'),
  );
  shutdown.add('tidying', () => tidying.stop());

  const changes = new Changes(config.DATABASE_URL, ['endpoint'], log);
  shutdown.add('changes', () => changes.stop());

  let supervisor: Supervisor | undefined;
  const fronts = new Fronts(log, {
    deadlineExceeded: (endpointId, instanceId) => supervisor?.deadlineExceeded(endpointId, instanceId),
    connectionLost: (endpointId, instanceId, reason) =>
      supervisor?.connectionLost(endpointId, instanceId, reason),
    counted: (requests) => supervisor?.counted(requests),
  });
  const node = await joinNodes(store, 'gateway', { sandbox: sandbox.level }, log, () =>
    supervisor?.saveAgain(),
  );
  shutdown.add('node', () => node.leave());

  supervisor = new Supervisor({
    store,
    changes,
    fronts,
    artifacts,
    nodeId: node.id,
    runDir,
    services: {
      socket: handlerSocket(runDir),
      issueToken: (endpointId, user) => issueServiceToken(secrets, nonces, endpointId, user),
      timeoutMs: config.SERVICE_TIMEOUT_MS,
    },
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

  // Routes are loaded before the port is opened, so that no request gets a premature 404.
  await supervisor.start();
  await fronts.start(config.GATEWAY_CONCURRENCY);

  const metrics = async (): Promise<MetricSnapshot> => {
    const snapshots = [await registrySource(registry)(), ...(await fronts.metrics())];
    return registrySource(AggregatorRegistry.aggregate(snapshots))();
  };
  shutdown.add('metrics', await serveMetrics(runDir, 'gateway', config, metrics));
  log.info(
    { url: `http://${config.HOST}:${config.GATEWAY_PORT}`, fronts: config.GATEWAY_CONCURRENCY },
    'gateway listening',
  );
});
