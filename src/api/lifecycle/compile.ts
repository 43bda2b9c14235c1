/** Compiling on request: puts a new build on the queue. */
import { requestCompile } from '../../lifecycle/compile.js';
import { awaitLiveNodes } from '../../reconcile/nodes.js';
import { finishBuild } from '../../store/builds.js';
import type { ApiDependencies } from '../api-dependencies.js';

/**
 * Requests a build of an endpoint's code, unless the same code was already compiled.
 * @param isAwaited whether the caller will wait, which fails without a worker; otherwise the build may be queued for a
 *   worker that starts later
 * @returns the id of the build, which may have ended already
 */
export async function startCompile(
  deps: ApiDependencies,
  endpointId: string,
  requestId: string,
  isAwaited: boolean,
): Promise<string> {
  const workers = await awaitLiveNodes(deps.store, 'worker');
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
