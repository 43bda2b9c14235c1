/** The job `compile`: takes one build from queued to its end. */

import type { Logger } from 'pino';
import type { Histogram } from 'prom-client';
import type { ArtifactStore } from '../src/artifacts/artifact-store.js';
import type { Builder, Built } from '../src/build/builder.js';
import { renderDiagnostics } from '../src/build/diagnostics.js';
import { AppError, type ErrorCode } from '../src/errors.js';
import { isNoRoom } from '../src/no-room.js';
import { buildJobId, type CompileJob } from '../src/queues/jobs.js';
import { findArtifact, saveArtifact } from '../src/store/artifacts.js';
import {
  type Build,
  type BuildAttempt,
  type BuildResult,
  claimBuild,
  finishBuild,
} from '../src/store/builds.js';
import type { Store } from '../src/store/database.js';
import type { OwnWork } from './at-work.js';

/** What the processor works with. */
export interface CompileContext extends OwnWork {
  readonly store: Store;
  readonly builder: Builder;
  readonly artifacts: ArtifactStore;
  /** Fingerprint of the toolchain the builder uses. */
  readonly toolchain: string;
  readonly log: Logger;
  /** Seconds of builds by result. */
  readonly durations: Histogram<'result'>;
}

/**
 * Compiles. Running it twice for one attempt does no harm: the second finds nothing to claim. When it throws, the build
 * stays running in the table, is found without anybody at work on it, and is queued again.
 * @param signal ends the compiler when the worker has to stop
 * @returns true when it was this attempt that has succeeded
 */
export function compile(job: CompileJob, context: CompileContext, signal?: AbortSignal): Promise<boolean> {
  const attempt = { id: job.buildId, attempt: job.attempt };
  return context.atWork.on(buildJobId(attempt), () => carryOut(attempt, job, context, signal));
}

async function carryOut(
  attempt: BuildAttempt,
  job: CompileJob,
  context: CompileContext,
  signal?: AbortSignal,
): Promise<boolean> {
  const { store, workerId, durations } = context;
  const log = context.log.child({ request_id: job.requestId, build_id: job.buildId });
  const build = await claimBuild(store, attempt, workerId);
  if (!build) {
    log.info({ attempt: job.attempt }, 'build is no longer waiting for this job');
    return false;
  }
  const started = performance.now();
  const result = await resultOf(build, context, signal);
  if (signal?.aborted) {
    // Not the handler's fault: it stays running in the table, is found without a worker, and is queued again.
    log.warn('build interrupted by the end of this worker');
    return false;
  }
  const counts = await finishBuild(store, attempt, result);
  const label = result.state === 'succeeded' ? (result.cached ? 'cached' : 'succeeded') : result.errorCode;
  durations.observe({ result: label }, (performance.now() - started) / 1000);
  log.info({ result: label, ...result.timings }, 'build finished');
  return counts && result.state === 'succeeded';
}

async function resultOf(build: Build, context: CompileContext, signal?: AbortSignal): Promise<BuildResult> {
  const { store, builder, artifacts, toolchain } = context;
  const known = await findArtifact(store, build.source_key, toolchain);
  // Noted again, so that it is not forgotten before the build is recorded.
  if (known) await saveArtifact(store, known);
  if (known && (await artifacts.has(known.digest))) {
    return {
      state: 'succeeded',
      artifact: known.digest,
      diagnostics: known.diagnostics,
      cached: true,
      timings: {},
    };
  }
  let built: Built;
  try {
    built = await builder.build(build.code, build.dependencies, signal);
  } catch (error) {
    // Disk full, artifact store away ...: the caller learns that it was not the handler, the log learns why.
    context.log.error(
      { err: error, build_id: build.id, request_id: build.request_id },
      'build could not be carried out',
    );
    return { state: 'failed', ...faultOf(error), diagnostics: [], timings: {} };
  }
  const { diagnostics, timings } = built;
  if (!built.ok) {
    const errorCode = built.timedOut ? 'compile_timeout' : 'compile_failed';
    return { state: 'failed', errorCode, error: renderDiagnostics(diagnostics), diagnostics, timings };
  }
  const { digest, size } = built;
  // PostgreSQL away for a moment is no outcome of the build: it is tried again.
  await saveArtifact(store, { source_key: build.source_key, toolchain, digest, size, diagnostics });
  // Another source may have made the same long ago, which was being forgotten while this one was stored.
  if (!(await artifacts.has(digest))) throw new Error(`artifact ${digest} was deleted as it was stored`);
  return { state: 'succeeded', artifact: digest, diagnostics, cached: false, timings };
}

/** What the caller is told when it was not the handler's fault: what is ours to say is said, the rest is for the log. */
function faultOf(thrown: unknown): { errorCode: ErrorCode; error: string } {
  if (thrown instanceof AppError) return { errorCode: thrown.code, error: thrown.message };
  if (isNoRoom(thrown)) {
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
