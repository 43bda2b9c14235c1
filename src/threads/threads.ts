/**
 * Threads for work that one request can make long, so that the event loop answers others meanwhile. Who asks for it
 * takes turns with others.
 */
import { availableParallelism } from 'node:os';
import type { Piscina } from 'piscina';
import { AppError } from '../errors.js';
import { Turns } from '../util/turns.js';
import type * as work from './work.js';

type Work = typeof work;

const THREADS = Math.max(1, availableParallelism() - 1);
/** A thread beyond these, for an owner that waits while others have all of them. */
const BEYOND = 1;
/** More are refused: each holds its input. An owner that has none waiting is always let in. */
const MOST_WAITING = 256;
const MOST_WAITING_OF_OWNER = 64;
/** An idle thread ends; the next one takes some 30 ms. */
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 512;
/** Nothing takes that long of what is accepted; a thread that does is ended, and the next one gets its turn. */
const MOST_MS = 60_000;

export class Threads {
  readonly #turns = new Turns({ places: THREADS, beyond: BEYOND });
  #pool: Promise<Piscina> | undefined;

  constructor(private readonly mostMs = MOST_MS) {}

  /**
   * Runs a function of `work.ts`.
   * @param owner whose turn it takes
   * @throws AppError busy when too much waits already, or this takes too long
   */
  async run<Name extends keyof Work>(
    owner: string,
    name: Name,
    input: Parameters<Work[Name]>[0],
  ): Promise<Awaited<ReturnType<Work[Name]>>> {
    const ofOwner = this.#turns.waiting(owner);
    if (ofOwner >= MOST_WAITING_OF_OWNER || (ofOwner > 0 && this.#turns.waiting() >= MOST_WAITING))
      throw new AppError('busy', 'The API has too much to compute already; try again in a moment');
    return this.#turns.run(owner, () => this.#runOne(name, input));
  }

  async #runOne<Name extends keyof Work>(
    name: Name,
    input: Parameters<Work[Name]>[0],
  ): Promise<Awaited<ReturnType<Work[Name]>>> {
    const pool = await this.#opened();
    const signal = AbortSignal.timeout(this.mostMs);
    try {
      return await pool.run(input, { name, signal });
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
      const seconds = this.mostMs / 1000;
      throw new AppError('busy', `It takes longer than ${seconds} s to compute this; it was given up`);
    }
  }

  /** Ends all threads. */
  async close(): Promise<void> {
    await (await this.#pool)?.destroy();
  }

  #opened(): Promise<Piscina> {
    this.#pool ??= openPool();
    return this.#pool;
  }
}

/** Loaded only where there is work for it: a gateway may never have any. */
async function openPool(): Promise<Piscina> {
  const { Piscina } = await import('piscina');
  return new Piscina({
    filename: new URL('./work.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: THREADS + BEYOND,
    idleTimeout: IDLE_MS,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    // Nothing of the process is theirs.
    env: {},
  });
}
