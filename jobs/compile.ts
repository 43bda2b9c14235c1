/** The job `compile`: carries out one attempt of a queued build. */

import type { Logger } from 'pino';
import type { Histogram } from 'prom-client';
import type { ArtifactStore } from '../src/artifacts/artifact-store.js';
import type { Buildable, Builder, BuiltHandler } from '../src/build/builder.js';
import type { WaitingBuild } from '../src/build/building-sets.js';
import { renderDiagnostics } from '../src/build/diagnostics.js';
import type { Config } from '../src/config.js';
import { AppError, type ErrorCode } from '../src/errors.js';
import { hasCrates } from '../src/model/crates.js';
import { turnOf } from '../src/model/owner.js';
import type { FileRef } from '../src/model/source-files.js';
import { buildKey } from '../src/model/source-key.js';
import { buildJobId, type CompileJob, compileJob } from '../src/queues/jobs.js';
import { FailedJob } from '../src/queues/queues.js';
import type { Changes } from '../src/reconcile/changes.js';
import { findArtifact, saveArtifact } from '../src/store/artifacts.js';
import {
  buildsOfWaitingOwners,
  CANCELLED,
  type ClaimedBuild,
  claimBuild,
  finishBuild,
} from '../src/store/build-attempts.js';
import { type BuildAttempt, type BuildResult, findBuild } from '../src/store/builds.js';
import type { Store } from '../src/store/database.js';
import { keepLock, readLock, readSourceFiles } from '../src/store/source-files.js';
import { isDiskFull } from '../src/util/disk-full.js';
import type { ThisWorker } from './active-jobs.js';
import type { SharedQueue } from './consume-in-turns.js';

/**
 * While some builds compile, others access the database or wait for their crates to be built, which can take minutes,
 * and must not keep a compiler idle. Another limit bounds how many compile at a time.
 */
const JOBS_PER_COMPILER = 16;

/** The dependencies of the processor. */
export interface CompileContext extends ThisWorker {
  readonly store: Store;
  readonly changes: Changes;
  readonly builder: Builder;
  readonly artifacts: ArtifactStore;
  /** Fingerprint of the toolchain the builder uses. */
  readonly toolchain: string;
  readonly log: Logger;
  /** Seconds of builds by result. */
  readonly durations: Histogram<'result'>;
}

/** What consuming a queue of builds needs besides. */
export interface CompilerContext extends CompileContext {
  readonly config: Pick<Config, 'WORKER_CONCURRENCY'>;
  /** Aborted when the worker has to stop. */
  readonly interrupt: AbortSignal;
}

/** The queue of builds, as a worker consumes it. */
export function compileQueue(context: CompilerContext): SharedQueue<'compile'> {
  const { store, config, interrupt } = context;
  return {
    ...{ name: 'compile', slots: config.WORKER_CONCURRENCY * JOBS_PER_COMPILER },
    work: async (job) => {
      const result = await compile(job, context, interrupt);
      if (result?.state === 'failed') throw new FailedJob(result.error);
    },
    waiting: async (sinceMs, limit) => jobsOf(await buildsOfWaitingOwners(store, sinceMs, limit)),
    waitingParts: async (sinceMs, limit) =>
      jobsOf(await buildsOfWaitingOwners(store, sinceMs, limit, 'parts')),
  };
}

function jobsOf(builds: Awaited<ReturnType<typeof buildsOfWaitingOwners>>): CompileJob[] {
  return builds.map((build) => compileJob(build, build.request_id));
}

/**
 * Compiles. Running it twice for one attempt is harmless: the second run finds nothing to claim. When it throws, the
 * row stays "running" without an active job, and recovery queues the build again.
 * @param signal stops the compiler when the worker has to stop
 * @returns the outcome of this attempt; undefined when it does not count
 */
export function compile(
  job: CompileJob,
  context: CompileContext,
  signal?: AbortSignal,
): Promise<BuildResult | undefined> {
  const attempt = { id: job.buildId, attempt: job.attempt };
  return context.activeJobs.run(buildJobId(attempt), () => carryOut(attempt, job, context, signal));
}

async function carryOut(
  attempt: BuildAttempt,
  job: CompileJob,
  context: CompileContext,
  signal?: AbortSignal,
): Promise<BuildResult | undefined> {
  const { store, workerId, durations } = context;
  const log = context.log.child({ request_id: job.requestId, build_id: job.buildId });
  const build = await claimBuild(store, attempt, workerId);
  if (!build) {
    log.info({ attempt: job.attempt }, 'build is no longer waiting for this job');
    return undefined;
  }
  const started = performance.now();
  const cancelled = new AbortController();
  const unwatch = onEnded(build, context, () => cancelled.abort());
  const stop = AbortSignal.any([cancelled.signal, ...(signal ? [signal] : [])]);
  const waiting = { id: build.id, endpoint: job.endpoint ?? null };
  const result = await resultOf(build, waiting, context, stop).finally(unwatch);
  if (cancelled.signal.aborted) {
    log.info('build cancelled');
    return CANCELLED;
  }
  if (signal?.aborted) {
    // Not a failure of the handler: recovery queues the build again.
    log.warn('build interrupted by the end of this worker');
    return undefined;
  }
  const counts = await finishBuild(store, attempt, result);
  const label = result.state === 'succeeded' ? (result.cached ? 'cached' : 'succeeded') : result.errorCode;
  durations.observe({ result: label }, (performance.now() - started) / 1000);
  log.info({ result: label, ...result.timings }, 'build finished');
  return counts ? result : undefined;
}

/**
 * Calls back when somebody else ends a build that this worker carries out. Should that be missed, its outcome does not
 * count. @returns ends the watch
 */
function onEnded(
  { id, attempt }: ClaimedBuild,
  { store, changes, log }: CompileContext,
  ended: () => void,
): () => void {
  return changes.onChange('build', (changed) => {
    if (changed !== id) return;
    findBuild(store, id)
      .then((build) => {
        if (build?.state !== 'running' || build.attempt !== attempt) ended();
      })
      .catch((error: unknown) =>
        log.warn({ err: error, build_id: id }, 'a change of a build cannot be read'),
      );
  });
}

async function resultOf(
  build: ClaimedBuild,
  waiting: WaitingBuild,
  context: CompileContext,
  signal?: AbortSignal,
): Promise<BuildResult> {
  const { store, builder, artifacts, toolchain } = context;
  const known = await findArtifact(store, build.source_key, toolchain);
  // Saved again, so that it is kept until the build is recorded.
  if (known) await saveArtifact(store, known);
  if (known && (await artifacts.has(known.digest))) {
    return {
      state: 'succeeded',
      artifact: known.digest,
      resolvedLock: known.resolved_lock ?? null,
      diagnostics: known.diagnostics,
      cached: true,
      timings: {},
    };
  }
  let built: BuiltHandler;
  try {
    const contents = await readSourceFiles(store, build.files);
    const turn = turnOf(build.principal, build.owner ?? build.id);
    const crates = { lock: await lockOf(build, store), isFresh: hasCrates(build) && build.resolves_anew };
    built = await builder.build({ ...build, build: waiting, contents, turn, ...crates }, signal);
  } catch (error) {
    // Disk full, artifact store unavailable and so on: the caller learns that the handler is not at fault, the log has
    // the reason.
    context.log.error(
      { err: error, build_id: build.id, request_id: build.request_id },
      'build could not be carried out',
    );
    return { state: 'failed', ...faultOf(error), diagnostics: [], timings: {} };
  }
  const { diagnostics, timings } = built;
  if (!built.ok) {
    const errorCode = built.limit ?? 'compile_failed';
    return { state: 'failed', errorCode, error: renderDiagnostics(diagnostics), diagnostics, timings };
  }
  const { digest, size } = built;
  // PostgreSQL being unavailable is not an outcome of the build: it is retried.
  const resolvedLock = built.lock === null ? null : await keepLock(store, built.lock);
  const artifact = { toolchain, digest, size, diagnostics, resolved_lock: resolvedLock };
  for (const source_key of keysOf(build, resolvedLock))
    await saveArtifact(store, { ...artifact, source_key });
  // Another source may have produced the same artifact long ago, and it may be deleted concurrently.
  if (!(await artifacts.has(digest))) throw new Error(`artifact ${digest} was deleted as it was stored`);
  return { state: 'succeeded', artifact: digest, resolvedLock, diagnostics, cached: false, timings };
}

/** The lock that the crates of a build are resolved from. */
async function lockOf(build: ClaimedBuild, store: Store): Promise<Buildable['lock']> {
  const { lock, base_lock } = build;
  const from = lock ?? base_lock;
  return from && hasCrates(build) ? { text: await readLock(store, from), isStrict: lock !== null } : null;
}

/** The keys of builds that come to the same: this one, and the next one, which begins with the lock of this one. */
function keysOf(build: ClaimedBuild, resolved: FileRef | null): string[] {
  const { source_key, draft_key, lock } = build;
  if (resolved === null || lock !== null || !hasCrates(build)) return [source_key];
  const next = buildKey(draft_key ?? source_key, { lock: resolved, update: null });
  return [...new Set([source_key, next])];
}

/**
 * The error that the caller sees for a failure of the service: errors of our own are shown, the rest is only logged.
 */
function faultOf(thrown: unknown): { errorCode: ErrorCode; error: string } {
  if (thrown instanceof AppError) return { errorCode: thrown.code, error: thrown.message };
  if (isDiskFull(thrown)) {
    return {
      errorCode: 'no_disk_space',
      error:
        'There is no room left on the disk of the worker (DATA_DIR) or of the artifact store (ARTIFACTS_URL); ' +
        'make room, and compile again.',
    };
  }
  return {
    errorCode: 'internal_error',
    error: 'The build could not be carried out because of a fault of the service; its log has the details.',
  };
}
