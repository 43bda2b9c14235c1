/** The process `worker`: takes jobs from the queues and carries them out. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pTimeout from 'p-timeout';
import { Histogram, Registry } from 'prom-client';
import { openArtifactStore } from '../src/artifacts/open.js';
import { secretPaths } from '../src/bootstrap/data-directory.js';
import { reachableFolder } from '../src/bootstrap/reachable-folder.js';
import { metricsFolders, runDirectory } from '../src/bootstrap/run-directory.js';
import { startProcess } from '../src/bootstrap/start-process.js';
import { Builder } from '../src/build/builder.js';
import { DependencySets } from '../src/build/dependency-sets.js';
import { reachableToolchain } from '../src/build/reachable-toolchain.js';
import { HANDLER_PROFILE } from '../src/build/rustc.js';
import { findToolchain } from '../src/build/toolchain.js';
import { toolEnvironment } from '../src/config.js';
import { toError } from '../src/errors.js';
import { Gateways } from '../src/internal/gateways.js';
import { registrySource, serveMetrics } from '../src/metrics/process-metrics.js';
import { type Preparation, TOOLCHAIN } from '../src/model/preparation.js';
import { queueLimit } from '../src/model/queue-room.js';
import {
  ACME_QUEUE,
  type AcmeJob,
  APPLY_QUEUE,
  type ApplyJob,
  COMPILE_QUEUE,
  type CompileJob,
  HANDLER_QUEUE,
  type HandlerJob,
  IMPORT_QUEUE,
  type ImportJob,
  INVOKE_QUEUE,
  type InvokeJob,
} from '../src/queues/jobs.js';
import { type Consumer, consume, FailedJob, openQueues } from '../src/queues/queues.js';
import { Changes } from '../src/reconcile/changes.js';
import { joinNodes } from '../src/reconcile/nodes.js';
import { removeAbandoned } from '../src/sandbox/abandoned.js';
import { removeTree } from '../src/sandbox/remove-tree.js';
import { killAbandoned } from '../src/sandbox/run-user.js';
import { openSandbox, type Sandbox } from '../src/sandbox/sandbox.js';
import { loadSecretBox } from '../src/secrets/secret-box.js';
import { gatewayToken } from '../src/secrets/service-token.js';
import { appliesOfWaitingOwners, lostTurns, type QueuedApply } from '../src/store/apply-turns.js';
import { buildsOfWaitingOwners } from '../src/store/build-attempts.js';
import { openDatabase } from '../src/store/database.js';
import { condenseFigures } from '../src/store/figures.js';
import { handlersOfWaitingOwners } from '../src/store/import-handlers.js';
import { jobsOfWaitingOwners } from '../src/store/jobs.js';
import type { Logger } from '../src/util/log.js';
import { PeriodicTask } from '../src/util/periodic-task.js';
import { PROCESS_PATTERN, THIS_PROCESS } from '../src/util/process-liveness.js';
import { Turns } from '../src/util/turns.js';
import { HAS_UNTRUSTED_USERS, makePassable } from '../src/util/untrusted-users.js';
import { type AcmeContext, ORDER_LIMIT_MS, orderDue, runOrder } from './acme.js';
import { ActiveJobs } from './active-jobs.js';
import { alertQueue, watchAlerts } from './alerts.js';
import { runApply } from './apply.js';
import { compile } from './compile.js';
import { consumeInTurns, LOOK_EVERY_MS, type SharedQueue } from './consume-in-turns.js';
import { deliver } from './deliver.js';
import { dropAccess } from './drop-access.js';
import { dropLogs } from './drop-logs.js';
import { ArtifactSweep } from './forget-artifacts.js';
import { runHandler } from './handler.js';
import { endImport } from './import.js';
import { reportPreparation } from './preparation-progress.js';
import { recoverBuilds } from './recover.js';
import { recoverApplies } from './recover-applies.js';
import { recoverCrashLoops, recoverDeployments, tidyHistory } from './recover-deployments.js';
import { recoverImports } from './recover-imports.js';
import { recoverJobs } from './recover-jobs.js';
import { Reseal } from './reseal.js';
import { restoreSchedules, scheduleQueue, startOverdueRuns } from './schedule.js';

/**
 * While some builds compile, others access the database or wait for their crates to be built, which can take minutes,
 * and must not keep a compiler idle. Another limit bounds how many compile at a time.
 */
const JOBS_PER_COMPILER = 16;
/** Some handlers of a bundle compile while others are started. A low number, so that other workers get a share. */
const HANDLERS_PER_COMPILER = 4;
/** These jobs only check whether their handlers have ended. */
const IMPORTS_AT_A_TIME = 4;
/** These jobs wait for compilers, for their turn, and for gateways. */
const APPLIES_AT_A_TIME = 8;
/** These jobs wait for handlers. */
const REQUESTS_AT_A_TIME = 32;
/** Less than the time after which a process that is to stop is ended. */
const DELIVERY_DRAIN_MS = 35_000;
const RECOVER_EVERY_MS = 5_000;
const RESTORE_SCHEDULES_EVERY_MS = 60_000;
const DROP_LOGS_EVERY_MS = 10_000;
const WATCH_ALERTS_EVERY_MS = 5_000;
/** A new domain gets its certificate as soon. */
const ORDER_CERTIFICATES_EVERY_MS = 5_000;
/** These jobs wait for ACME servers. */
const ORDERS_AT_A_TIME = 4;
const CONDENSE_FIGURES_EVERY_MS = 60_000;
/** Active builds may take this long to finish after the worker was asked to stop; then another worker repeats them. */
const DRAIN_MS = 10_000;
/** Prepared dependency sets take some 50 MB each. */
const KEEP_UNUSED_SETS_MS = 30 * 24 * 3600 * 1000;
const TIDY_EVERY_MS = 3600 * 1000;
/** While there is a previous key. */
const RESEAL_EVERY_MS = 2_000;

await startProcess('worker', async ({ config, log, shutdown }) => {
  const registry = new Registry();
  const durations = new Histogram({
    name: 'edge_build_duration_seconds',
    help: 'Duration of builds by result',
    labelNames: ['result'],
    buckets: [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 120],
    registers: [registry],
  });

  const intervalMs = (defaultMs: number) => (defaultMs * config.PERIODIC_WORK_PERCENT) / 100;
  const env = toolEnvironment();
  const installed = await findToolchain(HANDLER_PROFILE);
  const runDir = await runDirectory(config.DATA_DIR);
  const sandbox = await openSandbox(config.SANDBOX, log, secretPaths(config, env), runDir);
  const limits = {
    timeoutMs: config.COMPILE_TIMEOUT_MS,
    memoryMb: config.COMPILE_MEMORY_MB,
    cpuSeconds: config.COMPILE_CPU_SECONDS,
    processes: config.COMPILE_PROCESSES,
    diskMb: config.COMPILE_DISK_MB,
    totalMemoryMb: config.COMPILE_TOTAL_MEMORY_MB,
    fileMb: 1024,
    openFiles: 4096,
  };
  /** Stops running tools; another worker repeats their builds. */
  const interrupt = new AbortController();
  await killAbandoned(runDir);
  log.info({ rustc: installed.version }, 'toolchain found');

  const store = openDatabase(config.DATABASE_URL, (error) =>
    log.warn({ err: error }, 'announcements failed'),
  );
  shutdown.add('database', () => store.close());
  const queues = openQueues(config, log);
  shutdown.add('queues', () => queues.close());
  shutdown.add('metrics', await serveMetrics(metricsFolders(runDir)[0], config, registrySource(registry)));

  const secrets = await loadSecretBox(config);
  if (config.SECRET_KEY_PREVIOUS !== undefined) {
    const reseal = new Reseal(store, secrets, log);
    const resealing = new PeriodicTask(
      intervalMs(RESEAL_EVERY_MS),
      () => reseal.run(),
      (error) => log.warn({ err: error }, 'values could not be encrypted with SECRET_KEY; trying again soon'),
    );
    shutdown.add('encryption', () => resealing.stop());
  }

  const copyStarted = performance.now();
  const copying = (): Preparation => {
    const seconds = Math.floor((performance.now() - copyStarted) / 1000);
    return { what: TOOLCHAIN, crates: 0, of: null, seconds, problem: null };
  };
  let preparing = () => (HAS_UNTRUSTED_USERS ? [copying()] : []);
  const facts = { toolchain: installed.fingerprint, rustc: installed.version, sandbox: sandbox.level };
  const node = await joinNodes(store, 'worker', { ...facts, preparing: preparing() }, log);
  shutdown.add('node', () => node.leave());
  const saveProgress = (current: Preparation[]) => node.update({ ...facts, preparing: current });
  const reporting = reportPreparation(() => preparing(), saveProgress, log);
  shutdown.add('progress', () => reporting.stop());

  const folder = await makeBuildFolder(config.DATA_DIR, sandbox);
  const toolchain = HAS_UNTRUSTED_USERS
    ? await reachableToolchain(installed, sandbox.needsReachablePaths, folder, log)
    : installed;
  const scratch = await makeScratch(folder, log);
  shutdown.add('scratch folder', () => removeTree(scratch));
  const root = join(folder, 'sets');
  const sets = new DependencySets({ root, toolchain, sandbox, env, limits, signal: interrupt.signal }, log);
  await sets.removeUnfinished();
  shutdown.add('tools', async () => {
    interrupt.abort();
    await sets.settled();
  });

  const tidying = new PeriodicTask(
    TIDY_EVERY_MS,
    () => sets.forgetUnused(KEEP_UNUSED_SETS_MS),
    (error) => log.warn({ err: error }, 'unused dependency sets could not be deleted'),
  );
  shutdown.add('tidying', () => tidying.stop());
  const sdk = sets.prepare({ dependencies: {}, async: false });
  preparing = () => sets.preparing();
  await saveProgress(preparing());

  const artifacts = await openArtifactStore(config);
  const sweep = new ArtifactSweep(store, artifacts, log);
  const sweeping = new PeriodicTask(
    TIDY_EVERY_MS,
    async () => {
      await tidyHistory(store, config, log);
      await sweep.run();
    },
    (error) => log.warn({ err: error }, 'old versions or unused artifacts could not be deleted'),
  );
  shutdown.add('sweeping', () => sweeping.stop());
  const turns = new Turns({ places: config.WORKER_CONCURRENCY, beyond: config.WORKER_CONCURRENCY });
  const builder = new Builder({ toolchain, sandbox, sets, artifacts, scratch, env, limits, turns });
  const changes = new Changes(
    config.DATABASE_URL,
    ['build', 'observation', 'service_observation', 'node', 'apply'],
    log,
  );
  shutdown.add('changes', () => changes.stop());
  const context = {
    store,
    changes,
    builder,
    artifacts,
    toolchain: toolchain.fingerprint,
    workerId: node.id,
    activeJobs: new ActiveJobs(),
    log,
    durations,
  };
  const lifecycle = { store, changes, artifacts, config };
  const delivery = {
    ...{ store, queues, log, workerId: node.id, activeJobs: context.activeJobs },
    maxQueuedBytes: queueLimit(config),
    gateways: new Gateways({
      store,
      token: gatewayToken(secrets),
      log,
      startTimeoutMs: config.START_TIMEOUT_MS,
      requestTimeoutMs: config.REQUEST_TIMEOUT_MS,
    }),
  };
  const applying = {
    ...{ lifecycle, queues, secrets, log, workerId: node.id, activeJobs: context.activeJobs },
    ...{ gateways: delivery.gateways, toolchain: toolchain.fingerprint },
  };
  const alerts = { store, queues, secrets, allowsPrivate: config.ALLOW_PRIVATE_URLS, log };
  const inTurns = <T>(queue: SharedQueue<T>) => consumeInTurns(config, queue, intervalMs(LOOK_EVERY_MS), log);
  // These need no compiler.
  const deliveries = [
    inTurns<InvokeJob>({
      ...{ name: INVOKE_QUEUE, slots: REQUESTS_AT_A_TIME },
      work: (job) => deliver(job, delivery),
      waiting: (sinceMs, limit) => jobsOfWaitingOwners(store, sinceMs, limit),
    }),
    inTurns(alertQueue(alerts)),
    inTurns(scheduleQueue(delivery)),
  ];
  const { ACME_DIRECTORY_URL: directory, ACME_EMAIL: email, ACME_CHALLENGE: challengeType } = config;
  const acme: AcmeContext | undefined =
    directory === undefined
      ? undefined
      : {
          ...{ store, changes, queues, secrets, directory, email, challengeType, log },
          orderLimitMs: ORDER_LIMIT_MS,
        };
  if (acme)
    deliveries.push(
      consume<AcmeJob>(config, ACME_QUEUE, (job) => runOrder(job.data, acme), ORDERS_AT_A_TIME, log),
    );
  const consumers: Consumer[] = deliveries;
  // All stop taking jobs at once. A request whose answer takes longer is sent again by another worker.
  shutdown.add('jobs', async () => {
    const timer = setTimeout(() => interrupt.abort(), DRAIN_MS);
    const closed = Promise.all(consumers.map((consumer) => consumer.close()));
    await pTimeout(closed, { milliseconds: DELIVERY_DRAIN_MS, fallback: () => undefined });
    clearTimeout(timer);
  });
  const periodic = (title: string, everyMs: number, run: () => Promise<void>) => {
    const onError = (error: Error) => log.warn({ err: error }, `${title} failed`);
    const task = new PeriodicTask(intervalMs(everyMs), run, onError);
    shutdown.add(title, () => task.stop());
  };
  // Apart from each other: one that fails, without the queue for example, holds up no other.
  periodic('ending of abandoned programs', RECOVER_EVERY_MS, () => killAbandoned(runDir));
  periodic('recovery of deployments', RECOVER_EVERY_MS, () => recoverDeployments(lifecycle, log));
  periodic('ending of crash loops', RECOVER_EVERY_MS, () => recoverCrashLoops(store, log));
  periodic('recovery of queued requests', RECOVER_EVERY_MS, () => recoverJobs(delivery));
  periodic('recovery of schedules', RECOVER_EVERY_MS, () => startOverdueRuns(delivery));
  periodic('retention of the log', DROP_LOGS_EVERY_MS, () => dropLogs(store, config, log));
  periodic('retention of the audit', DROP_LOGS_EVERY_MS, () => dropAccess(store, config));
  periodic('watching for alerts', WATCH_ALERTS_EVERY_MS, () => watchAlerts(alerts));
  if (acme) periodic('ordering certificates', ORDER_CERTIFICATES_EVERY_MS, () => orderDue(acme));
  periodic('retention of figures', CONDENSE_FIGURES_EVERY_MS, () => condenseFigures(store));
  periodic('restoring schedules', RESTORE_SCHEDULES_EVERY_MS, () => restoreSchedules(delivery));
  const slotsFor = (jobsPerCompiler: number) => config.WORKER_CONCURRENCY * jobsPerCompiler;
  const takeJobs = () => {
    consumers.push(
      inTurns<CompileJob>({
        ...{ name: COMPILE_QUEUE, slots: slotsFor(JOBS_PER_COMPILER) },
        work: async (job) => {
          const result = await compile(job, context, interrupt.signal);
          if (result?.state === 'failed') throw new FailedJob(result.error);
        },
        waiting: async (sinceMs, limit) => {
          const builds = await buildsOfWaitingOwners(store, sinceMs, limit);
          return builds.map(({ id: buildId, attempt, request_id: requestId }) => ({
            buildId,
            attempt,
            requestId,
          }));
        },
      }),
      inTurns<HandlerJob>({
        ...{ name: HANDLER_QUEUE, slots: slotsFor(HANDLERS_PER_COMPILER) },
        work: (job) => runHandler(job, context, lifecycle, interrupt.signal),
        waiting: (sinceMs, limit) => handlersOfWaitingOwners(store, sinceMs, limit),
      }),
      inTurns<ApplyJob>({
        ...{ name: APPLY_QUEUE, slots: APPLIES_AT_A_TIME },
        work: (job) => runApply(job, applying, interrupt.signal),
        urgent: async (sinceMs) => (await lostTurns(store, sinceMs)).map(jobOf),
        waiting: async (sinceMs, limit) => (await appliesOfWaitingOwners(store, sinceMs, limit)).map(jobOf),
      }),
      consume<ImportJob>(
        config,
        IMPORT_QUEUE,
        (job) => endImport(job.data, store, log),
        IMPORTS_AT_A_TIME,
        log,
      ),
    );
    periodic('recovery of builds', RECOVER_EVERY_MS, () => recoverBuilds(store, queues, log, context));
    periodic('recovery of imports', RECOVER_EVERY_MS, () => recoverImports(store, queues, log, context));
    periodic('recovery of applies', RECOVER_EVERY_MS, () => recoverApplies(applying, config));
  };
  // Until the SDK is built, jobs stay in the queue, where other workers can take them. Handlers with async macros wait
  // for the second part of the SDK.
  sdk
    .then(async ({ ok }) => {
      if (!ok || shutdown.isEnding) return;
      takeJobs();
      await sets.prepare({ dependencies: {}, async: true });
    })
    .catch((error: unknown) => log.error({ err: toError(error) }, 'the preparation of the SDK failed'));
});

function jobOf({ id: applyId, attempt, request_id: requestId }: QueuedApply): ApplyJob {
  return { applyId, attempt, requestId };
}

/** Makes the folder for all that is built on this machine. */
async function makeBuildFolder(dataDir: string, sandbox: Sandbox): Promise<string> {
  const own = join(dataDir, 'build');
  const folder = sandbox.needsReachablePaths ? await reachableFolder(dataDir, 'build') : own;
  await makePassable(folder);
  return folder;
}

/** Makes the folder for builds of this process, and removes those of workers that were killed. */
async function makeScratch(folder: string, log: Logger): Promise<string> {
  await removeAbandoned(folder, new RegExp(`^scratch-(${PROCESS_PATTERN})$`), log);
  const own = join(folder, `scratch-${THIS_PROCESS}`);
  await mkdir(own);
  return own;
}
