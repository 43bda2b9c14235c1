/** Calls of handlers as drivers receive them, and how they are aborted. */

/** A call as it comes from a handler. */
export interface ActorCall {
  readonly operation: string;
  readonly args: unknown;
  readonly payload: Buffer;
  /** Milliseconds until the caller's deadline. */
  readonly timeoutMs: number;
}

/**
 * Work that may be aborted, for example because its deadline has passed. Not an `AbortSignal`: creating one and
 * listening to it costs 10 µs, as much as reading a value from Redis.
 */
export interface Abortable {
  readonly isAborted: boolean;
  /** Calls back on abort, or at once if already aborted. A listener replaces the previous one. */
  onAbort(listener: (() => void) | undefined): void;
}

/** A call as a driver gets it. */
export interface DriverCall extends Abortable {
  /** Bytes or JSON text, as the operation requires. */
  readonly payload: Buffer;
  /** Milliseconds from now until it is aborted. */
  readonly remainingMs: number;
}

export class AbortSource implements Abortable {
  #listener: (() => void) | undefined;
  #isAborted = false;

  get isAborted(): boolean {
    return this.#isAborted;
  }

  onAbort(listener: (() => void) | undefined): void {
    if (this.#isAborted) listener?.();
    else this.#listener = listener;
  }

  abort(): void {
    this.#isAborted = true;
    this.#listener?.();
    this.#listener = undefined;
  }
}

export class PendingCall extends AbortSource implements DriverCall {
  constructor(
    readonly payload: Buffer,
    readonly remainingMs: number,
  ) {
    super();
  }
}

/** Runs work that `stop` ends on abort. */
export async function stoppedOnAbort<T>(
  abortable: Abortable,
  stop: () => void,
  work: () => Promise<T>,
): Promise<T> {
  abortable.onAbort(stop);
  try {
    return await work();
  } finally {
    abortable.onAbort(undefined);
  }
}

/** A signal for libraries that take one. It replaces the listener. */
export function signalOf(abortable: Abortable): AbortSignal {
  const controller = new AbortController();
  abortable.onAbort(() => controller.abort());
  return controller.signal;
}
