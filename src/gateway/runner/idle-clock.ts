/** How long the handlers of an endpoint have had no request. Times are those of `performance.now()`. */

/** They stay awake for so long after their deployment was observed: who has asked for it reads their process ids. */
const HELD_MS = 2_000;

export class IdleClock {
  #usedAt = performance.now();
  /** They may not sleep before. */
  #heldUntil: number;

  /** @param isHeld they are not observed yet, and who waits for that has to find them awake */
  constructor(isHeld: boolean) {
    this.#heldUntil = isHeld ? Infinity : 0;
  }

  /** They may not sleep until they are observed. */
  hold(): void {
    this.#heldUntil = Infinity;
  }

  /** They are observed as running. */
  observed(): void {
    if (this.#heldUntil === Infinity) this.#heldUntil = performance.now() + HELD_MS;
  }

  /** They had a request then, or have begun to serve. */
  used(at: number): void {
    this.#usedAt = Math.max(this.#usedAt, at);
  }

  /** Milliseconds without requests, as far as is known; 0 while they may not sleep. */
  at(now: number): number {
    return now < this.#heldUntil ? 0 : Math.max(0, now - this.#usedAt);
  }
}
