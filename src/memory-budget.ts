/** How many bytes of others a process may hold at a time, whoever they belong to. */
export class MemoryBudget {
  #used = 0;

  constructor(readonly limitBytes: number) {}

  /** @returns false when there is no room for so many; nothing is taken then */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.limitBytes) return false;
    this.#used += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }

  get used(): number {
    return this.#used;
  }
}
