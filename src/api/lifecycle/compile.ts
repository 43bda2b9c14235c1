/** Compiling on request: a build that nobody carries out yet goes onto the queue. */
import { requestCompile } from '../../lifecycle/compile.js';
import { presentNodes } from '../../reconcile/present-nodes.js';
import { finishBuild } from '../../store/builds.js';
import type { ApiDependencies } from '../dependencies.js';

/**
 * Starts to compile an endpoint's code, unless the same code was compiled before.
 * @param isAwaited whether the caller will wait: for nothing, when there is no worker; without waiting, a build may be
 *   queued for a worker that is yet to come
 * @returns the id of the build, which may have ended already
 */
export async function startCompile(
  deps: ApiDependencies,
  endpointId: string,
  requestId: string,
  isAwaited: boolean,
): Promise<string> {
  const workers = await presentNodes(deps.store, 'worker');
  const build = await requestCompile(deps, endpointId, requestId, {
    toolchains: workers.flatMap(({ info: { toolchain } }) =>
      typeof toolchain === 'string' ? toolchain : [],
    ),
    canBuild: !isAwaited || workers.length > 0,
  });
  if (build.state !== 'new') return build.id;
  try {
    await deps.queues.enqueueCompile(build, requestId);
  } catch (error) {
    await finishBuild(deps.store, build, {
      state: 'failed',
      errorCode: 'queue_unavailable',
      error: 'The job queue could not be reached; compile again.',
      diagnostics: [],
      timings: {},
    });
    throw error;
  }
  return build.id;
}
