/**
 * The endpoints whose handlers are asleep. They have no runner, so that they cost nothing; only that they sleep is
 * observed, of many at a time.
 */
import { toError } from '../../errors.js';
import type { OwnObservation } from '../../store/observations.js';
import { CoalescingTask } from '../../util/coalescing-task.js';
import type { Logger } from '../../util/log.js';

const RETRY_MS = 5_000;

/** The part of the supervisor that this uses. */
export interface SleepingEndpointsHost {
  /** The revision of a sleeping endpoint that is in force; undefined when it does not sleep any more. */
  revisionOf(endpointId: string): number | undefined;
  /** @throws when they cannot be written now */
  write(observations: readonly OwnObservation[]): Promise<void>;
  readonly log: Logger;
}

export class SleepingEndpoints {
  readonly #host: SleepingEndpointsHost;
  /** Those of which it is not observed yet that they sleep. */
  readonly #unobserved = new Set<string>();
  readonly #observing = new CoalescingTask(() => this.#observe());
  #retry: NodeJS.Timeout | undefined;

  constructor(host: SleepingEndpointsHost) {
    this.#host = host;
  }

  /** Observes that an endpoint sleeps, at its current revision. */
  add(endpointId: string): void {
    this.#unobserved.add(endpointId);
    void this.#observing.run();
  }

  async stop(): Promise<void> {
    this.#unobserved.clear();
    await this.#observing.idle();
    clearTimeout(this.#retry);
  }

  async #observe(): Promise<void> {
    // Others are added in the same turn.
    await Promise.resolve();
    const ids = [...this.#unobserved];
    this.#unobserved.clear();
    const observations = ids.flatMap((endpoint_id): OwnObservation[] => {
      const revision = this.#host.revisionOf(endpoint_id);
      return revision === undefined
        ? []
        : [{ endpoint_id, state: 'running', revision, serving: [], versions: [], error: null }];
    });
    if (observations.length === 0) return;
    try {
      await this.#host.write(observations);
    } catch (thrown) {
      this.#host.log.warn(
        { err: toError(thrown) },
        'observations of sleeping endpoints could not be saved; trying again soon',
      );
      for (const id of ids) this.#unobserved.add(id);
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => void this.#observing.run(), RETRY_MS).unref();
    }
  }
}
