/**
 * Room on the disk for bodies of requests that are written there, and wait until they are read. Owners share it: who
 * sends many bodies, or large ones, leaves room to others. One body of each owner is let in however full it is; each
 * body has a limit of its own.
 */
import { Transform } from 'node:stream';
import { AppError, toError } from '../errors.js';

export interface UploadLimits {
  /** Bodies of one owner that arrive, wait, or are read. */
  readonly bodies: number;
  /** Of all bodies together. Several ones of one owner may have half of it. */
  readonly bytes: number;
}

/** The place of one body. */
export interface UploadPlace {
  /** More of it has arrived. @throws AppError too_many_imports, busy */
  take(bytes: number): void;
  /** It is not on the disk any more; harmless when that was said before. */
  end(): void;
}

/** Reading a document takes seconds at most. */
const RETRY = { details: { retry_after_seconds: 5 } };

/** Passes on what arrives. @param take called with the bytes of each piece; the stream fails when it throws */
export function counting(take: (bytes: number) => void): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        take(chunk.length);
      } catch (thrown) {
        done(toError(thrown));
        return;
      }
      done(null, chunk);
    },
  });
}

interface Owner {
  bodies: number;
  bytes: number;
}

export class UploadRoom {
  readonly #limits: UploadLimits;
  readonly #owners = new Map<string, Owner>();
  #bytes = 0;

  constructor(limits: UploadLimits) {
    this.#limits = limits;
  }

  /** Of all bodies on the disk. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Takes the place of a body that is about to arrive.
   * @throws AppError too_many_imports when the owner has as many as one may have
   */
  begin(name: string): UploadPlace {
    const { bodies } = this.#limits;
    const owner = this.#owners.get(name) ?? { bodies: 0, bytes: 0 };
    if (owner.bodies >= bodies)
      throw new AppError(
        'too_many_imports',
        `You have ${bodies} imports and plans that have not been read yet (IMPORTS_QUEUED_LIMIT); try again when some of them have.`,
        RETRY,
      );
    this.#owners.set(name, owner);
    owner.bodies++;
    let reserved = 0;
    let hasEnded = false;
    return {
      take: (bytes) => {
        // What still arrives then is not kept.
        if (hasEnded) return;
        this.#require(owner, bytes);
        reserved += bytes;
        owner.bytes += bytes;
        this.#bytes += bytes;
      },
      end: () => {
        if (hasEnded) return;
        hasEnded = true;
        owner.bodies--;
        owner.bytes -= reserved;
        this.#bytes -= reserved;
        if (owner.bodies === 0) this.#owners.delete(name);
      },
    };
  }

  #require(owner: Owner, bytes: number): void {
    if (owner.bodies === 1) return;
    const ofOwner = Math.floor(this.#limits.bytes / 2);
    if (owner.bytes + bytes > ofOwner)
      throw new AppError(
        'too_many_imports',
        `Your imports and plans that have not been read yet have more than ${ofOwner} bytes together (half of ` +
          'IMPORTS_SPOOLED_LIMIT_BYTES); try again when some of them have.',
        RETRY,
      );
    if (this.#bytes + bytes > this.#limits.bytes)
      throw new AppError(
        'busy',
        `All imports and plans that have not been read yet have ${this.#limits.bytes} bytes together ` +
          '(IMPORTS_SPOOLED_LIMIT_BYTES); send one at a time, or try again in a moment.',
        RETRY,
      );
  }
}
