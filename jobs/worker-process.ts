/**
 * The process `worker`: takes jobs from the queues and carries them out. `worker/queues.ts` lists the queues,
 * `worker/periodic-work.ts` what is done again and again.
 */
import pTimeout from 'p-timeout';
import { Histogram, Registry } from 'prom-client';
import { openArtifactStore } from '../src/artifacts/open.js';
import { secretPaths } from '../src/bootstrap/data-directory.js';
import { metricsFolders, runDirectory } from '../src/bootstrap/run-directory.js';
import { startProcess } from '../src/bootstrap/start-process.js';
import { Builder } from '../src/build/builder.js';
import { HANDLER_PROFILE } from '../src/build/rustc.js';
import { findToolchain } from '../src/build/toolchain.js';
import { toolEnvironment } from '../src/config.js';
import { toError } from '../src/errors.js';
import { Gateways } from '../src/internal/gateways.js';
import { registrySource, serveMetrics } from '../src/metrics/process-metrics.js';
import { queueLimit } from '../src/model/queue-room.js';
import { openQueues } from '../src/queues/queues.js';
import { Changes } from '../src/reconcile/changes.js';
import { joinNodes } from '../src/reconcile/nodes.js';
import { killAbandoned } from '../src/sandbox/run-user.js';
import { openSandbox } from '../src/sandbox/sandbox.js';
import { loadSecretBox } from '../src/secrets/secret-box.js';
import { gatewayToken } from '../src/secrets/service-token.js';
import { announceCrates } from '../src/store/build-crates.js';
import { openDatabase } from '../src/store/database.js';
import { Turns } from '../src/util/turns.js';
import { HAS_UNTRUSTED_USERS } from '../src/util/untrusted-users.js';
import { acmeContext } from './acme.js';
import { ActiveJobs } from './active-jobs.js';
import { ArtifactSweep } from './artifact-sweep.js';
import { reportPreparation, toolchainCopy, type WorkerProgress } from './preparation-progress.js';
import { Reseal } from './reseal.js';
import { openBuildTools } from './worker/build-tools.js';
import type { WorkerContext } from './worker/context.js';
import { readCrateCredentials } from './worker/crate-credentials.js';
import {
  startLongPeriodicWork,
  startPeriodicWork,
  startPeriodicWorkWithCompiler,
} from './worker/periodic-work.js';
import { consumeWithCompiler, consumeWithoutCompiler } from './worker/queues.js';
import { SharedSetStore } from './worker/shared-set-store.js';

/** Active builds may take this long to finish after the worker was asked to stop; then another worker repeats them. */
const DRAIN_MS = 10_000;
/** Less than the time after which a process that is to stop is ended. */
const DELIVERY_DRAIN_MS = 35_000;

await startProcess('worker', async ({ config, log, shutdown }) => {
  const env = toolEnvironment();
  const installed = await findToolchain(HANDLER_PROFILE);
  const runDir = await runDirectory(config.DATA_DIR);
  const sandbox = await openSandbox(config.SANDBOX, log, secretPaths(config, env), runDir);
  await killAbandoned(runDir);
  log.info({ rustc: installed.version }, 'toolchain found');

  const store = openDatabase(config.DATABASE_URL, (error) =>
    log.warn({ err: error }, 'announcements failed'),
  );
  shutdown.add('database', () => store.close());
  const queues = openQueues(config, log);
  shutdown.add('queues', () => queues.close());
  const registry = new Registry();
  const durations = buildDurations(registry);
  shutdown.add('metrics', await serveMetrics(metricsFolders(runDir)[0], config, registrySource(registry)));
  const secrets = await loadSecretBox(config);

  const copy = HAS_UNTRUSTED_USERS ? toolchainCopy() : () => [];
  let progress = (): WorkerProgress => ({ preparing: copy(), crates: [] });
  const { fingerprint, version: rustc, host } = installed;
  const facts = { toolchain: fingerprint, rustc, host, sandbox: sandbox.level };
  const node = await joinNodes(store, 'worker', { ...facts, ...progress() }, log);
  shutdown.add('node', () => node.leave());
  const saveProgress = (current: WorkerProgress) => node.update({ ...facts, ...current });
  const reporting = reportPreparation({
    read: () => progress(),
    save: saveProgress,
    announce: (builds) => announceCrates(store, builds),
    log,
  });
  shutdown.add('progress', () => reporting.stop());

  /** Stops running tools; another worker repeats their builds. */
  const interrupt = new AbortController();
  const artifacts = await openArtifactStore(config);
  const tools = await openBuildTools({
    ...{ config, log, shutdown, installed, sandbox, env, interrupt },
    credentials: () => readCrateCredentials({ config, store, secrets, log }),
    openShared: (toolchain, limits) => new SharedSetStore({ store, artifacts, toolchain, limits, env, log }),
  });
  const { toolchain, sets } = tools;
  const sdk = sets.prepare({ dependencies: {}, async: false });
  progress = () => ({ preparing: sets.preparing(), crates: sets.building() });
  await saveProgress(progress());

  const { WORKER_CONCURRENCY: compilers } = config;
  const turns = new Turns({ places: compilers, beyond: 2 * compilers, beyondOfParts: compilers });
  const changes = new Changes(
    config.DATABASE_URL,
    ['build', 'observation', 'service_observation', 'node', 'apply'],
    log,
  );
  shutdown.add('changes', () => changes.stop());
  const common = { store, changes, queues, secrets, log };
  const worker: WorkerContext = {
    ...common,
    ...{ config, artifacts, durations, runDir, sets, interrupt: interrupt.signal },
    ...{ workerId: node.id, activeJobs: new ActiveJobs(), toolchain: toolchain.fingerprint },
    builder: new Builder({ ...tools, artifacts, turns }),
    lifecycle: { store, changes, artifacts, config },
    gateways: new Gateways({
      store,
      token: gatewayToken(secrets),
      log,
      startTimeoutMs: config.START_TIMEOUT_MS,
      requestTimeoutMs: config.REQUEST_TIMEOUT_MS,
    }),
    maxQueuedBytes: queueLimit(config),
    allowsPrivate: config.ALLOW_PRIVATE_URLS,
    acme: acmeContext(config, common),
    sweep: new ArtifactSweep(store, artifacts, log),
    reseal: config.SECRET_KEY_PREVIOUS === undefined ? undefined : new Reseal(store, secrets, log),
  };

  startLongPeriodicWork(worker, shutdown);
  const consumers = consumeWithoutCompiler(worker);
  // All stop taking jobs at once. A request whose answer takes longer is sent again by another worker.
  shutdown.add('jobs', async () => {
    const timer = setTimeout(() => interrupt.abort(), DRAIN_MS);
    const closed = Promise.all(consumers.map((consumer) => consumer.close()));
    await pTimeout(closed, { milliseconds: DELIVERY_DRAIN_MS, fallback: () => undefined });
    clearTimeout(timer);
  });
  startPeriodicWork(worker, shutdown);
  // Handlers with async macros wait for the second part of the SDK.
  sdk
    .then(async ({ ok }) => {
      if (!ok || shutdown.isEnding) return;
      consumers.push(...consumeWithCompiler(worker));
      startPeriodicWorkWithCompiler(worker, shutdown);
      await sets.prepare({ dependencies: {}, async: true });
    })
    .catch((error: unknown) => log.error({ err: toError(error) }, 'the preparation of the SDK failed'));
});

function buildDurations(registry: Registry): Histogram<'result'> {
  return new Histogram({
    name: 'edge_build_duration_seconds',
    help: 'Duration of builds by result',
    labelNames: ['result'],
    buckets: [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 120],
    registers: [registry],
  });
}
