/** Changes of rows as they are announced, and the one way to wait for a row to become what is wanted. */
import { toError } from '../errors.js';
import type { Logger } from '../log.js';
import { type Listening, listen, type Topic } from '../store/announcements.js';

/** Announcements get lost while a connection is down: everybody who waits also looks this often. */
const POLL_MS = 1_000;

type ChangeListener = (id: string) => void;

/** The announcements of some topics, for many subscribers over one connection. */
export class Changes {
  readonly #listening: Listening;
  readonly #byTopic = new Map<Topic, Set<ChangeListener>>();
  readonly #byRow = new Map<string, Set<() => void>>();
  readonly #onConnected = new Set<() => void>();

  constructor(connectionString: string, topics: readonly Topic[], log: Logger) {
    let wasLost = false;
    this.#listening = listen(connectionString, topics, {
      changed: ({ topic, id }) => {
        for (const listener of this.#byTopic.get(topic) ?? []) listener(id);
        for (const listener of this.#byRow.get(`${topic}:${id}`) ?? []) listener();
      },
      connected: () => {
        if (wasLost) log.info('listening for changes again');
        wasLost = false;
        for (const listener of this.#onConnected) listener();
        for (const listeners of this.#byRow.values()) for (const listener of listeners) listener();
      },
      failed: (error) => {
        if (!wasLost) log.warn({ err: error }, 'not listening for changes, PostgreSQL is away; trying again');
        wasLost = true;
      },
    });
  }

  /** Calls back for every announced row of a topic. */
  onChange(topic: Topic, listener: ChangeListener): void {
    getOrCreate(this.#byTopic, topic).add(listener);
  }

  /** Calls back when the connection is up, for the first time or again: announcements may have been missed. */
  onConnected(listener: () => void): void {
    this.#onConnected.add(listener);
  }

  /**
   * Waits until `read` returns something. It is called now, at each announcement of the row, and from time to time.
   * @param signal ends the wait early
   * @returns what `read` returned, or undefined when the time is over
   * @throws the reason of `signal`, once that is aborted
   */
  async waitFor<T>(
    topic: Topic,
    id: string,
    timeoutMs: number,
    read: () => Promise<T | undefined>,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    const key = `${topic}:${id}`;
    const listeners = getOrCreate(this.#byRow, key);
    let announced = false;
    let wake: () => void = () => undefined;
    const listener = () => {
      announced = true;
      wake();
    };
    listeners.add(listener);
    signal?.addEventListener('abort', listener);
    const deadline = performance.now() + timeoutMs;
    try {
      for (;;) {
        announced = false;
        signal?.throwIfAborted();
        const value = await read();
        if (value !== undefined) return value;
        const remaining = deadline - performance.now();
        if (remaining <= 0) return undefined;
        // What was announced while we read may have come too late for that read.
        if (!announced) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, Math.min(remaining, POLL_MS));
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
          });
        }
      }
    } finally {
      listeners.delete(listener);
      signal?.removeEventListener('abort', listener);
      if (listeners.size === 0) this.#byRow.delete(key);
    }
  }

  async stop(): Promise<void> {
    await this.#listening.stop();
  }
}

/** Runs a piece of work again and again, never twice at once, until stopped; failures are logged. */
export class Periodically {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(
    private readonly intervalMs: number,
    private readonly work: () => Promise<void>,
    private readonly onError: (error: Error) => void,
  ) {
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#running = this.work()
        .catch((thrown) => this.onError(toError(thrown)))
        .finally(() => this.#schedule());
    }, this.intervalMs);
  }
}

function getOrCreate<K, V>(map: Map<K, Set<V>>, key: K): Set<V> {
  let set = map.get(key);
  if (!set) {
    set = new Set();
    map.set(key, set);
  }
  return set;
}
