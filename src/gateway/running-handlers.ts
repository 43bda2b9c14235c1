/** The handlers of an endpoint that run, and which of them serve a deployment. */
import type { Deployed, DeployedTarget } from '../store/endpoint-runs.js';
import type { HandlerProcess } from './handler-process.js';
import type { RunningState } from './messages.js';
import { isSameProcess, type ProcessSettings } from './process-settings.js';

/** One that runs. */
export interface Running {
  readonly version: number;
  readonly artifact: string;
  readonly settings: ProcessSettings;
  readonly process: HandlerProcess;
  /** A request in it ran over its deadline. */
  mustReplace: boolean;
}

/** The one that serves a version with these settings. */
export function runningOf(
  all: readonly Running[],
  target: DeployedTarget,
  settings: ProcessSettings,
): Running | undefined {
  return all.find(
    (running) =>
      running.version === target.version &&
      running.artifact === target.artifact &&
      !running.mustReplace &&
      isSameProcess(running.settings, settings),
  );
}

/** Where requests go in a desired state, as far as its processes run. */
export function routedTo(
  all: readonly Running[],
  settings: ProcessSettings,
  { targets, sticky }: Deployed,
): RunningState {
  // In the order of versions: the more a newer one gets, the fewer callers change.
  const inOrder = [...targets].sort((left, right) => left.version - right.version);
  return {
    kind: 'running',
    targets: inOrder.flatMap((target) => {
      const running = runningOf(all, target, settings);
      const { percent: weight, version } = target;
      return running ? [{ weight, version, instance: running.process.instance }] : [];
    }),
    ...(sticky && { sticky }),
  };
}
