/** How many calls of one service are under way at once, and how many more may wait for their turn. */
import { ServiceError } from './service-error.js';

/** A call that waits for its turn. */
interface Waiter {
  readonly enter: () => void;
  isGone: boolean;
}

/** Let calls in one by one: `enter` before, `leave` after. */
export class Gate {
  #inside = 0;
  #waiting = 0;
  #queue: Waiter[] = [];

  /**
   * @param capacity calls at once
   * @param queueLimit calls that may wait; more are refused
   */
  constructor(
    private readonly capacity: number,
    private readonly queueLimit: number,
  ) {}

  /** Calls that have entered and not left. */
  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Enters if there is room now. */
  tryEnter(): boolean {
    if (this.#inside >= this.capacity) return false;
    this.#inside++;
    return true;
  }

  /**
   * Waits for a turn.
   * @throws ServiceError busy when too many wait already, deadline when the turn does not come in time
   */
  enter(timeoutMs: number): Promise<void> {
    if (this.tryEnter()) return Promise.resolve();
    if (this.#waiting >= this.queueLimit) {
      const message = `${this.#waiting} calls wait for it already; try again later, or give the service a larger pool_size`;
      return Promise.reject(new ServiceError('busy', message));
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiter.isGone = true;
        this.#waiting--;
        const message = `all ${this.capacity} of its connections were in use for ${timeoutMs} ms`;
        reject(new ServiceError('deadline', message));
      }, timeoutMs);
      const waiter: Waiter = {
        isGone: false,
        enter: () => {
          clearTimeout(timer);
          this.#waiting--;
          resolve();
        },
      };
      this.#waiting++;
      this.#queue.push(waiter);
    });
  }

  /** Makes room; the place goes to the next in line. */
  leave(): void {
    for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
      if (next.isGone) continue;
      next.enter();
      return;
    }
    this.#inside--;
  }
}
