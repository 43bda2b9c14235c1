/** Runs at most so many pieces of work at a time; the others wait their turn. */
export class Limiter {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly limit: number) {}

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await work();
    } finally {
      // The place goes to the next in line, if there is one.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
