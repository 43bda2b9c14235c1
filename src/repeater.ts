/** Runs a piece of work whenever it is asked to, one run at a time. */
export class Repeater {
  #isAsked = false;
  #isRunning = false;
  #running: Promise<void> = Promise.resolve();

  constructor(private readonly work: () => Promise<void>) {}

  /**
   * Asks for a run that begins after this call. Many may ask for the same run.
   * @returns when there is nothing left to run; rejects with what the work failed with
   */
  run(): Promise<void> {
    this.#isAsked = true;
    if (!this.#isRunning) {
      this.#isRunning = true;
      this.#running = this.#repeat();
    }
    return this.#running;
  }

  /** Resolves when no run is under way, however the last one ended. */
  async idle(): Promise<void> {
    await this.#running.catch(() => undefined);
  }

  async #repeat(): Promise<void> {
    try {
      while (this.#isAsked) {
        this.#isAsked = false;
        await this.work();
      }
    } finally {
      this.#isRunning = false;
    }
  }
}
