/** Keeps strangers from filling a log: so many lines a second, and how many more there would have been. */

const SECOND_MS = 1_000;

/** Counts lines by the second. */
export class LineQuota {
  #since = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #dropped = 0;
  #report: NodeJS.Timeout | undefined;

  /** @param onDropped told how many lines were too many, once their second is over */
  constructor(
    private readonly perSecond: number,
    private readonly onDropped: (lines: number) => void,
  ) {}

  /** True when one more line may be logged. */
  take(): boolean {
    const now = performance.now();
    if (now - this.#since >= SECOND_MS) {
      this.reportDropped();
      this.#since = now;
      this.#taken = 0;
    }
    if (this.#taken < this.perSecond) {
      this.#taken++;
      return true;
    }
    this.#dropped++;
    // Perhaps nothing comes after it.
    this.#report ??= setTimeout(() => this.reportDropped(), SECOND_MS).unref();
    return false;
  }

  /** Tells at once what has not been told yet. */
  reportDropped(): void {
    clearTimeout(this.#report);
    this.#report = undefined;
    if (this.#dropped > 0) this.onDropped(this.#dropped);
    this.#dropped = 0;
  }
}
