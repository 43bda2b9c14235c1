/** Writes the latest of a series of values: one write at a time, skipping values that are already outdated. */
import { toError } from '../errors.js';
import { CoalescingTask } from './coalescing-task.js';

export class LatestWriter<T> {
  readonly #write: (value: T) => Promise<void>;
  readonly #onError: (error: Error) => void;
  readonly #writing = new CoalescingTask(() => this.#writeLatest());
  #latest: { readonly value: T } | undefined;
  #isUnwritten = false;
  #isWriting = false;

  /** @param onError called for each failed write, which `retry` repeats */
  constructor(write: (value: T) => Promise<void>, onError: (error: Error) => void) {
    this.#write = write;
    this.#onError = onError;
  }

  /** Resolves when the write of this value or a newer one has succeeded or failed. */
  async write(value: T): Promise<void> {
    this.#latest = { value };
    await this.writeAgain();
  }

  /** Writes the latest value again, for example after the destination was replaced. */
  async writeAgain(): Promise<void> {
    if (!this.#latest) return;
    this.#isUnwritten = true;
    await this.#writing.run();
  }

  /** Writes the latest value if its write has failed. */
  async retry(): Promise<void> {
    if (this.#isUnwritten) await this.writeAgain();
  }

  /** Whether the latest value is written. */
  get isSettled(): boolean {
    return !this.#isUnwritten && !this.#isWriting;
  }

  /** Resolves when no write is in progress. */
  async idle(): Promise<void> {
    await this.#writing.idle();
  }

  async #writeLatest(): Promise<void> {
    if (!this.#latest) return;
    this.#isUnwritten = false;
    this.#isWriting = true;
    try {
      await this.#write(this.#latest.value);
    } catch (thrown) {
      this.#isUnwritten = true;
      this.#onError(toError(thrown));
    } finally {
      this.#isWriting = false;
    }
  }
}
