/**
 * Writes what this gateway observes of endpoints: one statement at a time, with all that was observed since the last
 * one began. So many endpoints cost few statements, and observations of an endpoint are written in their order.
 */
import type { OwnObservation } from '../store/observations.js';
import { CoalescingTask } from '../util/coalescing-task.js';

/** Observations of one statement. */
const MAX_BATCH = 1_000;

export class ObservationWriter {
  readonly #save: (observations: readonly OwnObservation[]) => Promise<void>;
  /** The latest of each endpoint. */
  readonly #waiting = new Map<string, OwnObservation>();
  readonly #writing = new CoalescingTask(() => this.#write());

  /** @param save writes all of them or none */
  constructor(save: (observations: readonly OwnObservation[]) => Promise<void>) {
    this.#save = save;
  }

  /**
   * Resolves when they, or later ones of the same endpoints, are written.
   * @throws when they, or others that were to be written with them, cannot be written now
   */
  async write(...observations: readonly OwnObservation[]): Promise<void> {
    for (const observation of observations) this.#waiting.set(observation.endpoint_id, observation);
    await this.#writing.run();
  }

  async #write(): Promise<void> {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (let at = 0; at < waiting.length; at += MAX_BATCH)
      await this.#save(waiting.slice(at, at + MAX_BATCH));
  }
}
