/**
 * Room on the disk for bodies of requests that are written there, and wait until they are read. Owners share it: who
 * sends many bodies, or large ones, leaves room to others. The oldest body of each owner is let in however full it is;
 * each body has a limit of its own.
 */
import { Transform } from 'node:stream';
import { AppError, toError } from '../errors.js';

export interface SpoolLimits {
  /** The bodies, for people: "uploads that have not been stored yet". */
  readonly title: string;
  /** Bodies of one owner that arrive or wait, and the setting that says so. */
  readonly bodies: number;
  readonly bodiesSetting: string;
  /** Most bytes of all bodies together, and their setting. Several bodies of one owner may have half of it. */
  readonly bytes: number;
  readonly bytesSetting: string;
  /** The error code for an owner that has too many bodies. */
  readonly code: 'too_many_imports' | 'too_many_uploads';
}

/** The place of one body. */
export interface SpoolPlace {
  /** More of it has arrived. @throws AppError the code of the room, or busy */
  take(bytes: number): void;
  /** It is not on the disk any more; harmless when that was said before. */
  end(): void;
}

/** What is done with a body mostly takes seconds. */
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

interface OwnerBodies {
  /** The oldest first. */
  readonly places: Set<SpoolPlace>;
  bytes: number;
}

export class SpoolRoom {
  readonly #limits: SpoolLimits;
  readonly #owners = new Map<string, OwnerBodies>();
  #bytes = 0;

  constructor(limits: SpoolLimits) {
    this.#limits = limits;
  }

  /** Bytes of all bodies on the disk. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Takes the place of a body that is about to arrive.
   * @throws AppError the code of the room, when the owner has as many as one may have
   */
  begin(name: string): SpoolPlace {
    const { bodies, bodiesSetting, code, title } = this.#limits;
    const owner = this.#owners.get(name) ?? { places: new Set(), bytes: 0 };
    if (owner.places.size >= bodies)
      throw new AppError(
        code,
        `You have ${bodies} ${title} (${bodiesSetting}); try again when some of them have.`,
        RETRY,
      );
    this.#owners.set(name, owner);
    let reserved = 0;
    let hasEnded = false;
    const place: SpoolPlace = {
      take: (bytes) => {
        // What still arrives then is not kept.
        if (hasEnded) return;
        const [oldest] = owner.places;
        if (oldest !== place) this.#require(owner, bytes);
        reserved += bytes;
        owner.bytes += bytes;
        this.#bytes += bytes;
      },
      end: () => {
        if (hasEnded) return;
        hasEnded = true;
        owner.places.delete(place);
        owner.bytes -= reserved;
        this.#bytes -= reserved;
        if (owner.places.size === 0) this.#owners.delete(name);
      },
    };
    owner.places.add(place);
    return place;
  }

  #require(owner: OwnerBodies, bytes: number): void {
    const { bytes: limit, bytesSetting, code, title } = this.#limits;
    const ofOwner = Math.floor(limit / 2);
    if (owner.bytes + bytes > ofOwner)
      throw new AppError(
        code,
        `Your ${title} have more than ${ofOwner} bytes together (half of ${bytesSetting}); try again when some of ` +
          'them have.',
        RETRY,
      );
    if (this.#bytes + bytes > limit)
      throw new AppError(
        'busy',
        `All ${title} have ${limit} bytes together (${bytesSetting}); send one at a time, or try again in a moment.`,
        RETRY,
      );
  }
}
