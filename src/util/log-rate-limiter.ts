/** Limits the log lines that untrusted clients and handlers can cause, and counts dropped lines. */

const SECOND_MS = 1_000;

/** Allows a number of lines per second. */
export class LogRateLimiter {
  readonly #perSecond: number;
  readonly #onDropped: (lines: number) => void;
  #since = Number.NEGATIVE_INFINITY;
  #passed = 0;
  #dropped = 0;
  #report: NodeJS.Timeout | undefined;

  /** @param onDropped called with the number of dropped lines after each second with dropped lines */
  constructor(perSecond: number, onDropped: (lines: number) => void) {
    this.#perSecond = perSecond;
    this.#onDropped = onDropped;
  }

  /** Whether one more line may be logged now. */
  take(): boolean {
    const now = performance.now();
    if (now - this.#since >= SECOND_MS) {
      this.reportDropped();
      this.#since = now;
      this.#passed = 0;
    }
    if (this.#passed < this.#perSecond) {
      this.#passed++;
      return true;
    }
    this.#dropped++;
    // The report comes also when no further line triggers it.
    this.#report ??= setTimeout(() => this.reportDropped(), SECOND_MS).unref();
    return false;
  }

  /** Reports dropped lines that have not been reported yet. */
  reportDropped(): void {
    clearTimeout(this.#report);
    this.#report = undefined;
    if (this.#dropped > 0) this.#onDropped(this.#dropped);
    this.#dropped = 0;
  }
}
