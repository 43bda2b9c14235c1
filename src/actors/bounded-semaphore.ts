/** Limits the concurrent calls of one service, and the calls that wait. */
import { ServiceError } from './service-error.js';

/** `acquire` before a call, `release` after it. */
export class BoundedSemaphore {
  readonly #capacity: number;
  readonly #queueLimit: number;
  #inUse = 0;
  /** Waiting calls, in order of arrival. */
  readonly #queue = new Set<() => void>();

  /**
   * @param capacity concurrent calls
   * @param queueLimit calls that may wait; more are refused
   */
  constructor(capacity: number, queueLimit: number) {
    this.#capacity = capacity;
    this.#queueLimit = queueLimit;
  }

  get inUse(): number {
    return this.#inUse;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  tryAcquire(): boolean {
    if (this.#inUse >= this.#capacity) return false;
    this.#inUse++;
    return true;
  }

  /** @throws ServiceError busy when the queue is full, deadline when it waited for longer than `timeoutMs` */
  acquire(timeoutMs: number): Promise<void> {
    if (this.tryAcquire()) return Promise.resolve();
    if (this.#queue.size >= this.#queueLimit) {
      const message = `${this.#queue.size} calls wait for it already; try again later, or give the service a larger pool_size`;
      return Promise.reject(new ServiceError('busy', message));
    }
    return new Promise((resolve, reject) => {
      const acquired = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#queue.delete(acquired);
        const message = `all ${this.#capacity} of its connections were in use for ${timeoutMs} ms`;
        reject(new ServiceError('deadline', message));
      }, timeoutMs);
      this.#queue.add(acquired);
    });
  }

  release(): void {
    const [next] = this.#queue;
    if (!next) {
      this.#inUse--;
      return;
    }
    this.#queue.delete(next);
    next();
  }
}
