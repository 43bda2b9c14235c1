/** The operation compile: reuse what is known, or request a build, and wait for the outcome. */
import { AppError } from '../errors.js';
import { found } from '../found.js';
import { findArtifact } from '../store/artifacts.js';
import {
  type Build,
  type BuildRequest,
  findBuild,
  recordCachedBuild,
  requestBuild,
} from '../store/builds.js';
import { findEndpoint } from '../store/endpoints.js';
import type { LifecycleDependencies } from './dependencies.js';

/** A build that was asked for. */
export interface RequestedBuild {
  readonly id: string;
  /** `known`: it has succeeded already; `joined`: it is under way for somebody else; `new`: nobody carries it out yet. */
  readonly state: 'known' | 'joined' | 'new';
  readonly attempt: number;
}

/** Who could build. */
export interface BuildCapacity {
  /** Fingerprints of the toolchains whose artifacts are as good as a new one. */
  readonly toolchains: readonly string[];
  /** False when a build that is not known would have to wait for a worker that is yet to come, and must not. */
  readonly canBuild: boolean;
}

/** Asks for an endpoint's code to be compiled, unless the same code was compiled before. */
export async function requestCompile(
  deps: LifecycleDependencies,
  endpointId: string,
  requestId: string,
  { toolchains, canBuild }: BuildCapacity,
): Promise<RequestedBuild> {
  const { store } = deps;
  const endpoint = found(await findEndpoint(store, endpointId), 'endpoint', endpointId);
  if (endpoint.code === null || endpoint.code.trim() === '') {
    throw new AppError(
      'endpoint_has_no_code',
      'The endpoint has no code to compile: its source is empty. Give it the source of a handler.',
    );
  }
  const request: BuildRequest = {
    endpointId,
    sourceKey: endpoint.source_key,
    code: endpoint.code,
    dependencies: endpoint.dependencies ?? {},
    requestId,
  };
  const known = await knownArtifact(deps, toolchains, request.sourceKey);
  const cached = known && (await recordCachedBuild(store, request, known));
  if (cached !== undefined) return { id: cached, state: 'known', attempt: 1 };
  if (!canBuild) throw noWorker();
  const { id, attempt, isNew } = await requestBuild(store, request);
  return { id, state: isNew ? 'new' : 'joined', attempt };
}

export function noWorker(): AppError {
  return new AppError('no_worker', 'No worker is alive that could compile; start the `worker` process.');
}

/**
 * Waits for a build to end.
 * @param signal ends the wait early, as if it had taken too long
 * @throws AppError with the outcome when it failed, `wait_timeout` when it takes too long
 */
export async function awaitBuild(
  { changes, store }: LifecycleDependencies,
  id: string,
  endpointId: string,
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
    throw new AppError('wait_timeout', `The build is still going on; see /api/builds/${id}.`, {
      details: { build_id: id },
    });
  }
  if (build.state === 'failed') {
    throw new AppError(build.error_code ?? 'compile_failed', build.error ?? 'The build failed.', {
      details: { build_id: id },
      diagnostics: build.diagnostics,
    });
  }
  // Deleted while it was compiled: the build is of no use to it any more.
  found(await findEndpoint(store, endpointId), 'endpoint', endpointId);
  return build;
}

/** What one of the toolchains has already made of the source, if the store still has it. */
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
