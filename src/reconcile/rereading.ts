/** Keeps what a process knows of some rows current: by announcements, which can be lost, and now and then. */
import type { Topic } from '../store/announcements.js';
import { PeriodicTask } from '../util/periodic-task.js';
import type { Changes } from './changes.js';

const READ_EVERY_MS = 30_000;

interface RereadingOptions {
  readonly changes: Changes;
  /** What is announced when the rows change. */
  readonly topic: Topic;
  /** Reads them, never twice at a time. */
  readonly read: () => Promise<void>;
  /** Called with each failure after the first time; it is read again. */
  readonly onError: (error: Error) => void;
}

export class Rereading {
  readonly #task: PeriodicTask;
  readonly #unsubscribe: readonly (() => void)[];

  private constructor({ changes, topic, read, onError }: RereadingOptions) {
    this.#task = new PeriodicTask(READ_EVERY_MS, read, onError);
    const readSoon = () => this.#task.runSoon();
    this.#unsubscribe = [changes.onChange(topic, readSoon), changes.onConnected(readSoon)];
    // Some may have changed since the first time.
    readSoon();
  }

  /** Resolves when the rows have been read for the first time. @throws what `read` throws then */
  static async start(options: RereadingOptions): Promise<Rereading> {
    await options.read();
    return new Rereading(options);
  }

  async stop(): Promise<void> {
    for (const end of this.#unsubscribe) end();
    await this.#task.stop();
  }
}
