/**
 * Turns of users at answers that need something scarce until they are sent, such as a connection or much memory: a slow
 * client has it for long.
 */
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { AppError } from '../../errors.js';
import { Turns } from '../../util/turns.js';

/** Longest wait for a turn, milliseconds. */
const MAX_WAIT_MS = 30_000;

export interface AnswerTurnsOptions {
  /** What they are, for people, such as `exports`. */
  readonly what: string;
  /** Places for all together. */
  readonly places: number;
  /** Places beyond these, for users that have none while others have all of them. */
  readonly beyond: number;
  /** How long such a user waits for one of these, milliseconds. */
  readonly patienceMs?: number;
}

export class AnswerTurns {
  readonly #turns: Turns;
  readonly #options: AnswerTurnsOptions;

  constructor(options: AnswerTurnsOptions) {
    this.#options = options;
    this.#turns = new Turns(options);
  }

  /**
   * Makes an answer when it is the turn of its owner.
   * @param contentOf what of the result is still on its way: the place is taken until it has ended
   * @throws AppError busy when the turn does not come
   */
  run<T>(owner: string, work: () => Promise<T>, contentOf?: (result: T) => Readable): Promise<T> {
    return new Promise((resolve, reject) => {
      const untilSent = async () => {
        const result = await work();
        // Who reads it gets its errors.
        const ended = contentOf && finished(contentOf(result), { writable: false }).catch(() => undefined);
        resolve(result);
        await ended;
      };
      const tooLate = AbortSignal.timeout(MAX_WAIT_MS);
      this.#turns.run(owner, untilSent, tooLate).catch((thrown: unknown) => {
        reject(thrown === tooLate.reason ? this.#waitedTooLong() : (thrown as Error));
      });
    });
  }

  #waitedTooLong(): AppError {
    const { places, what } = this.#options;
    const atATime = places === 1 ? `one of the ${what} is` : `${places} ${what} are`;
    return new AppError(
      'busy',
      `Only ${atATime} made at a time, and your turn did not come within ${MAX_WAIT_MS / 1_000} s; try again in a moment`,
    );
  }
}
