/** A handler that is being started, for a desired state that may change before it is ready. */
import type { DeployedTarget } from '../../store/endpoint-runs.js';
import type { HandlerProcess } from '../handlers/handler-process.js';
import { isSameProcess, type ProcessSettings } from '../handlers/process-settings.js';

/** What should serve, as far as it concerns processes. */
interface Desired extends ProcessSettings {
  readonly deployment: { readonly targets: readonly DeployedTarget[] } | null;
}

export class PendingStart {
  /** The process when it is ready; undefined when it was abandoned before. */
  readonly outcome: Promise<HandlerProcess | undefined>;
  readonly #target: DeployedTarget;
  readonly #settings: ProcessSettings;
  readonly #start: Promise<HandlerProcess>;
  readonly #abandoned = new AbortController();
  #isOver = false;

  /** @param start begins it, and ends its process when the signal says that nobody wants it */
  constructor(
    target: DeployedTarget,
    settings: ProcessSettings,
    start: (abandoned: AbortSignal) => Promise<HandlerProcess>,
  ) {
    this.#target = target;
    this.#settings = settings;
    const { signal } = this.#abandoned;
    this.#start = start(signal);
    const abandoned = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    this.outcome = Promise.race([this.#start, abandoned]).finally(() => {
      this.#isOver = true;
    });
  }

  /** Also when the process became ready at the same moment: it is ended here. */
  get isAbandoned(): boolean {
    return this.#abandoned.signal.aborted;
  }

  /** Whether its process is not ready, and no part of a desired state. */
  isPendingWithout(desired: Desired): boolean {
    return !this.#isOver && !this.isAbandoned && !isProcessOf(this.#target, this.#settings, desired);
  }

  /** Nobody waits for it any more. Resolves when its process has ended: at once, ready or not. */
  async abandon(): Promise<void> {
    this.#abandoned.abort();
    const process = await this.#start.catch(() => undefined); // it has not become ready, and is gone
    await process?.stop();
  }
}

/** Whether the process of a version, started with these settings, is part of a desired state. */
export function isProcessOf(target: DeployedTarget, settings: ProcessSettings, desired: Desired): boolean {
  const isTarget = desired.deployment?.targets.some(
    ({ version, artifact }) => version === target.version && artifact === target.artifact,
  );
  return isTarget === true && isSameProcess(settings, desired);
}
