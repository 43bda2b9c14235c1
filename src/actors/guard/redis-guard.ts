/**
 * The guard for Redis (https://redis.io/docs/latest/develop/reference/protocol-spec/, RESP2). A value that is too long
 * is replaced by an error and skipped, so that the call alone fails: a handler that asks for it does not cost others
 * their connection.
 */
import { AnswerRefused, type Guard, tooLong } from './guard.js';

const LF = 10;
const BULK = 36; // $
const ARRAY = 42; // *
/** Deeper arrays are of no command, and libraries read them recursively. */
const MAX_DEPTH = 64;
/** Besides bulk strings, an answer may have a line of this many bytes, such as an error. */
const MAX_LINE = 64 * 1024;
/** The longest line with a length. */
const MAX_LENGTH_LINE = 32;
/** What an element of an array takes in memory at least, bytes: an array of nothing is not for free. */
const ELEMENT_BYTES = 8;

const NOTHING = Buffer.alloc(0);

export class RedisGuard implements Guard {
  readonly #limit: number;
  /** The beginning of a line that may have a length; the library gets it when it is whole. */
  #held: Buffer = NOTHING;
  /** Bytes of a line without a length that have come; 0 at the beginning of a line. */
  #lineBytes = 0;
  /** Bytes of a bulk string, with its end, that have not come yet. */
  #missing = 0;
  /** Whether these bytes are kept from the library. */
  #isSkipping = false;
  /** Missing elements of each array that has not ended. */
  readonly #arrays: number[] = [];
  /** Bytes of the answer so far. */
  #answer = 0;

  /** @param limit bytes of one answer */
  constructor(limit: number) {
    this.#limit = limit;
  }

  pass(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = NOTHING;
    /** What the library gets, before what begins at `from`. */
    const parts: Buffer[] = [];
    let from = 0;
    for (let at = 0; at < bytes.length; ) {
      if (this.#missing > 0) {
        const count = Math.min(this.#missing, bytes.length - at);
        this.#missing -= count;
        at += count;
        if (this.#isSkipping) from = at;
        if (this.#missing === 0) this.#isSkipping = false;
        continue;
      }
      const end = bytes.indexOf(LF, at) + 1;
      const type = bytes[at];
      if (this.#lineBytes > 0 || (type !== BULK && type !== ARRAY)) {
        at = this.#skipLine(at, end === 0 ? bytes.length : end, end > 0);
        continue;
      }
      if (end === 0) {
        if (bytes.length - at > MAX_LENGTH_LINE)
          throw new AnswerRefused('it sent a length that is no number');
        this.#held = Buffer.from(bytes.subarray(at));
        parts.push(bytes.subarray(from, at));
        from = bytes.length;
        break;
      }
      const line = bytes.toString('latin1', at, Math.min(end, at + MAX_LENGTH_LINE));
      const error = this.#begin(type, lengthOf(line));
      if (error !== undefined) {
        parts.push(bytes.subarray(from, at), Buffer.from(error));
        from = end;
      }
      at = end;
    }
    if (parts.length === 0) return from === 0 ? bytes : bytes.subarray(from);
    parts.push(bytes.subarray(from));
    return Buffer.concat(parts);
  }

  /** A part of a line without a length. @returns where it ends */
  #skipLine(start: number, end: number, isWhole: boolean): number {
    this.#lineBytes += end - start;
    if (this.#lineBytes > MAX_LINE) throw new AnswerRefused(`it sent a line of more than ${MAX_LINE} bytes`);
    if (!isWhole) return end;
    this.#count(this.#lineBytes);
    this.#lineBytes = 0;
    this.#endElement();
    return end;
  }

  /** @returns the error instead of a value that is too long */
  #begin(type: number, length: number): string | undefined {
    if (type === ARRAY) {
      this.#beginArray(length);
    } else if (length > this.#limit && this.#arrays.length === 0) {
      this.#missing = length + 2;
      this.#isSkipping = true;
      const limit = `an answer may have ${this.#limit / 1024 ** 2} MiB (SERVICE_ANSWER_MB)`;
      return `-ERR the value has ${length} bytes, and ${limit}\r\n`;
    } else {
      if (this.#arrays.length > 0) this.#count(Math.max(0, length));
      this.#missing = length < 0 ? 0 : length + 2;
      this.#endElement();
    }
    return undefined;
  }

  #count(bytes: number): void {
    this.#answer += bytes;
    if (this.#answer > this.#limit) throw tooLong('an answer', this.#answer, this.#limit);
  }

  #beginArray(length: number): void {
    if (length <= 0) {
      this.#endElement();
      return;
    }
    if (this.#arrays.length === MAX_DEPTH)
      throw new AnswerRefused(`it sent arrays that are nested more than ${MAX_DEPTH} deep`);
    this.#count(length * ELEMENT_BYTES);
    this.#arrays.push(length);
  }

  /** An element of the innermost array, or an answer, has come. */
  #endElement(): void {
    for (;;) {
      const left = this.#arrays.pop();
      if (left === undefined) {
        this.#answer = 0;
        return;
      }
      if (left > 1) {
        this.#arrays.push(left - 1);
        return;
      }
    }
  }
}

/** The number in a line like `$5\r\n`; -1 for nothing. */
function lengthOf(line: string): number {
  const [, digits] = /^.(-?\d{1,16})\r\n$/.exec(line) ?? [];
  if (digits === undefined) throw new AnswerRefused('it sent a length that is no number');
  return Number(digits);
}
