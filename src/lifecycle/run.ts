/** What should run: makes a deployment the desired state, and waits until every gateway has reconciled it. */
import { AppError, notFound, requireFound } from '../errors.js';
import type { Origin } from '../model/actor.js';
import { awaitLiveNodes } from '../reconcile/nodes.js';
import { confirmDeployment, revertDeployment } from '../store/deployment-outcomes.js';
import {
  type DeploymentRequest,
  type RequestedDeployment,
  requestDeployment,
  requestStop,
} from '../store/deployments.js';
import { observedRun, type RunObservation } from '../store/endpoint-runs.js';
import { endpointName } from '../store/endpoints.js';
import type { LifecycleDependencies } from './lifecycle-dependencies.js';

/** A gateway needs a moment more than the handler itself. */
const NOTICE_MS = 5_000;

/** Attempts to find the process of a start: only a gateway that is being started needs a second one. */
const START_TRIES = 5;

/** A deployment that runs on all gateways. */
export interface RunningDeployment {
  readonly id: string;
  /**
   * Process on the gateway that has been running longest, of the version with the greatest share; undefined when its
   * handlers are asleep by now.
   */
  readonly pid: number | undefined;
}

/**
 * Runs the newest version on all gateways, also where it is asleep.
 * @param signal ends the wait; the start itself continues
 */
export async function startEndpoint(
  deps: LifecycleDependencies,
  endpointId: string,
  origin: Origin,
  signal?: AbortSignal,
): Promise<RunningDeployment & { readonly pid: number }> {
  for (let tries = 0; tries < START_TRIES; tries++) {
    const request = { endpointId, kind: 'start', targets: null, origin } as const;
    const { id, pid } = await runDeployment(deps, request, signal);
    if (pid !== undefined) return { id, pid };
    // A gateway that has just started has found it as it was confirmed before, and left it asleep.
  }
  throw new AppError('handler_start_failed', 'The handler was started, and put to sleep again each time.');
}

/**
 * Asks for a deployment, and waits until it runs on all gateways. When it does not, what ran before is desired again.
 * @param signal ends the wait; the deployment itself continues
 */
export async function runDeployment(
  deps: LifecycleDependencies,
  request: DeploymentRequest,
  signal?: AbortSignal,
): Promise<RunningDeployment> {
  await requireGateways(deps);
  const deployment = await requestDeployment(deps.store, request);
  return awaitDeployment(deps, request.endpointId, deployment, signal);
}

/** Waits until a requested deployment runs on all gateways, and settles it. */
export async function awaitDeployment(
  deps: LifecycleDependencies,
  endpointId: string,
  requested: RequestedDeployment | 'not_compiled' | undefined,
  signal?: AbortSignal,
): Promise<RunningDeployment> {
  const deployment = requireFound(requested, 'endpoint', endpointId);
  if (deployment === 'not_compiled') {
    throw new AppError('endpoint_not_compiled', 'The endpoint has no successful build; compile it first.');
  }
  const isDone = (observation: RunObservation) => hasActedOn(observation, deployment);
  const seen = await awaitGateways(deps, endpointId, isDone, deployment.id, signal);
  const failure = failureOf(seen);
  if (failure) {
    await revertDeployment(deps.store, endpointId, deployment.id, failure.message);
    throw failure;
  }
  await confirmDeployment(deps.store, endpointId, deployment.id);
  const pids = (seen ?? []).flatMap(({ serving, pid }) => serving[0]?.pid ?? pid ?? []);
  return { id: deployment.id, pid: pids[0] };
}

/**
 * Settles a deployment that nobody may be waiting for any more, if gateways have made their attempt, or have had the
 * time for it.
 * @param ageMs since it was asked for
 * @returns whether it is settled
 */
export async function settleDeployment(
  { store, config }: LifecycleDependencies,
  endpointId: string,
  deployment: RequestedDeployment,
  ageMs: number,
): Promise<boolean> {
  const run = await observedRun(store, endpointId);
  if (!run) return false;
  const seen = run.observations.filter((observation) => observation !== undefined);
  const haveActed =
    seen.length === run.observations.length &&
    seen.length > 0 &&
    seen.every((observation) => hasActedOn(observation, deployment));
  const isOver = ageMs > timeoutOf(config) + NOTICE_MS;
  if (!haveActed && !isOver) return false;
  const failure = failureOf(haveActed ? seen : undefined);
  if (failure) await revertDeployment(store, endpointId, deployment.id, failure.message);
  else await confirmDeployment(store, endpointId, deployment.id);
  return true;
}

function failureOf(seen: readonly RunObservation[] | undefined): AppError | undefined {
  if (!seen)
    return new AppError(
      'handler_start_failed',
      'The gateways did not report it as running in time; see their log.',
    );
  if (seen.length === 0) return noGateway();
  const failed = seen.find(({ state }) => state === 'failed');
  if (!failed) return undefined;
  const reason = failed.error ?? 'The handler did not start.';
  return new AppError(
    'handler_start_failed',
    seen.length === 1 ? reason : `On the machine ${failed.hostname}: ${reason}`,
  );
}

/** Stops the endpoint on all gateways. */
export async function stopEndpoint(deps: LifecycleDependencies, id: string, origin: Origin): Promise<void> {
  const { store } = deps;
  const revision = await requestStop(store, id, origin);
  if (revision === undefined) {
    if ((await endpointName(store, id)) === undefined) throw notFound('endpoint', id);
    throw new AppError('endpoint_not_running', 'The endpoint is not running.');
  }
  const seen = await awaitGateways(deps, id, (observation) => observation.revision >= revision, null);
  if (!seen)
    throw new AppError(
      'wait_timeout',
      'The endpoint is being stopped, but not all gateways have done so yet.',
    );
}

function hasActedOn({ revision, state }: RunObservation, deployment: RequestedDeployment): boolean {
  return revision >= deployment.revision && state !== 'stopped';
}

/** @throws AppError no_gateway when none is alive */
export async function requireGateways({ store }: Pick<LifecycleDependencies, 'store'>): Promise<void> {
  if ((await awaitLiveNodes(store, 'gateway')).length === 0) {
    throw noGateway();
  }
}

function noGateway(): AppError {
  return new AppError(
    'no_gateway',
    'No gateway is alive that could run the endpoint; start the `gateway` process.',
  );
}

/** Requests in flight are waited for before a handler is ended. */
function timeoutOf(config: LifecycleDependencies['config']): number {
  return config.START_TIMEOUT_MS + config.REQUEST_TIMEOUT_MS + NOTICE_MS;
}

/**
 * Waits until all live gateways have observed the desired state; undefined after the timeout.
 * @param deployment the desired deployment, null when nothing should run
 * @throws AppError when, meanwhile, the endpoint is deleted or another deployment is desired
 */
function awaitGateways(
  { changes, store, config }: LifecycleDependencies,
  endpointId: string,
  isDone: (observation: RunObservation) => boolean,
  deployment: string | null,
  signal?: AbortSignal,
): Promise<readonly RunObservation[] | undefined> {
  let isRepeatedRead = false;
  const read = async () => {
    const run = await observedRun(store, endpointId);
    if (!run) throw notFound('endpoint', endpointId);
    const { observations, deployment_id } = run;
    if (deployment !== null && deployment_id !== deployment) {
      throw new AppError(
        'start_overtaken',
        'The endpoint was stopped, or something else was started, before it ran.',
      );
    }
    if (observations.every((observation) => observation !== undefined && isDone(observation))) {
      return observations as RunObservation[];
    }
    // A gateway that joined after a stop, or missed the start before it, has nothing to report as stopped until the row
    // is announced again.
    if (isRepeatedRead && observations.includes(undefined)) store.announce('endpoint', endpointId);
    isRepeatedRead = true;
    return undefined;
  };
  return changes.waitFor('observation', endpointId, timeoutOf(config), read, signal);
}
