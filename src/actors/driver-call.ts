/** Calls on their way to a driver. */
import type { DriverCall } from './driver.js';

/** A call whose abort signal is made only if its driver asks for it: most calls are over before anybody could. */
export class PendingCall implements DriverCall {
  #controller: AbortController | undefined;
  #listener: (() => void) | undefined;
  #isAborted = false;

  constructor(
    readonly operation: string,
    readonly args: unknown,
    readonly payload: Buffer,
    readonly remainingMs: number,
  ) {}

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  onAbort(listener: (() => void) | undefined): void {
    if (this.#isAborted) listener?.();
    else this.#listener = listener;
  }

  /** Nobody waits for the answer any more. */
  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
    this.#listener?.();
    this.#listener = undefined;
  }
}
