/** Runs a task on request, one run at a time. Requests that come during a run share the next one. */
export class CoalescingTask<T = void> {
  readonly #work: () => Promise<T>;
  #running: Promise<T> | undefined;
  /** The run that begins when the one in progress has ended, if it was requested. */
  #next: Promise<T> | undefined;

  constructor(work: () => Promise<T>) {
    this.#work = work;
  }

  /**
   * Requests a run that begins after this call.
   * @returns what the task returns in that run, or its error
   */
  run(): Promise<T> {
    if (!this.#running) return this.#next ?? this.#start();
    this.#next ??= this.#running.catch(() => undefined).then(() => this.#start());
    return this.#next;
  }

  /** Resolves when no run is in progress or requested, whether the last one succeeded or failed. */
  async idle(): Promise<void> {
    for (let last = this.#last; last; last = this.#last) await last.catch(() => undefined);
  }

  get #last(): Promise<T> | undefined {
    return this.#next ?? this.#running;
  }

  #start(): Promise<T> {
    this.#next = undefined;
    this.#running = this.#work().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }
}
