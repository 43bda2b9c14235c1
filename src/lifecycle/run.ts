/** The operations start and stop: write the desired state, and wait until every gateway has reconciled it. */
import { AppError, notFound } from '../errors.js';
import { awaitLiveNodes } from '../reconcile/nodes.js';
import {
  confirmRun,
  observedRun,
  type RequestedStart,
  type RunObservation,
  requestStart,
  requestStop,
  revertRun,
} from '../store/endpoint-runs.js';
import { findEndpoint } from '../store/endpoints.js';
import type { LifecycleDependencies } from './lifecycle-dependencies.js';

/** A gateway needs a moment more than the handler itself. */
const NOTICE_MS = 5_000;

/**
 * Runs the endpoint's artifact on all gateways.
 * @param signal ends the wait; the start itself continues
 * @returns the process id on the gateway that has been running longest
 */
export async function startEndpoint(
  deps: LifecycleDependencies,
  id: string,
  requestId: string,
  signal?: AbortSignal,
): Promise<number> {
  const { store } = deps;
  await requireGateways(deps);
  const run = await requestStart(store, id, requestId);
  if (!run) throw notFound('endpoint', id);
  if (run.artifact === null) {
    throw new AppError('endpoint_not_compiled', 'The endpoint has no successful build; compile it first.');
  }
  const isDone = (observation: RunObservation) => hasActedOn(observation, run);
  const seen = await awaitGateways(deps, id, isDone, run.artifact, signal);
  const failure = failureOf(seen);
  if (failure) {
    await revertRun(store, id, run, failure.message);
    throw failure;
  }
  await confirmRun(store, id, run);
  const pid = seen?.[0]?.pid;
  if (typeof pid !== 'number') throw new Error(`endpoint ${id} is observed as running without a process`);
  return pid;
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
export async function stopEndpoint(deps: LifecycleDependencies, id: string): Promise<void> {
  const { store } = deps;
  const version = await requestStop(store, id);
  if (version === undefined) {
    if (!(await findEndpoint(store, id))) throw notFound('endpoint', id);
    throw new AppError('endpoint_not_running', 'The endpoint is not running.');
  }
  const seen = await awaitGateways(deps, id, (observation) => observation.version >= version, null);
  if (!seen)
    throw new AppError(
      'wait_timeout',
      'The endpoint is being stopped, but not all gateways have done so yet.',
    );
}

function hasActedOn(observation: RunObservation, { version, artifact }: RequestedStart): boolean {
  if (observation.version < version) return false;
  return (
    observation.state === 'failed' || (observation.state === 'running' && observation.artifact === artifact)
  );
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

/**
 * Waits until all live gateways have observed the desired state; undefined after the timeout.
 * @param wanted the desired artifact, null when none should run
 * @throws AppError when, meanwhile, the endpoint is deleted or the desired artifact of a start is replaced
 */
function awaitGateways(
  { changes, store, config }: LifecycleDependencies,
  endpointId: string,
  isDone: (observation: RunObservation) => boolean,
  wanted: string | null,
  signal?: AbortSignal,
): Promise<readonly RunObservation[] | undefined> {
  // Requests in flight are waited for before a handler is ended.
  const timeoutMs = config.START_TIMEOUT_MS + config.REQUEST_TIMEOUT_MS + NOTICE_MS;
  let isRepeatedRead = false;
  const read = async () => {
    const run = await observedRun(store, endpointId);
    if (!run) throw notFound('endpoint', endpointId);
    const { observations, desired_artifact } = run;
    if (observations.every((observation) => observation !== undefined && isDone(observation))) {
      return observations as RunObservation[];
    }
    if (wanted !== null && desired_artifact !== wanted) {
      throw new AppError(
        'start_overtaken',
        'The endpoint was stopped, or something else was started, before it ran.',
      );
    }
    // A gateway that joined after a stop, or missed the start before it, has nothing to report as stopped until the row
    // is announced again.
    if (isRepeatedRead && observations.includes(undefined)) store.announce('endpoint', endpointId);
    isRepeatedRead = true;
    return undefined;
  };
  return changes.waitFor('observation', endpointId, timeoutMs, read, signal);
}
