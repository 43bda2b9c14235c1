/** The handlers of an endpoint that run, which of them serve a deployment, and those that finish their requests. */
import type { DeployedTarget, DesiredDeployment } from '../../store/endpoint-runs.js';
import type { RunningState } from '../front/messages.js';
import type { HandlerProcess } from '../handlers/handler-process.js';
import { isSameProcess, type ProcessSettings } from '../handlers/process-settings.js';
import type { EndpointRunnerHost } from './runner-host.js';

/** One that runs. */
export interface RunningVersion {
  readonly version: number;
  readonly artifact: string;
  readonly settings: ProcessSettings;
  readonly process: HandlerProcess;
  /** A request in it ran over its deadline. */
  mustReplace: boolean;
}

export class RunningHandlers {
  readonly #host: Pick<EndpointRunnerHost, 'drained' | 'log'>;
  readonly #onEnded: () => void;
  #all: readonly RunningVersion[] = [];
  /** Ends of processes that were taken out. */
  readonly #ending = new Set<Promise<void>>();

  /** @param onEnded called when one that was taken out has ended */
  constructor(host: Pick<EndpointRunnerHost, 'drained' | 'log'>, onEnded: () => void) {
    this.#host = host;
    this.#onEnded = onEnded;
  }

  /** Those that serve, those to be replaced, and those that serve once the others of their deployment run too. */
  get all(): readonly RunningVersion[] {
    return this.#all;
  }

  byInstance(id: number): RunningVersion | undefined {
    return this.#all.find(({ process }) => process.instance.id === id);
  }

  add(running: RunningVersion): void {
    this.#all = [...this.#all, running];
  }

  /** @returns undefined when it was taken out before */
  remove(process: HandlerProcess): RunningVersion | undefined {
    const removed = this.#all.find((running) => running.process === process);
    this.#all = this.#all.filter((running) => running !== removed);
    return removed;
  }

  /** @returns those that were taken out */
  keepOnly(kept: readonly RunningVersion[]): readonly RunningVersion[] {
    const old = this.#all.filter((running) => !kept.includes(running));
    this.#all = this.#all.filter((running) => kept.includes(running));
    return old;
  }

  /** Lets a process that was taken out finish its requests, in the background. */
  retire(old: HandlerProcess): void {
    const ended = this.#host.drained(old).then(() => old.stop());
    this.endsLater(ended, 'old handler process could not be stopped');
  }

  /** Notes the end of a process in the background; `ended` waits for it. */
  endsLater(end: Promise<void>, failure: string): void {
    const done = end
      .catch((error: unknown) => this.#host.log.error({ err: error }, failure))
      .finally(() => {
        this.#ending.delete(done);
        this.#onEnded();
      });
    this.#ending.add(done);
  }

  /** Whether one that was taken out has not ended. */
  get areEnding(): boolean {
    return this.#ending.size > 0;
  }

  /** Resolves when those that were taken out have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#ending);
  }
}

/** The one that serves a version with these settings. */
export function runningOf(
  all: readonly RunningVersion[],
  target: DeployedTarget,
  settings: ProcessSettings,
): RunningVersion | undefined {
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
  all: readonly RunningVersion[],
  settings: ProcessSettings,
  { targets, sticky }: DesiredDeployment,
): RunningState {
  // The order of versions: the more a newer one gets, the fewer callers change.
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
