/** Subscriptions to announced rows, and waiting until a row has a certain state. */

import { listen, type Subscription, type Topic } from '../store/announcements.js';
import type { Logger } from '../util/log.js';

/** Announcements are lost while a connection is down, so waits also poll. */
const POLL_MS = 1_000;

type ChangeListener = (id: string) => void;

/** The announcements of some topics, for many subscribers over one connection. */
export class Changes {
  readonly #listening: Subscription;
  readonly #byTopic = new Map<Topic, Set<ChangeListener>>();
  readonly #byRow = new Map<string, Set<() => void>>();
  readonly #onConnected = new Set<() => void>();
  /** When a row of each topic was announced last. */
  readonly #lastAt = new Map<Topic, number>();

  constructor(connectionString: string, topics: readonly Topic[], log: Logger) {
    let wasLost = false;
    this.#listening = listen(connectionString, topics, {
      changed: ({ topic, id }) => {
        this.#lastAt.set(topic, performance.now());
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
        if (!wasLost)
          log.warn({ err: error }, 'not listening for changes, PostgreSQL is unavailable; trying again');
        wasLost = true;
      },
    });
  }

  /** Calls back for every announced row of a topic. @returns ends that */
  onChange(topic: Topic, listener: ChangeListener): () => void {
    const listeners = getOrCreate(this.#byTopic, topic);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Whether a row of a topic was announced within the last milliseconds. */
  hasChangedWithin(topic: Topic, ms: number): boolean {
    return (this.#lastAt.get(topic) ?? Number.NEGATIVE_INFINITY) >= performance.now() - ms;
  }

  /**
   * Calls back when the connection is up, for the first time or again: announcements may have been missed.
   * @returns ends that
   */
  onConnected(listener: () => void): () => void {
    this.#onConnected.add(listener);
    return () => void this.#onConnected.delete(listener);
  }

  /**
   * Waits until `read` returns something. It is called at once, at each announcement of the row, and every second.
   * @param signal ends the wait early
   * @returns what `read` returned, or undefined after the timeout
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
        // An announcement during the read may be of a change that the read did not see.
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

function getOrCreate<K, V>(map: Map<K, Set<V>>, key: K): Set<V> {
  let set = map.get(key);
  if (!set) {
    set = new Set();
    map.set(key, set);
  }
  return set;
}
