/**
 * Transfers between this process and object storages. Users take turns: a storage has few connections, of which
 * handlers keep some, and a slow client has one for long.
 */
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { AppError } from '../../errors.js';
import { Turns } from '../../util/turns.js';

/** Of the 32 connections of a storage. */
const PLACES = 16;
/** For users that have none while others have all of them. */
const BEYOND = 8;
/** For a turn. */
const MAX_WAIT_MS = 30_000;

export class Transfers {
  readonly #turns = new Turns({ places: PLACES, beyond: BEYOND });

  /**
   * Does a transfer when it is the turn of its owner.
   * @param contentOf what of the result is still on its way: the place is taken until it has ended
   * @throws AppError busy when the turn does not come
   */
  run<T>(owner: string, transfer: () => Promise<T>, contentOf?: (result: T) => Readable): Promise<T> {
    return new Promise((resolve, reject) => {
      const work = async () => {
        const result = await transfer();
        // Who reads it gets its errors.
        const ended = contentOf && finished(contentOf(result), { writable: false }).catch(() => undefined);
        resolve(result);
        await ended;
      };
      const tooLate = AbortSignal.timeout(MAX_WAIT_MS);
      this.#turns.run(owner, work, tooLate).catch((thrown: unknown) => {
        reject(thrown === tooLate.reason ? waitedTooLong() : (thrown as Error));
      });
    });
  }
}

function waitedTooLong(): AppError {
  return new AppError(
    'busy',
    `You have no place among the ${PLACES} transfers of object storages at a time, and none became free within ` +
      `${MAX_WAIT_MS / 1_000} s; try again in a moment`,
  );
}
