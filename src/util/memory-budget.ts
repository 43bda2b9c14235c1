/** A limit on the bytes that a process holds for its clients at a time. */
export class MemoryBudget {
  #used = 0;

  constructor(readonly limitBytes: number) {}

  /** @returns false, and takes nothing, when the limit would be exceeded */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.limitBytes) return false;
    this.#used += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#used -= bytes;
  }

  get used(): number {
    return this.#used;
  }
}
