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
  /** The beginning of a line that has not ended yet: of a length, whole; otherwise only its type. */
  #line = '';
  #lineBytes = 0;
  /** Bytes of a bulk string, with its end, that have not come yet. */
  #missing = 0;
  /** Whether these bytes are kept from the library. */
  #isSkipping = false;
  /** For each array that has not ended: its missing elements. */
  readonly #arrays: number[] = [];
  /** Bytes of the answer so far. */
  #answer = 0;

  /** @param limit bytes of one answer */
  constructor(limit: number) {
    this.#limit = limit;
  }

  pass(chunk: Buffer): Buffer {
    /** What the library gets, if it is not the chunk. */
    let parts: Buffer[] | undefined;
    /** From here on, bytes of the chunk are not in `parts` yet. */
    let from = 0;
    for (let at = 0; at < chunk.length; ) {
      if (this.#missing > 0) {
        const taken = Math.min(this.#missing, chunk.length - at);
        this.#missing -= taken;
        at += taken;
        if (this.#isSkipping) from = at;
        if (this.#missing === 0) this.#isSkipping = false;
        continue;
      }
      const lineAt = at;
      const end = chunk.indexOf(LF, at);
      at = end === -1 ? chunk.length : end + 1;
      const isFresh = this.#lineBytes === 0;
      this.#add(chunk, lineAt, at);
      if (end === -1) continue;
      const error = this.#endLine();
      if (error === undefined) continue;
      parts ??= [];
      // The line with the length may have begun in an earlier chunk, which the library has: only its end is missing.
      parts.push(chunk.subarray(from, lineAt), isFresh ? Buffer.from(error) : NOTHING);
      if (!isFresh) throw tooLong('a value', this.#missing - 2, this.#limit);
      from = at;
    }
    if (this.#isSkipping && from === chunk.length && !parts) return NOTHING;
    if (!parts) return from === 0 ? chunk : chunk.subarray(from);
    parts.push(chunk.subarray(from));
    return Buffer.concat(parts);
  }

  #add(chunk: Buffer, start: number, end: number): void {
    this.#lineBytes += end - start;
    if (this.#lineBytes > MAX_LINE) throw new AnswerRefused(`it sent a line of more than ${MAX_LINE} bytes`);
    if (this.#line.length >= MAX_LENGTH_LINE) return;
    this.#line += chunk.toString('latin1', start, Math.min(end, start + MAX_LENGTH_LINE));
  }

  /** @returns the error instead of a value that is too long */
  #endLine(): string | undefined {
    const line = this.#line;
    const bytes = this.#lineBytes;
    this.#line = '';
    this.#lineBytes = 0;
    const type = line.charCodeAt(0);
    this.#answer += bytes;
    if (type === ARRAY) {
      this.#beginArray(lengthOf(line));
    } else if (type === BULK) {
      const length = lengthOf(line);
      if (length > this.#limit && this.#arrays.length === 0) {
        this.#missing = length + 2;
        this.#isSkipping = true;
        this.#answer = 0;
        return `-ERR the value has ${length} bytes, and an answer may have ${this.#limit / 1024 ** 2} MiB (SERVICE_ANSWER_MB)\r\n`;
      }
      this.#answer += Math.max(0, length);
      this.#missing = length < 0 ? 0 : length + 2;
      this.#endElement();
    } else {
      this.#endElement();
    }
    if (this.#answer > this.#limit + MAX_LINE) throw tooLong('an answer', this.#answer, this.#limit);
    return undefined;
  }

  #beginArray(length: number): void {
    if (length <= 0) {
      this.#endElement();
      return;
    }
    if (this.#arrays.length === MAX_DEPTH)
      throw new AnswerRefused(`it sent arrays that are nested more than ${MAX_DEPTH} deep`);
    const bytes = length * ELEMENT_BYTES;
    if (bytes > this.#limit) throw tooLong('an array that it sent', bytes, this.#limit);
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
