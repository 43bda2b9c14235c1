/**
 * How often the handlers of an endpoint have crashed, or could not be started, and when that is tried again.
 *
 *              one crashes, or cannot be started              so often that it is a loop
 *   stable ------------------------------------> unstable --------------------------------> loop
 *     ^                                              |                                        |
 *     +--- all have run for a while, or something else is desired ----------------------------+
 */

/** So many crashes without being stable in between are a crash loop. */
const CRASH_LOOP = 5;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;

interface Unstable {
  readonly name: 'unstable';
  readonly crashes: number;
  /** Why versions could not be started, or crash again and again, until they run. */
  readonly errors: Map<number, string>;
  readonly retry: NodeJS.Timeout | undefined;
}

interface Loop extends Omit<Unstable, 'name'> {
  readonly name: 'loop';
  /** The error of the last crash. */
  readonly error: string;
}

export class HandlerCrashes {
  #state: { readonly name: 'stable' } | Unstable | Loop = { name: 'stable' };

  get count(): number {
    return this.#state.name === 'stable' ? 0 : this.#state.crashes;
  }

  /** Whether there are so many that they are a crash loop. */
  get areMany(): boolean {
    return this.count >= CRASH_LOOP;
  }

  /** The error of the last crash in a crash loop; undefined while there is none. */
  get loop(): string | undefined {
    return this.#state.name === 'loop' ? this.#state.error : undefined;
  }

  get isBackingOff(): boolean {
    return this.#state.name !== 'stable' && this.#state.retry !== undefined;
  }

  errorOf(version: number): string | null {
    return (this.#state.name === 'stable' ? undefined : this.#state.errors.get(version)) ?? null;
  }

  add(): void {
    this.#state = { ...this.#unstable(), crashes: this.count + 1 };
  }

  /** @param version of the handler that has crashed, or could not be started */
  setError(version: number, error: string): void {
    this.#unstable().errors.set(version, error);
  }

  /** A version has been started: what a crash loop says of it stays until it is stable. */
  started(version: number): void {
    if (this.#state.name === 'unstable') this.#state.errors.delete(version);
  }

  /** Enters the loop. @returns false when it was in it already */
  enterLoop(error: string): boolean {
    const { name, ...before } = this.#unstable();
    this.#state = { ...before, name: 'loop', error };
    return name !== 'loop';
  }

  /** Waits the longer the more crashes there were. */
  backOff(onOver: () => void): void {
    const before = this.#unstable();
    clearTimeout(before.retry);
    const delay = Math.min(FIRST_BACKOFF_MS * 2 ** Math.max(0, before.crashes - 2), MAX_BACKOFF_MS);
    const retry = setTimeout(() => {
      this.#state = { ...this.#unstable(), retry: undefined };
      onOver();
    }, delay);
    this.#state = { ...before, retry };
  }

  /** They are stable, or do not matter any more. */
  forget(): void {
    if (this.#state.name !== 'stable') clearTimeout(this.#state.retry);
    this.#state = { name: 'stable' };
  }

  #unstable(): Unstable | Loop {
    return this.#state.name === 'stable'
      ? { name: 'unstable', crashes: 0, errors: new Map(), retry: undefined }
      : this.#state;
  }
}
