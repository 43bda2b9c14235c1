/** Runs a task on request, one run at a time. Requests that come during a run share the next one. */
export class CoalescingTask {
  readonly #work: () => Promise<void>;
  #running: Promise<void> | undefined;
  /** The run that begins when the one in progress has ended, if it was requested. */
  #next: Promise<void> | undefined;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /**
   * Requests a run that begins after this call.
   * @returns a promise of that run, which rejects with the error of the task
   */
  run(): Promise<void> {
    if (!this.#running) return this.#next ?? this.#start();
    this.#next ??= this.#running.catch(() => undefined).then(() => this.#start());
    return this.#next;
  }

  /** Resolves when no run is in progress or requested, whether the last one succeeded or failed. */
  async idle(): Promise<void> {
    for (let last = this.#last; last; last = this.#last) await last.catch(() => undefined);
  }

  get #last(): Promise<void> | undefined {
    return this.#next ?? this.#running;
  }

  #start(): Promise<void> {
    this.#next = undefined;
    this.#running = this.#work().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }
}
