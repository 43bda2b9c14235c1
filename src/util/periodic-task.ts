/** Runs a task periodically with a pause between runs, never concurrently, until stopped. */
import { toError } from '../errors.js';

export class PeriodicTask {
  readonly #intervalMs: number;
  readonly #work: () => Promise<void>;
  readonly #onError: (error: Error) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  /** @param onError called for each failed run; the next run is not affected */
  constructor(intervalMs: number, work: () => Promise<void>, onError: (error: Error) => void) {
    this.#intervalMs = intervalMs;
    this.#work = work;
    this.#onError = onError;
    this.#schedule();
  }

  /** Resolves when no run is in progress. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#work()
        .catch((thrown) => this.#onError(toError(thrown)))
        .finally(() => this.#schedule());
    }, this.#intervalMs);
  }
}
