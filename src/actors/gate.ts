/** How many calls of one service are under way at once, and how many more may wait for their turn. */
import { ServiceError } from './service-error.js';

/** Let calls in one by one: `enter` before, `leave` after. */
export class Gate {
  #inside = 0;
  /** Who waits for a turn, in the order of their coming. */
  readonly #queue = new Set<() => void>();

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
    return this.#queue.size;
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
    if (this.#queue.size >= this.queueLimit) {
      const message = `${this.#queue.size} calls wait for it already; try again later, or give the service a larger pool_size`;
      return Promise.reject(new ServiceError('busy', message));
    }
    return new Promise((resolve, reject) => {
      const enter = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#queue.delete(enter);
        const message = `all ${this.capacity} of its connections were in use for ${timeoutMs} ms`;
        reject(new ServiceError('deadline', message));
      }, timeoutMs);
      this.#queue.add(enter);
    });
  }

  /** Makes room; the place goes to the next in line. */
  leave(): void {
    const [next] = this.#queue;
    if (!next) {
      this.#inside--;
      return;
    }
    this.#queue.delete(next);
    next();
  }
}
