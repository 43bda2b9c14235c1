/** Deploying from the API: makes sure that versions are compiled, and runs them. */
import { AppError, requireFound } from '../../errors.js';
import { buildStart, type CrateUpdate, startOfVersion } from '../../lifecycle/build-start.js';
import { buildSource, compilable } from '../../lifecycle/compile.js';
import {
  awaitDeployment,
  type RunningDeployment,
  requireGateways,
  runDeployment,
} from '../../lifecycle/run.js';
import type { Origin } from '../../model/actor.js';
import { requireSource } from '../../model/source-files.js';
import type { KeyedSource } from '../../model/source-key.js';
import type { Store } from '../../store/database.js';
import { listDeployments, requestSourceDeployment } from '../../store/deployments.js';
import type { DeployedTarget, StickyBy } from '../../store/endpoint-runs.js';
import { findEndpoint } from '../../store/endpoints.js';
import { type EndpointVersion, replaceArtifact, versionNumbers } from '../../store/versions.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { requireVersion } from './find-version.js';
import { versionToRollBackTo } from './rollback-target.js';

/** What to deploy. Members that are left out are those of the draft. */
export interface DeployRequest extends Partial<KeyedSource> {
  /** Which crates are resolved anew. */
  readonly update?: CrateUpdate;
  readonly message?: string | null;
  readonly percent?: number;
}

/** Saves, compiles and starts in one. When one of these fails, the endpoint is as it was before. */
export async function deploySource(
  deps: ApiDependencies,
  endpointId: string,
  { message = null, percent = 100, update, ...changes }: DeployRequest,
  origin: Origin,
) {
  const { store } = deps;
  const draft = requireFound(await findEndpoint(store, endpointId), 'endpoint', endpointId);
  const changed = requireSource({ ...draft, ...changes });
  await requireGateways(deps);
  const source = compilable(changed);
  const start = await buildStart(store, endpointId, source, update);
  const build = await buildSource(deps, source, start, endpointId, origin);
  const { id: buildId, artifact, resolved_lock: resolvedLock, cached } = build;
  const deployment = await requestSourceDeployment(store, {
    endpointId,
    source: { ...source, artifact, resolvedLock },
    buildId,
    percent,
    message,
    origin,
  });
  const running = await awaitDeployment(deps, endpointId, deployment);
  const { version } = requireFound(deployment, 'endpoint', endpointId);
  return { version, build_id: buildId, cached, ...asRunning(running) };
}

/** Runs a version that has served before: the given one, or the one before the current one. */
export async function rollBack(
  deps: ApiDependencies,
  endpointId: string,
  request: { readonly version?: number; readonly message?: string | null },
  origin: Origin,
) {
  const { store } = deps;
  requireFound(await findEndpoint(store, endpointId), 'endpoint', endpointId);
  const version = request.version ?? (await previousVersion(store, endpointId));
  if (version === undefined) {
    throw new AppError(
      'nothing_to_roll_back_to',
      'No other version has served before; name one of GET /api/endpoints/{id}/versions.',
    );
  }
  const target = await availableTarget(deps, endpointId, { version, percent: 100 }, origin);
  const running = await runDeployment(deps, {
    endpointId,
    kind: 'rollback',
    targets: [target],
    message: request.message ?? null,
    origin,
  });
  return { version, ...asRunning(running) };
}

async function previousVersion(store: Store, endpointId: string): Promise<number | undefined> {
  const existing = await versionNumbers(store, endpointId);
  return versionToRollBackTo(await listDeployments(store, endpointId), new Set(existing));
}

/** Runs one version, or two that share the requests. */
export async function setDeployment(
  deps: ApiDependencies,
  endpointId: string,
  request: {
    readonly targets: readonly { readonly version: number; readonly percent: number }[];
    readonly sticky?: StickyBy | null;
    readonly message?: string | null;
  },
  origin: Origin,
) {
  requireFound(await findEndpoint(deps.store, endpointId), 'endpoint', endpointId);
  for (const { version } of request.targets) await requireVersion(deps.store, endpointId, version);
  requireWhole(request.targets);
  const targets: DeployedTarget[] = [];
  for (const target of request.targets) targets.push(await availableTarget(deps, endpointId, target, origin));
  targets.sort((left, right) => right.percent - left.percent);
  const running = await runDeployment(deps, {
    endpointId,
    kind: targets.length > 1 ? 'canary' : 'deploy',
    targets,
    sticky: request.sticky ?? null,
    message: request.message ?? null,
    origin,
  });
  return {
    targets: targets.map(({ version, percent }) => ({ version, percent })),
    ...asRunning(running),
  };
}

function asRunning({ id, pid }: RunningDeployment) {
  return { deployment_id: id, pid: pid ?? null, status: 'running' as const };
}

/** @throws AppError invalid_input */
function requireWhole(targets: readonly { readonly version: number; readonly percent: number }[]): void {
  const sum = targets.reduce((total, { percent }) => total + percent, 0);
  if (sum !== 100) {
    throw new AppError('invalid_input', `body.targets: the percentages must add up to 100, not ${sum}`);
  }
  if (new Set(targets.map(({ version }) => version)).size < targets.length) {
    throw new AppError('invalid_input', 'body.targets: the two versions must differ');
  }
}

/** A version with its executable, which is made again when it was deleted. @throws AppError not_found */
async function availableTarget(
  deps: ApiDependencies,
  endpointId: string,
  { version, percent }: { readonly version: number; readonly percent: number },
  origin: Origin,
): Promise<DeployedTarget> {
  const storedVersion = await requireVersion(deps.store, endpointId, version);
  return { version, percent, artifact: await executableOf(deps, storedVersion, origin) };
}

/** The artifact of a version. It is compiled again, with the lock that it has, when that was deleted. */
export async function executableOf(
  deps: ApiDependencies,
  version: EndpointVersion,
  origin: Origin,
): Promise<string> {
  if (await deps.artifacts.has(version.artifact)) return version.artifact;
  const { endpoint_id } = version;
  const build = await buildSource(deps, compilable(version), startOfVersion(version), endpoint_id, origin);
  await replaceArtifact(deps.store, version, build.artifact, build.resolved_lock);
  return build.artifact;
}
