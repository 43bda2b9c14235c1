/** The process `gateway`: the supervisor, and the front that it starts. */
import '../bootstrap/small-heap.js';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { AggregatorRegistry, Registry } from 'prom-client';
import { openArtifactStore } from '../artifacts/open.js';
import { secretPaths } from '../bootstrap/data-directory.js';
import {
  gatewayFolder,
  handlerSocket,
  metricsFolders,
  runDirectory,
  serviceFolder,
  tokenFolder,
} from '../bootstrap/run-directory.js';
import { startProcess } from '../bootstrap/start-process.js';
import { type Config, toolEnvironment } from '../config.js';
import { Certificates } from '../gateway/front/certificates.js';
import { Challenges } from '../gateway/front/challenges.js';
import { Front } from '../gateway/front/front.js';
import type { FrontSettings, Share } from '../gateway/front/messages.js';
import { ArtifactCache } from '../gateway/handlers/artifact-cache.js';
import { Environments } from '../gateway/handlers/environments.js';
import { HandlerWatch } from '../gateway/handlers/handler-watch.js';
import { removeStaleSockets } from '../gateway/handlers/socket-folders.js';
import { createInternalServer } from '../gateway/internal-server.js';
import { Invocations } from '../gateway/invocations.js';
import { EndpointLog } from '../gateway/log/endpoint-log.js';
import { LogWriter } from '../gateway/log/log-writer.js';
import { RateShare } from '../gateway/policies/rate-share.js';
import { SharedRates } from '../gateway/policies/shared-rates.js';
import { Supervisor } from '../gateway/supervisor.js';
import { MinuteFigures } from '../gateway/telemetry/minute-figures.js';
import { openTraces, samplingOf } from '../gateway/telemetry/traces.js';
import { removeUnserved } from '../internal/listen.js';
import { reachableAt, serveInternally } from '../internal/serve.js';
import { type MetricSnapshot, registrySource, serveMetrics } from '../metrics/process-metrics.js';
import { policyLimit } from '../model/policies/room.js';
import { Changes } from '../reconcile/changes.js';
import { joinNodes } from '../reconcile/nodes.js';
import { removeAbandoned } from '../sandbox/abandoned.js';
import { killAbandoned } from '../sandbox/run-user.js';
import { openSandbox } from '../sandbox/sandbox.js';
import { loadSecretBox } from '../secrets/secret-box.js';
import { gatewayTokens, issueServiceToken, NONCE_FILE } from '../secrets/service-token.js';
import { openDatabase } from '../store/database.js';
import { desiredArtifacts } from '../store/endpoint-runs.js';
import { foldRequestCounters } from '../store/request-counters.js';
import { Threads } from '../threads/threads.js';
import { PeriodicTask } from '../util/periodic-task.js';
import { THIS_PROCESS } from '../util/process-liveness.js';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';

/** Interval for deleting unused executables and adding up the counts of deleted gateways. */
const TIDY_EVERY_MS = 600_000;
/** So that a minute is a multiple of it, also when it is less, in whole seconds. */
const FIGURES_EVERY_SECONDS = 5;

await startProcess('gateway', async ({ config, log, shutdown }) => {
  const registry = new Registry();
  const runDir = await runDirectory(config.DATA_DIR);
  const secrets = await loadSecretBox(config);
  await killAbandoned(runDir);
  await removeStaleSockets(runDir, log);
  await serviceFolder(runDir);
  const nonces = await tokenFolder(runDir);
  await removeAbandoned(nonces, NONCE_FILE, log);
  const sandbox = await openSandbox(config.SANDBOX, log, secretPaths(config, toolEnvironment()), runDir);
  if (sandbox.level === 'limits') log.warn('HANDLER_NETWORK is not in force without a sandbox');
  if (sandbox.level !== 'namespaces' && !HAS_UNTRUSTED_USERS)
    log.warn('HANDLER_PROCESSES is not in force: it needs namespaces, or a gateway that root has started');

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

  const changes = new Changes(
    config.DATABASE_URL,
    ['endpoint', 'node', 'certificate', 'acme_challenge'],
    log,
  );
  shutdown.add('changes', () => changes.stop());

  let supervisor: Supervisor | undefined;
  const hourBytes = config.LOG_RETENTION_MB * 1024 * 1024;
  const logWriter = new LogWriter(store, log, hourBytes, (id) => supervisor?.ownerOf(id));
  const traces = await openTraces(config, THIS_PROCESS, registry, log);
  if (traces) shutdown.add('traces', () => traces.stop());
  const endpointLog = new EndpointLog(logWriter, log, traces);
  const figures = new MinuteFigures(store, figuresEverySeconds(config), log);
  const sharedRates = config.REDIS_URL === undefined ? undefined : new SharedRates(config.REDIS_URL, log);
  if (sharedRates) shutdown.add('rates', () => sharedRates.close());
  const front = new Front({
    host: config.HOST,
    port: config.GATEWAY_PORT,
    tlsPort: config.TLS_PORT,
    settings: frontSettings(config, log.isLevelEnabled('debug')),
    states: {
      ids: () => supervisor?.endpointIds() ?? [],
      stateOf: (id) => supervisor?.stateOfId(id),
    },
    log,
    events: {
      deadlineExceeded: (endpointId, instanceId) => supervisor?.deadlineExceeded(endpointId, instanceId),
      connectionLost: (endpointId, instanceId, reason) =>
        supervisor?.connectionLost(endpointId, instanceId, reason),
      wake: (endpointId) => supervisor?.wake(endpointId),
      take: async (rules) => (await sharedRates?.take(rules)) ?? null,
      unknownKey: (endpointId) => supervisor?.unknownKey(endpointId),
      handled: (requests) => supervisor?.handled(requests),
      finished: (request) => endpointLog.finished(request),
      leftOut: (...counted) => endpointLog.leftOut(...counted),
      counted: (at, endpoints) => figures.finished(at, endpoints),
    },
  });
  process.on('SIGUSR2', () => {
    front
      .replace()
      .catch((error: unknown) =>
        log.error({ err: error }, 'front could not be replaced, the old one serves on'),
      );
  });
  const sockets = await gatewayFolder(runDir);
  for (const folder of [sockets, metricsFolders(runDir)[0]]) await removeUnserved(folder);
  const address = {
    socket: join(sockets, `${THIS_PROCESS}.sock`),
    host: config.HOST,
    port: config.GATEWAY_INTERNAL_PORT,
  };
  const info = { sandbox: sandbox.level, keys: secrets.keyIds, ...reachableAt(address) };
  const node = await joinNodes(store, 'gateway', info, log, () => supervisor?.saveAgain());
  shutdown.add('node', () => node.leave());
  if (!sharedRates) {
    const changed = (share: Share) => front.setShare(share);
    const rateShare = new RateShare({ store, changes, nodeId: node.id, changed, log });
    shutdown.add('share of rates', () => rateShare.stop());
    await rateShare.look();
  }
  logWriter.start(node.id);
  shutdown.add('log', () => logWriter.stop());
  figures.start(node.id);
  shutdown.add('figures', () => figures.stop());

  const threads = new Threads();
  shutdown.add('threads', () => threads.close());
  supervisor = new Supervisor({
    store,
    changes,
    front,
    artifacts,
    environments: new Environments(store, (encrypted) => secrets.open(encrypted)),
    node,
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
    streamDrainMs: config.STREAM_DRAIN_MS,
    policyBytes: policyLimit(config),
    threads,
    registry,
    endpointLog,
    figures,
    log,
  });
  const running = supervisor;
  shutdown.add('handlers', () => running.stop());
  shutdown.add('front', () => front.stop());

  // Routes are loaded before the port is opened, so that no request gets a premature 404.
  await supervisor.start();
  const decrypt = (encrypted: string) => secrets.open(encrypted);
  const challenges = new Challenges({ store, changes, decrypt, front, node, info, log });
  shutdown.add('challenges', () => challenges.stop());
  await challenges.start();
  if (config.TLS_PORT !== undefined) {
    const certificates = new Certificates({
      ...{ store, changes, decrypt, front, registry, log },
    });
    shutdown.add('certificates', () => certificates.stop());
    await certificates.start();
  }
  const [url, tlsUrl] = await front.start();
  const invocations = new Invocations({
    store,
    front,
    stateOf: (endpoint) => running.stateOf(endpoint),
    start: running.startBeside,
  });
  const close = await serveInternally(
    () => createInternalServer(invocations, running.prepared, gatewayTokens(secrets), log),
    address,
  );
  shutdown.add('internal requests', close);

  const metrics = async (): Promise<MetricSnapshot> => {
    const snapshots = [await registrySource(registry)(), ...(await front.metrics())];
    return registrySource(AggregatorRegistry.aggregate(snapshots))();
  };
  shutdown.add('metrics', await serveMetrics(metricsFolders(runDir)[0], config, metrics));
  const listening = {
    url,
    ...(tlsUrl !== undefined && { tls_url: tlsUrl }),
    threads: config.GATEWAY_CONCURRENCY,
  };
  log.info(listening, 'gateway listening');
});

function frontSettings(config: Config, logsRequests: boolean): FrontSettings {
  const { GATEWAY_BODY_LIMIT_BYTES: bodyLimit } = config;
  return {
    threads: config.GATEWAY_CONCURRENCY,
    bodyLimit,
    // At least enough for the largest body.
    memoryBytes: Math.max(config.GATEWAY_MEMORY_MB * 1024 * 1024, 2 * bodyLimit),
    policyMemoryBytes: config.POLICY_MEMORY_MB * 1024 * 1024,
    connectionsLimit: config.GATEWAY_CONNECTIONS_LIMIT,
    headTimeoutMs: config.HTTP_HEAD_TIMEOUT_MS,
    idleTimeoutMs: config.HTTP_IDLE_TIMEOUT_MS,
    stallTimeoutMs: config.HTTP_STALL_TIMEOUT_MS,
    minBytesPerSecond: config.HTTP_MIN_BYTES_PER_SECOND,
    streamDrainMs: config.STREAM_DRAIN_MS,
    trustedProxies: config.TRUSTED_PROXIES,
    logsRequests,
    logRequestsPerSecond: config.LOG_REQUESTS_PER_SECOND,
    figuresEverySeconds: figuresEverySeconds(config),
    sharesRates: config.REDIS_URL !== undefined,
    rateSeed: randomBytes(32).toString('base64'),
    traces: samplingOf(config),
    redirectPort: config.HTTP_REDIRECT ? (config.TLS_PUBLIC_PORT ?? config.TLS_PORT ?? null) : null,
    strictTransportSeconds: config.HSTS_SECONDS,
  };
}

function figuresEverySeconds({ PERIODIC_WORK_PERCENT: percent }: Config): number {
  return Math.max(1, Math.floor((FIGURES_EVERY_SECONDS * percent) / 100));
}
