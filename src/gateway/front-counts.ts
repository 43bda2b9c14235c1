/**
 * Which process of the front counts requests by callers: the newest. The one before it hands its counts over, and has
 * its last requests counted by it, so that each is counted once.
 */
import pTimeout from 'p-timeout';
import type { FrontProcess } from './front-process.js';
import type { RateTaken, RateToTake } from './messages.js';

/** One that does not hand over in time hangs; the next one begins anew. */
const HAND_OVER_MS = 2_000;

/** Where a process has its counts from. */
interface Origin {
  readonly by: FrontProcess;
  /** As they were handed over; none before that. */
  counts: string;
}

export class FrontCounts {
  #counting: FrontProcess | undefined;
  /** Of those that do not serve yet. */
  readonly #origins = new WeakMap<FrontProcess, Origin>();
  readonly #ended = new WeakSet<FrontProcess>();
  #handingOver: Promise<void> = Promise.resolve();

  /** Lets a process count from now on, which is about to serve. */
  async moveTo(process: FrontProcess): Promise<void> {
    const by = this.#counting;
    this.#counting = process;
    if (by && by !== process) {
      const origin: Origin = { by, counts: '' };
      this.#origins.set(process, origin);
      this.#inTurn(async () => {
        const answer = await pTimeout(by.request({ type: 'handOver' }), {
          milliseconds: HAND_OVER_MS,
          fallback: () => undefined,
        });
        origin.counts = answer?.counts ?? '';
        process.tell({ type: 'adopt', counts: origin.counts });
      });
    }
    await this.#handingOver;
  }

  /** A process serves. It counts, also when another one has been about to serve meanwhile, which is not needed now. */
  async serves(process: FrontProcess): Promise<void> {
    await this.moveTo(process);
    this.#origins.delete(process);
  }

  /** A process has ended. One that never served gives back what it has got, to the last one that still runs. */
  ended(process: FrontProcess, hasServed: boolean): void {
    this.#ended.add(process);
    if (process !== this.#counting) return;
    let origin = hasServed ? undefined : this.#takeOrigin(process);
    while (origin && this.#ended.has(origin.by)) origin = this.#takeOrigin(origin.by);
    this.#counting = origin?.by;
    if (origin) {
      const given = origin;
      this.#inTurn(async () => given.by.tell({ type: 'adopt', counts: given.counts }));
    }
  }

  /** Counts a request for a process that has handed its counts over; null when none counts. */
  async take(rules: readonly RateToTake[]): Promise<readonly RateTaken[] | null> {
    let waited: Promise<void>;
    do {
      waited = this.#handingOver;
      await waited;
    } while (waited !== this.#handingOver);
    const answer = await this.#counting?.request({ type: 'count', rules });
    return answer?.taken ?? null;
  }

  /** One after the other: who hands over has first to get what was handed over to it. */
  #inTurn(move: () => Promise<void>): void {
    this.#handingOver = this.#handingOver.then(move);
  }

  #takeOrigin(process: FrontProcess): Origin | undefined {
    const origin = this.#origins.get(process);
    this.#origins.delete(process);
    return origin;
  }
}
