/** The operation compile: reuses a known artifact or puts a build on the queue, and waits for the outcome. */
import type { Config } from '../config.js';
import { AppError, requireFound } from '../errors.js';
import type { Origin } from '../model/actor.js';
import { requireCrateSources } from '../model/crate-sources.js';
import { describePreparation } from '../model/preparation.js';
import { type BuildStart, buildKey, FROM_SOURCE, type KeyedSource, sourceKey } from '../model/source-key.js';
import { compileJob } from '../queues/jobs.js';
import type { Queues } from '../queues/queues.js';
import { awaitLiveNodes } from '../reconcile/nodes.js';
import { findArtifact } from '../store/artifacts.js';
import { finishBuild } from '../store/build-attempts.js';
import {
  type Build,
  type BuildRequest,
  type CompilableSource,
  findBuild,
  recordCachedBuild,
  requestBuild,
} from '../store/builds.js';
import type { Store } from '../store/database.js';
import { endpointName, findSource } from '../store/endpoints.js';
import { livePreparations } from '../store/nodes.js';
import { buildStart, type CrateUpdate } from './build-start.js';
import type { LifecycleDependencies } from './lifecycle-dependencies.js';

/** A requested build. */
export interface RequestedBuild {
  readonly id: string;
  /** `known`: it has already succeeded; `joined`: another request started it; `new`: it has to be put on the queue. */
  readonly state: 'known' | 'joined' | 'new';
  readonly attempt: number;
}

/** The available build capacity. */
export interface BuildCapacity {
  /** Fingerprints of the toolchains whose artifacts can be reused. */
  readonly toolchains: readonly string[];
  /** False when there is no worker, and a build that is not known must not wait for one. */
  readonly canBuild: boolean;
  /** Most builds of an owner that have not ended; undefined where the caller has a limit of its own. */
  readonly limit?: number;
}

/** What compiling by way of the queue needs besides. */
export interface CompileDependencies extends LifecycleDependencies {
  readonly config: LifecycleDependencies['config'] & Pick<Config, 'BUILDS_QUEUED_LIMIT' | 'COMPILE_WAIT_MS'>;
  readonly queues: Pick<Queues, 'enqueue'>;
  /** Ends waiting early. */
  readonly waitsEnd: AbortSignal;
}

/**
 * Puts a build of an endpoint's draft on the queue, unless the same code was already compiled.
 * @param isAwaited whether the caller will wait, which fails without a worker; otherwise the build may be queued for a
 *   worker that starts later
 * @param update which crates are resolved anew
 * @returns the id of the build, which may have ended already
 */
export async function startCompile(
  deps: CompileDependencies,
  endpointId: string,
  origin: Origin,
  isAwaited: boolean,
  update?: CrateUpdate,
): Promise<string> {
  const capacity = await buildCapacity(deps, isAwaited);
  return enqueued(deps, await requestCompile(deps, endpointId, origin, capacity, update), endpointId, origin);
}

/**
 * Builds a source whose outcome is written to no endpoint, and waits for it.
 * @param start what the build begins with besides
 * @throws AppError when that fails
 */
export async function buildSource(
  deps: CompileDependencies,
  source: CompilableSource,
  start: BuildStart,
  endpointId: string,
  origin: Origin,
): Promise<Build & { readonly artifact: string }> {
  const { domain: host } = requireFound(await findSource(deps.store, endpointId), 'endpoint', endpointId);
  const capacity = await buildCapacity(deps, true);
  const requested = await requestBuildOf(
    deps,
    { ...source, start, endpointId: null, host, origin },
    capacity,
  );
  const id = await enqueued(deps, requested, endpointId, origin);
  const build = await awaitBuild(deps, id, endpointId, deps.config.COMPILE_WAIT_MS, deps.waitsEnd);
  const { artifact } = build;
  if (artifact === null) throw new Error(`build ${id} has succeeded without an executable`);
  return { ...build, artifact };
}

async function buildCapacity(
  { store, config }: CompileDependencies,
  isAwaited: boolean,
): Promise<BuildCapacity> {
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
  { store, queues }: CompileDependencies,
  build: RequestedBuild,
  endpointId: string,
  origin: Origin,
): Promise<string> {
  if (build.state !== 'new') return build.id;
  try {
    const endpoint = await endpointName(store, endpointId);
    await queues.enqueue('compile', compileJob(build, origin.requestId, endpoint));
  } catch (error) {
    await finishBuild(store, build, {
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

/**
 * Requests a build of an endpoint's code, unless the same code was already compiled.
 * @param origin with who asked for it, where that is somebody else
 * @param update which crates are resolved anew
 */
export async function requestCompile(
  deps: LifecycleDependencies,
  endpointId: string,
  { principal, ...origin }: Origin & Pick<BuildRequest, 'principal'>,
  capacity: BuildCapacity,
  update?: CrateUpdate,
): Promise<RequestedBuild> {
  const endpoint = requireFound(await findSource(deps.store, endpointId), 'endpoint', endpointId);
  const source = compilable(endpoint);
  const request: BuildRequest = {
    endpointId,
    ...source,
    start: await buildStart(deps.store, endpointId, source, update),
    host: endpoint.domain,
    origin,
    ...(principal !== undefined && { principal }),
  };
  return requestBuildOf(deps, request, capacity);
}

/** A source that can be compiled. @throws AppError endpoint_has_no_code */
export function compilable(source: KeyedSource): CompilableSource {
  const { code, dependencies, edition, entry, files, lock } = source;
  if (code !== null && code.trim() !== '')
    return {
      ...{ code, dependencies: dependencies ?? {}, edition, entry, files, lock },
      sourceKey: sourceKey(source),
    };
  throw new AppError(
    'endpoint_has_no_code',
    'The endpoint has no code to compile: its source is empty. Give it the source of a handler.',
  );
}

/**
 * Requests a build of a source, unless it was already compiled.
 * @throws AppError invalid_dependency, no_worker, queue_full
 */
export async function requestBuildOf(
  deps: LifecycleDependencies,
  request: BuildRequest,
  { toolchains, canBuild, limit }: BuildCapacity,
): Promise<RequestedBuild> {
  const { store } = deps;
  const known = await knownArtifact(
    deps,
    toolchains,
    buildKey(request.sourceKey, request.start ?? FROM_SOURCE),
  );
  const cached = known && (await recordCachedBuild(store, request, known));
  if (cached !== undefined) return { id: cached, state: 'known', attempt: 1 };
  // What was stored or built before may be from a host that is not allowed any more.
  const { files, dependencies } = request;
  requireCrateSources('dependencies', dependencies, { files, allowed: deps.config.CARGO_SOURCES });
  if (!canBuild) throw noWorker();
  const { id, attempt, isNew } = await requestBuild(store, request, limit);
  return { id, state: isNew ? 'new' : 'joined', attempt };
}

export function noWorker(): AppError {
  return new AppError('no_worker', 'No worker is alive that could compile; start the `worker` process.');
}

/**
 * Waits for a build to end.
 * @param endpointId that it is for, and that must still be there; null: there need not be one yet
 * @param signal ends the wait early, like the timeout
 * @throws AppError with the outcome when it failed, `wait_timeout` after the timeout
 */
export async function awaitBuild(
  { changes, store }: LifecycleDependencies,
  id: string,
  endpointId: string | null,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Build> {
  const read = async () => {
    const current = await findBuild(store, id);
    return current?.state === 'succeeded' || current?.state === 'failed' ? current : undefined;
  };
  const build = await changes.waitFor('build', id, timeoutMs, read, signal).catch((error) => {
    if (signal?.aborted) return undefined;
    throw error;
  });
  if (!build) {
    throw await stillBuilding(store, id);
  }
  if (build.state === 'failed') {
    throw new AppError(build.error_code ?? 'compile_failed', build.error ?? 'The build failed.', {
      details: { build_id: id },
      diagnostics: build.diagnostics,
    });
  }
  // The endpoint may have been deleted during the build.
  if (endpointId !== null) requireFound(await endpointName(store, endpointId), 'endpoint', endpointId);
  return build;
}

async function stillBuilding(store: Store, id: string): Promise<AppError> {
  const preparing = await livePreparations(store);
  const reason = preparing.map(
    (preparation) => ` Still being prepared: ${describePreparation(preparation)}.`,
  );
  return new AppError(
    'wait_timeout',
    `The build is still going on; see /api/builds/${id}.${reason.join('')}`,
    {
      details: { build_id: id, ...(preparing.length > 0 && { preparing }) },
    },
  );
}

/** The artifact that one of the toolchains made for the key of a build, if the artifact store still has it. */
async function knownArtifact(
  { store, artifacts }: LifecycleDependencies,
  toolchains: readonly string[],
  key: string,
) {
  for (const toolchain of toolchains) {
    const known = await findArtifact(store, key, toolchain);
    if (known && (await artifacts.has(known.digest))) return known;
  }
  return undefined;
}
