/**
 * The requests in flight on a connection, by number.
 *
 * Not a Map: V8 replaces the table of a Map with many additions and deletions again and again. Each old table keeps the
 * next one alive, and with it thousands of finished requests, so that they are garbage-collected late.
 */

const SLOT_BITS = 16;
/** Requests that can be in flight on one connection. */
export const MAX_IN_FLIGHT = 1 << SLOT_BITS;

/** Numbers have 32 bits: a slot, and how often that slot has been used, so that numbers repeat late. */
export class InFlight<T> {
  readonly #values: (T | undefined)[] = [];
  readonly #uses: number[] = [];
  readonly #free: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a value and returns its number; undefined when there are too many. */
  add(value: T): number | undefined {
    const slot = this.#free.pop() ?? this.#values.length;
    if (slot === MAX_IN_FLIGHT) return undefined;
    const uses = ((this.#uses[slot] ?? -1) + 1) % MAX_IN_FLIGHT;
    this.#uses[slot] = uses;
    this.#values[slot] = value;
    this.#size++;
    return uses * MAX_IN_FLIGHT + slot;
  }

  get(number: number): T | undefined {
    const slot = number % MAX_IN_FLIGHT;
    return this.#uses[slot] === Math.floor(number / MAX_IN_FLIGHT) ? this.#values[slot] : undefined;
  }

  delete(number: number): void {
    if (this.get(number) === undefined) return;
    const slot = number % MAX_IN_FLIGHT;
    this.#values[slot] = undefined;
    this.#free.push(slot);
    this.#size--;
  }

  /** Removes and returns all values that meet a condition. */
  takeIf(condition: (value: T) => boolean): T[] {
    const taken: T[] = [];
    for (const [slot, value] of this.#values.entries()) {
      if (value === undefined || !condition(value)) continue;
      this.#values[slot] = undefined;
      this.#free.push(slot);
      this.#size--;
      taken.push(value);
    }
    return taken;
  }
}
