/**
 * Which process of the front counts requests by callers: the newest. The one before it hands its counts over, and has
 * its last requests counted by it, so that each is counted once.
 */
import pTimeout from 'p-timeout';
import type { RateDescriptor } from '../../contracts/front.js';
import type { FrontProcess } from './front-process.js';
import type { RateStatuses } from './messages.js';

/** One that does not hand over in time hangs; the next one begins anew. */
const HAND_OVER_MS = 2_000;

/** Where a process has its counts from. */
interface Origin {
  readonly by: FrontProcess;
  /** The counts as they were handed over; none before that. */
  counts: string;
}

export class FrontCounts {
  /** The one that counts when all has been handed over. */
  #newest: FrontProcess | undefined;
  /** The one that has the counts. */
  #holder: FrontProcess | undefined;
  /** Where processes that do not serve yet have their counts from. */
  readonly #origins = new WeakMap<FrontProcess, Origin>();
  readonly #ended = new WeakSet<FrontProcess>();
  #turns: Promise<void> = Promise.resolve();

  /** Lets a process count from now on, which is about to serve; resolves when it has the counts. */
  async moveTo(process: FrontProcess): Promise<void> {
    const by = this.#newest;
    this.#newest = process;
    if (by !== process) {
      const origin: Origin | undefined = by && { by, counts: '' };
      if (origin) this.#origins.set(process, origin);
      this.#inTurn(async () => {
        if (origin) {
          origin.counts = await handedOver(origin.by);
          process.tell({ type: 'adopt', counts: origin.counts });
        }
        this.#holder = process;
      });
    }
    await this.#turns;
  }

  /** A process serves. It counts, also when another one has been about to serve meanwhile, which is not needed now. */
  async serves(process: FrontProcess): Promise<void> {
    await this.moveTo(process);
    this.#origins.delete(process);
  }

  /** A process has ended. One that never served gives back what it has got, to the last one that still runs. */
  ended(process: FrontProcess, hasServed: boolean): void {
    this.#ended.add(process);
    if (process !== this.#newest) return;
    let origin = hasServed ? undefined : this.#takeOrigin(process);
    while (origin && this.#ended.has(origin.by)) origin = this.#takeOrigin(origin.by);
    const given = origin;
    this.#newest = given?.by;
    this.#inTurn(async () => {
      given?.by.tell({ type: 'adopt', counts: given.counts });
      this.#holder = given?.by;
    });
  }

  /**
   * Counts a request for a process that has handed its counts over; null when none counts. It waits for what is being
   * handed over already, and not for what is to be handed over later.
   */
  take(rules: readonly RateDescriptor[]): Promise<RateStatuses | null> {
    return new Promise((resolve, reject) => {
      this.#inTurn(async () => {
        const answering = this.#holder?.request({ type: 'count', rules });
        Promise.resolve(answering).then((answer) => resolve(answer?.taken ?? null), reject);
      });
    });
  }

  /** One after the other: who hands over has first to get what was handed over to it. */
  #inTurn(turn: () => Promise<void>): void {
    this.#turns = this.#turns.then(turn);
  }

  #takeOrigin(process: FrontProcess): Origin | undefined {
    const origin = this.#origins.get(process);
    this.#origins.delete(process);
    return origin;
  }
}

/** The counts of a process; none of one that does not answer. */
async function handedOver(by: FrontProcess): Promise<string> {
  const answer = await pTimeout(by.request({ type: 'handOver' }), {
    milliseconds: HAND_OVER_MS,
    fallback: () => undefined,
  });
  return answer?.counts ?? '';
}
