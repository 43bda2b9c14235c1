/** Threads for work that one request can make long, so that the event loop goes on answering others. */
import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import { AppError } from '../errors.js';
import type * as work from './work.js';

type Work = typeof work;

/** More are refused: each holds its input. */
const MOST_WAITING = 256;
/** An idle thread ends; the next one takes some 30 ms. */
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 512;

export class Threads {
  readonly #pool = new Piscina({
    filename: new URL('./work.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: Math.max(1, availableParallelism() - 1),
    maxQueue: MOST_WAITING,
    idleTimeout: IDLE_MS,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    // Nothing of the process is theirs.
    env: {},
  });

  /** Runs a function of `work.ts`. @throws AppError too_many_connections when too much waits already */
  async run<Name extends keyof Work>(
    name: Name,
    input: Parameters<Work[Name]>[0],
  ): Promise<ReturnType<Work[Name]>> {
    if (this.#pool.queueSize >= MOST_WAITING)
      throw new AppError('busy', 'The API has too much to compute already; try again in a moment');
    return this.#pool.run(input, { name });
  }

  /** Ends all threads. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
