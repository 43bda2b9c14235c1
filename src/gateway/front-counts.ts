/**
 * Which process of the front counts requests by callers: the newest. The one before it hands its counts over, and has
 * its last requests counted by it, so that each is counted once.
 */
import pTimeout from 'p-timeout';
import type { FrontProcess } from './front-process.js';
import type { RateTaken, RateToTake } from './messages.js';

/** One that does not hand over in time hangs; the next one begins anew. */
const HAND_OVER_MS = 2_000;

interface HandedOver {
  readonly by: FrontProcess;
  readonly counts: string;
}

export class FrontCounts {
  #counting: FrontProcess | undefined;
  /** What the one that counts has got. */
  #handedOver: HandedOver | undefined;
  #handingOver: Promise<void> = Promise.resolve();

  /** Lets a process count from now on, which is about to serve. */
  async moveTo(process: FrontProcess): Promise<void> {
    const before = this.#counting;
    this.#counting = process;
    this.#handedOver = undefined;
    // One after the other: the one before has first to get what it hands over.
    if (before) this.#handingOver = this.#handingOver.then(() => this.#move(before, process));
    await this.#handingOver;
  }

  async #move(by: FrontProcess, to: FrontProcess): Promise<void> {
    const answer = await pTimeout(by.request({ type: 'handOver' }), {
      milliseconds: HAND_OVER_MS,
      fallback: () => undefined,
    });
    if (answer?.counts === undefined) return;
    if (this.#counting === to) this.#handedOver = { by, counts: answer.counts };
    to.tell({ type: 'adopt', counts: answer.counts });
  }

  /** A process has ended. One that never served gives back what it has got. */
  ended(process: FrontProcess, hasServed: boolean): void {
    if (process !== this.#counting) return;
    const { by, counts } = this.#handedOver ?? {};
    this.#counting = hasServed ? undefined : by;
    this.#handedOver = undefined;
    if (this.#counting && counts !== undefined) this.#counting.tell({ type: 'adopt', counts });
  }

  /** It serves: what it has got is not needed any more. */
  serves(process: FrontProcess): void {
    if (process === this.#counting) this.#handedOver = undefined;
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
}
