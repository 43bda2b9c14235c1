/** Compiling on request: puts new builds on the queue. */
import { requireFound } from '../../errors.js';
import {
  awaitBuild,
  type BuildCapacity,
  type RequestedBuild,
  requestBuildOf,
  requestCompile,
} from '../../lifecycle/compile.js';
import type { Origin } from '../../model/actor.js';
import { compileJob } from '../../queues/jobs.js';
import { awaitLiveNodes } from '../../reconcile/nodes.js';
import { finishBuild } from '../../store/build-attempts.js';
import type { Build, CompilableSource } from '../../store/builds.js';
import { endpointName, findSource } from '../../store/endpoints.js';
import type { ApiDependencies } from '../api-dependencies.js';

/**
 * Requests a build of an endpoint's draft, unless the same code was already compiled.
 * @param isAwaited whether the caller will wait, which fails without a worker; otherwise the build may be queued for a
 *   worker that starts later
 * @returns the id of the build, which may have ended already
 */
export async function startCompile(
  deps: ApiDependencies,
  endpointId: string,
  origin: Origin,
  isAwaited: boolean,
): Promise<string> {
  const capacity = await buildCapacity(deps, isAwaited);
  return enqueued(deps, await requestCompile(deps, endpointId, origin, capacity), endpointId, origin);
}

/** Builds a source whose outcome is written to no endpoint, and waits for it. @throws AppError when that fails */
export async function buildSource(
  deps: ApiDependencies,
  source: CompilableSource,
  endpointId: string,
  origin: Origin,
): Promise<Build & { readonly artifact: string }> {
  const { domain: host } = requireFound(await findSource(deps.store, endpointId), 'endpoint', endpointId);
  const capacity = await buildCapacity(deps, true);
  const requested = await requestBuildOf(deps, { ...source, endpointId: null, host, origin }, capacity);
  const id = await enqueued(deps, requested, endpointId, origin);
  const build = await awaitBuild(deps, id, endpointId, deps.config.COMPILE_WAIT_MS, deps.waitsEnd);
  const { artifact } = build;
  if (artifact === null) throw new Error(`build ${id} has succeeded without an executable`);
  return { ...build, artifact };
}

async function buildCapacity({ store, config }: ApiDependencies, isAwaited: boolean): Promise<BuildCapacity> {
  const workers = await awaitLiveNodes(store, 'worker');
  return {
    toolchains: workers.flatMap(({ info: { toolchain } }) =>
      typeof toolchain === 'string' ? toolchain : [],
    ),
    canBuild: !isAwaited || workers.length > 0,
    limit: config.BUILDS_QUEUED_LIMIT,
  };
}

/** Puts a new build on the queue. @returns its id */
async function enqueued(
  deps: ApiDependencies,
  build: RequestedBuild,
  endpointId: string,
  origin: Origin,
): Promise<string> {
  if (build.state !== 'new') return build.id;
  try {
    const endpoint = await endpointName(deps.store, endpointId);
    await deps.queues.enqueue('compile', compileJob(build, origin.requestId, endpoint));
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
