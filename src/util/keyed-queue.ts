/** Runs tasks with the same key one after the other, in order; tasks with different keys run concurrently. */
export class KeyedQueue {
  /** Promises of the last task of each key. */
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const result = (async () => {
      await before;
      return work();
    })();
    // The next task runs whether this one succeeds or fails.
    const end = result.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, end);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === end) this.#last.delete(key);
    }
  }
}
