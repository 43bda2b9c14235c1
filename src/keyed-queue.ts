/** Runs pieces of work with the same key one after the other, in the order they came; those of others beside them. */
export class KeyedQueue {
  /** The end of the last piece of work for each key. */
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const result = (async () => {
      await before;
      return work();
    })();
    // However it ends, the next has its turn.
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
