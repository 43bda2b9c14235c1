/** The job `handler`: takes one handler of an imported bundle from its source to compiled or, if wanted, running. */
import { AppError, requireFound } from '../src/errors.js';
import { awaitBuild, requestCompile } from '../src/lifecycle/compile.js';
import type { LifecycleDependencies } from '../src/lifecycle/lifecycle-dependencies.js';
import { startEndpoint } from '../src/lifecycle/run.js';
import { compileJob, type HandlerJob, handlerJobId } from '../src/queues/jobs.js';
import { FailedJob } from '../src/queues/queues.js';
import { endpointName } from '../src/store/endpoints.js';
import {
  advanceHandler,
  type ClaimedHandler,
  claimHandler,
  finishHandler,
  type HandlerResult,
  type HandlerStage,
  handlersOfWaitingOwners,
} from '../src/store/import-handlers.js';
import { finishImport } from '../src/store/imports.js';
import { type CompileContext, type CompilerContext, compile } from './compile.js';
import type { SharedQueue } from './consume-in-turns.js';

/** Some handlers of a bundle compile while others are started. A low number, so that other workers get a share. */
const HANDLERS_PER_COMPILER = 4;
/**
 * A build may be queued behind many others, and be queued again after its worker ended; beyond this time, waiting
 * longer does not help.
 */
const BUILD_WAIT_MS = 3600_000;

/** The queue of handlers, as a worker consumes it. */
export function handlerQueue(
  context: CompilerContext & { readonly lifecycle: LifecycleDependencies },
): SharedQueue<'handler'> {
  const { store, lifecycle, config, interrupt } = context;
  return {
    ...{ name: 'handler', slots: config.WORKER_CONCURRENCY * HANDLERS_PER_COMPILER },
    work: (job) => runHandler(job, context, lifecycle, interrupt),
    waiting: (sinceMs, limit) => handlersOfWaitingOwners(store, sinceMs, limit),
    waitingParts: (sinceMs, limit) => handlersOfWaitingOwners(store, sinceMs, limit, 'parts'),
  };
}

/**
 * Processes a handler. Running it twice for one attempt is harmless: the second run finds nothing to claim. When the
 * service itself fails, the row stays without an active job, and recovery queues it again.
 * @param signal aborts when the worker has to stop
 */
export function runHandler(
  job: HandlerJob,
  context: CompileContext,
  lifecycle: LifecycleDependencies,
  signal: AbortSignal,
): Promise<void> {
  return context.activeJobs.run(handlerJobId(job), () => carryOut(job, context, lifecycle, signal));
}

async function carryOut(
  job: HandlerJob,
  context: CompileContext,
  lifecycle: LifecycleDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { importId, endpointId, requestId } = job;
  const { store, workerId } = context;
  const log = context.log.child({ request_id: requestId, import_id: importId, endpoint_id: endpointId });
  const claimed = await claimHandler(store, job, workerId);
  if (!claimed) {
    log.info({ attempt: job.attempt }, 'handler is no longer waiting for this job');
    return;
  }
  const result = await resultOf(job, claimed, context, lifecycle, signal);
  if (!result) {
    // Recovery queues it again.
    log.warn('handler interrupted by the end of this worker');
    return;
  }
  await finishHandler(store, job, result);
  log.info(
    { result: result.state, ...(result.state === 'failed' && { stage: result.stage }) },
    'handler finished',
  );
  if (await finishImport(store, importId)) log.info('import finished');
  // So that the dashboard has it under Failed.
  if (result.state === 'failed') throw new FailedJob(result.message);
}

/** @returns undefined when the worker has to stop first */
async function resultOf(
  job: HandlerJob,
  { start, principal }: ClaimedHandler,
  context: CompileContext,
  lifecycle: LifecycleDependencies,
  signal: AbortSignal,
): Promise<HandlerResult | undefined> {
  const { endpointId, requestId } = job;
  const { store } = lifecycle;
  const origin = { requestId, actor: { kind: 'import', import_id: job.importId } } as const;
  let stage: HandlerStage = 'compile';
  try {
    const capacity = { toolchains: [context.toolchain], canBuild: true };
    const build = await requestCompile(lifecycle, endpointId, { ...origin, principal }, capacity);
    const { id: buildId } = build;
    let hasSucceeded = build.state === 'known';
    if (build.state === 'new') {
      await advanceHandler(store, job, { state: 'compiling', buildId });
      const result = await compile(compileJob(build, requestId, job.endpoint), context, signal);
      hasSucceeded = result?.state === 'succeeded';
    }
    if (!hasSucceeded) await awaitBuild(lifecycle, buildId, endpointId, BUILD_WAIT_MS, signal);
    await advanceHandler(store, job, { state: start ? 'starting' : 'compiled', buildId });
    if (!start) {
      // The endpoint may have been deleted during the build. A start checks that itself.
      requireFound(await endpointName(store, endpointId), 'endpoint', endpointId);
      return { state: 'compiled' };
    }
    stage = 'start';
    await startEndpoint(lifecycle, endpointId, origin, signal);
    return { state: 'started' };
  } catch (thrown) {
    if (signal.aborted) return undefined;
    if (thrown instanceof AppError) return { state: 'failed', stage, message: thrown.message };
    throw thrown;
  }
}
