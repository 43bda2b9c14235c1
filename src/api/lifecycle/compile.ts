/** Compiling on request: a build that nobody carries out yet goes onto the queue. */
import { requestCompile } from '../../lifecycle/compile.js';
import { finishBuild } from '../../store/builds.js';
import type { ApiDependencies } from '../dependencies.js';

/**
 * Starts to compile an endpoint's code, unless the same code was compiled before.
 * @param isAwaited whether the caller will wait; see `requestCompile`
 * @returns the id of the build, which may have ended already
 */
export async function startCompile(
  deps: ApiDependencies,
  endpointId: string,
  requestId: string,
  isAwaited: boolean,
): Promise<string> {
  const { id, toCarryOut } = await requestCompile(deps, endpointId, requestId, isAwaited);
  if (!toCarryOut) return id;
  try {
    await deps.queues.enqueueCompile(toCarryOut, requestId);
  } catch (error) {
    await finishBuild(deps.store, toCarryOut, {
      state: 'failed',
      errorCode: 'queue_unavailable',
      error: 'The job queue could not be reached; compile again.',
      diagnostics: [],
      timings: {},
    });
    throw error;
  }
  return id;
}
