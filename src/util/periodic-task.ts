/** Runs a task periodically with a pause between runs, never concurrently, until stopped. */
import { toError } from '../errors.js';

export class PeriodicTask {
  readonly #intervalMs: number;
  readonly #work: () => Promise<void>;
  readonly #onError: (error: Error) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;
  #isRunning = false;
  /** Something has changed since the run began. */
  #isDueAgain = false;

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

  /** Does the work at once, or again when a run that is in progress has ended. */
  runSoon(): void {
    if (this.#isRunning) this.#isDueAgain = true;
    else this.#run();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => this.#run(), this.#intervalMs);
  }

  #run(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#isRunning = true;
    this.#isDueAgain = false;
    this.#running = this.#work()
      .catch((thrown) => this.#onError(toError(thrown)))
      .finally(() => {
        this.#isRunning = false;
        if (this.#isDueAgain) this.#run();
        else this.#schedule();
      });
  }
}
