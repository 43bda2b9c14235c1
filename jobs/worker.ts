/** Entry of the process `worker`: takes jobs from the queues and carries them out. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Histogram, Registry } from 'prom-client';
import { openArtifactStore } from '../src/artifacts/open.js';
import { Builder } from '../src/build/builder.js';
import { DependencySets } from '../src/build/dependency-sets.js';
import { renderDiagnostics } from '../src/build/diagnostics.js';
import { HANDLER_PROFILE } from '../src/build/rustc.js';
import { findToolchain } from '../src/build/toolchain.js';
import { searchPath, toolEnvironment } from '../src/config.js';
import { makeDataDirectory, secretPaths } from '../src/data-directory.js';
import { killLeftovers } from '../src/limited-process.js';
import { Limiter } from '../src/limiter.js';
import type { Logger } from '../src/log.js';
import { offerMetrics, registrySource } from '../src/metrics/process-metrics.js';
import { startProcess } from '../src/process.js';
import {
  COMPILE_QUEUE,
  type CompileJob,
  HANDLER_QUEUE,
  type HandlerJob,
  IMPORT_QUEUE,
  type ImportJob,
} from '../src/queues/jobs.js';
import { consume, openQueues } from '../src/queues/queues.js';
import { Changes, Periodically } from '../src/reconcile/changes.js';
import { joinNodes } from '../src/reconcile/node.js';
import { runDirectory } from '../src/run-directory.js';
import { removeAbandoned } from '../src/sandbox/abandoned.js';
import { removeTree } from '../src/sandbox/remove-tree.js';
import { openSandbox } from '../src/sandbox/sandbox.js';
import { openDatabase } from '../src/store/database.js';
import { AtWork } from './at-work.js';
import { compile } from './compile.js';
import { ArtifactSweep } from './forget-artifacts.js';
import { runHandler } from './handler.js';
import { endImport } from './import.js';
import { recoverBuilds } from './recover.js';
import { recoverImports } from './recover-imports.js';

/**
 * While some builds compile, others read and write their rows, or wait for their crates to be built, which can take
 * minutes: no compiler has to wait for that. How many compile at a time is another limit.
 */
const JOBS_PER_COMPILER = 16;
/**
 * Some handlers of a bundle compile while others are started. Not as many as there could be: what one worker holds and
 * does not work on, another could.
 */
const HANDLERS_PER_COMPILER = 4;
/** They only look whether their handlers have ended. */
const IMPORTS_AT_A_TIME = 4;
const RECOVER_EVERY_MS = 5_000;
/** Builds at hand may use this long after the worker was asked to stop; then they are left to another worker. */
const DRAIN_MS = 10_000;
/** Prepared dependency sets take some 50 MB each. */
const KEEP_UNUSED_SETS_MS = 30 * 24 * 3600 * 1000;
const TIDY_EVERY_MS = 3600 * 1000;
/** Building the SDK once may take longer than a handler ever should. */
const SDK_BUILD_LIMIT_MS = 600_000;

await startProcess('worker', async ({ config, log, shutdown }) => {
  const registry = new Registry();
  const durations = new Histogram({
    name: 'edge_build_duration_seconds',
    help: 'Duration of builds by result',
    labelNames: ['result'],
    buckets: [0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 120],
    registers: [registry],
  });

  const env = toolEnvironment();
  const toolchain = await findToolchain(HANDLER_PROFILE);
  await makeDataDirectory(config.DATA_DIR);
  const sandbox = await openSandbox(config.SANDBOX, searchPath(), log, secretPaths(config, env));
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
  /** Ends the tools at work; their builds are left to another worker. */
  const interrupt = new AbortController();
  killLeftovers();
  const scratch = await makeScratch(join(config.DATA_DIR, 'build'), log);
  shutdown.add('scratch folder', () => removeTree(scratch));
  const sets = new DependencySets({
    root: join(config.DATA_DIR, 'build', 'sets'),
    toolchain,
    sandbox,
    env,
    limits,
    signal: interrupt.signal,
  });
  await sets.removeUnfinished(log);
  shutdown.add('tools', async () => {
    interrupt.abort();
    await sets.settled();
  });

  const tidying = new Periodically(
    TIDY_EVERY_MS,
    () => sets.forgetUnused(KEEP_UNUSED_SETS_MS),
    (error) => log.warn({ err: error }, 'unused dependency sets could not be deleted'),
  );
  shutdown.add('tidying', () => tidying.stop());
  const started = performance.now();
  log.info({ rustc: toolchain.version }, 'preparing the SDK');
  await prepareSdk(sets, false);
  log.info({ ms: Math.round(performance.now() - started) }, 'SDK ready');

  const store = openDatabase(config.DATABASE_URL, (error) =>
    log.warn({ err: error }, 'announcements failed'),
  );
  shutdown.add('database', () => store.close());
  const queues = openQueues(config, log);
  shutdown.add('queues', () => queues.close());
  shutdown.add(
    'metrics',
    await offerMetrics(await runDirectory(config.DATA_DIR), 'worker', config, registrySource(registry)),
  );

  const node = await joinNodes(
    store,
    'worker',
    { toolchain: toolchain.fingerprint, rustc: toolchain.version, sandbox: sandbox.level },
    log,
  );
  shutdown.add('node', () => node.leave());

  const artifacts = await openArtifactStore(config);
  const sweep = new ArtifactSweep(store, artifacts, log);
  const sweeping = new Periodically(
    TIDY_EVERY_MS,
    () => sweep.run(),
    (error) => log.warn({ err: error }, 'unused artifacts could not be deleted'),
  );
  shutdown.add('sweeping', () => sweeping.stop());
  const slots = new Limiter(config.WORKER_CONCURRENCY);
  const builder = new Builder({ toolchain, sandbox, sets, artifacts, scratch, env, limits, slots });
  const changes = new Changes(config.DATABASE_URL, ['build', 'observation'], log);
  shutdown.add('changes', () => changes.stop());
  const context = {
    store,
    builder,
    artifacts,
    toolchain: toolchain.fingerprint,
    workerId: node.id,
    atWork: new AtWork(),
    log,
    durations,
  };
  const lifecycle = { store, changes, artifacts, config };
  const slotsFor = (jobsPerCompiler: number) => config.WORKER_CONCURRENCY * jobsPerCompiler;
  const consumers = [
    consume<CompileJob>(
      config,
      COMPILE_QUEUE,
      async (job) => {
        await compile(job.data, context, interrupt.signal);
      },
      slotsFor(JOBS_PER_COMPILER),
      log,
    ),
    consume<HandlerJob>(
      config,
      HANDLER_QUEUE,
      (job) => runHandler(job.data, context, lifecycle, interrupt.signal),
      slotsFor(HANDLERS_PER_COMPILER),
      log,
    ),
    consume<ImportJob>(
      config,
      IMPORT_QUEUE,
      (job) => endImport(job.data, store, log),
      IMPORTS_AT_A_TIME,
      log,
    ),
  ];
  shutdown.add('jobs', async () => {
    const timer = setTimeout(() => interrupt.abort(), DRAIN_MS);
    await Promise.all(consumers.map((consumer) => consumer.close()));
    clearTimeout(timer);
  });

  const recovering = new Periodically(
    RECOVER_EVERY_MS,
    async () => {
      killLeftovers();
      await recoverBuilds(store, queues, log, context);
      await recoverImports(store, queues, log, context);
    },
    (error) => log.warn({ err: error }, 'looking for lost work failed'),
  );
  shutdown.add('recovery', () => recovering.stop());

  // Handlers that use the async macros wait for this; the others need not.
  void prepareSdk(sets, true).then(
    () => log.info('SDK with async support ready'),
    (error: unknown) => {
      if (!interrupt.signal.aborted) log.error({ err: error }, 'the SDK with async support cannot be built');
    },
  );
});

/** Makes the folder for builds of this process, and removes those of workers that were killed. */
async function makeScratch(folder: string, log: Logger): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeAbandoned(folder, /^scratch-(\d+)$/, log);
  const own = join(folder, `scratch-${process.pid}`);
  // It may be there: of a worker before with the same process id, and not to be removed.
  await mkdir(own, { recursive: true });
  return own;
}

async function prepareSdk(sets: DependencySets, async: boolean): Promise<void> {
  const prepared = await sets.prepare({ dependencies: {}, async }, SDK_BUILD_LIMIT_MS);
  if (!prepared.ok) throw new Error(`The SDK cannot be built:\n${renderDiagnostics(prepared.diagnostics)}`);
}
