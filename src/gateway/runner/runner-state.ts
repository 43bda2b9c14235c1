/**
 * What an endpoint does on a gateway. Handlers crash, requests come, and something else is desired at any moment: so no
 * state is kept that one of these would have to correct. `stateOf` names what is so now; the runner takes the step of
 * that state, and looks again, until it may rest. Which state may follow which (in brackets: the runner rests):
 *
 *                something is deployed
 *   [stopped] -----------------------> starting --+
 *       ^                                         |  all its handlers run
 *       |                               waking ---+----------------------> switching
 *       |                                  ^      |                            |  requests go to them
 *   stopping                               |   replacing                       v
 *       ^         a request, or another    |      ^                        observing
 *       |         deployment               |      |                            |  that is saved
 *       |                                  |      |  a handler has crashed,    v
 *       |  nothing is deployed          [asleep]  +----------------------- [running]
 *   all states                             ^         or another is desired     |
 *                                          |                                   |  no requests
 *                                          +--------- fallingAsleep <----------+
 *
 * A handler that does not become ready, or has crashed before, leads from any state to `[backingOff]`, and after a
 * pause to the state that is so then. A newer desired state ends that pause.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Serving } from '../../contracts/front.js';
import type { DeployedTarget, DesiredDeployment } from '../../store/endpoint-runs.js';
import type { DesiredState } from './runner-host.js';
import { type RunningVersion, routedTo, runningOf } from './running-handlers.js';

/** What a runner knows of its endpoint. */
export interface Situation {
  readonly desired: DesiredState;
  /** False: its handlers should be ended, until a request comes. */
  readonly isAwake: boolean;
  /** Those that serve, those to be replaced, and those that serve once the others of their deployment run too. */
  readonly handlers: readonly RunningVersion[];
  /** Where requests go, as the front was told last. */
  readonly routed: Serving;
  /** The desired state was observed. */
  readonly isObserved: boolean;
  /** Nothing is tried before a pause is over. */
  readonly isBackingOff: boolean;
}

/** Nothing is left to do. */
interface Resting {
  readonly name: 'stopped' | 'running' | 'asleep' | 'backingOff';
}

/** A handler is missing. Meanwhile requests wait, or go to others. */
interface Starting {
  readonly name: 'starting' | 'replacing' | 'waking';
  readonly target: DeployedTarget;
}

/** Where requests go changes: to the handlers of a deployment, or to nobody until one comes. */
interface Rerouting {
  readonly name: 'switching' | 'fallingAsleep';
  readonly deployment: DesiredDeployment;
}

/** What the runner does next. */
export type Step = Starting | Rerouting | { readonly name: 'stopping' | 'observing' };
export type RunnerState = Resting | Step;

/** What a start is called, by where requests go meanwhile. */
const STARTS = { none: 'starting', starting: 'starting', running: 'replacing', asleep: 'waking' } as const;

export function stateOf(situation: Situation): RunnerState {
  const { desired, isAwake, handlers, routed, isObserved, isBackingOff } = situation;
  const { deployment } = desired;
  if (isBackingOff) return { name: 'backingOff' };
  const isServed = servesAsDesired(situation);
  if (!deployment) return { name: isServed && isObserved ? 'stopped' : 'stopping' };
  // That it sleeps is observed by others.
  if (!isAwake) return isServed ? { name: 'asleep' } : { name: 'fallingAsleep', deployment };
  if (isServed && isObserved) return { name: 'running' };
  const target = deployment.targets.find((one) => !runningOf(handlers, one, desired));
  if (target) return { name: STARTS[routed.kind], target };
  return isServed ? { name: 'observing' } : { name: 'switching', deployment };
}

/** Whether what should run does, nothing else does, and requests go there. */
export function servesAsDesired({ desired, isAwake, handlers, routed }: Situation): boolean {
  if (!desired.deployment)
    return handlers.length === 0 && routed.kind !== 'running' && routed.kind !== 'asleep';
  if (!isAwake) return handlers.length === 0 && routed.kind === 'asleep';
  const target = routedTo(handlers, desired, desired.deployment);
  return handlers.length === target.targets.length && isDeepStrictEqual(target, routed);
}

/** Whether the runner waits until something happens. */
export function isResting(state: RunnerState): state is Resting {
  const { name } = state;
  return name === 'stopped' || name === 'running' || name === 'asleep' || name === 'backingOff';
}
