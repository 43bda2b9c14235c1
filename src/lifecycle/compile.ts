/** The operation compile: reuses a known artifact or requests a build, and waits for the outcome. */
import { AppError, requireFound } from '../errors.js';
import type { Origin } from '../model/actor.js';
import { describePreparation } from '../model/preparation.js';
import { findArtifact } from '../store/artifacts.js';
import {
  type Build,
  type BuildRequest,
  findBuild,
  recordCachedBuild,
  requestBuild,
} from '../store/builds.js';
import type { Store } from '../store/database.js';
import { endpointName, findSource } from '../store/endpoints.js';
import { livePreparations } from '../store/nodes.js';
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
  /** Of builds of an owner that have not ended; undefined where the caller has a limit of its own. */
  readonly limit?: number;
}

/** Requests a build of an endpoint's code, unless the same code was already compiled. */
export async function requestCompile(
  deps: LifecycleDependencies,
  endpointId: string,
  origin: Origin,
  capacity: BuildCapacity,
): Promise<RequestedBuild> {
  const endpoint = requireFound(await findSource(deps.store, endpointId), 'endpoint', endpointId);
  const request: BuildRequest = {
    endpointId,
    sourceKey: endpoint.source_key,
    code: requireCode(endpoint.code),
    dependencies: endpoint.dependencies ?? {},
    host: endpoint.domain,
    origin,
  };
  return requestBuildOf(deps, request, capacity);
}

/** @throws AppError endpoint_has_no_code */
export function requireCode(code: string | null): string {
  if (code !== null && code.trim() !== '') return code;
  throw new AppError(
    'endpoint_has_no_code',
    'The endpoint has no code to compile: its source is empty. Give it the source of a handler.',
  );
}

/** Requests a build of a source, unless it was already compiled. @throws AppError no_worker, queue_full */
export async function requestBuildOf(
  deps: LifecycleDependencies,
  request: BuildRequest,
  { toolchains, canBuild, limit }: BuildCapacity,
): Promise<RequestedBuild> {
  const { store } = deps;
  const known = await knownArtifact(deps, toolchains, request.sourceKey);
  const cached = known && (await recordCachedBuild(store, request, known));
  if (cached !== undefined) return { id: cached, state: 'known', attempt: 1 };
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

/** The artifact that one of the toolchains made of the source, if the artifact store still has it. */
async function knownArtifact(
  { store, artifacts }: LifecycleDependencies,
  toolchains: readonly string[],
  sourceKey: string,
) {
  for (const toolchain of toolchains) {
    const known = await findArtifact(store, sourceKey, toolchain);
    if (known && (await artifacts.has(known.digest))) return known;
  }
  return undefined;
}
