/**
 * The guard for SMTP (https://www.rfc-editor.org/rfc/rfc5321#section-4.2): replies of lines that begin with a code,
 * followed by a dash if there are more lines. The client library skips empty lines, and keeps them until it does.
 */
import { AnswerRefused, type Guard } from './guard.js';

/** A line may have 512 bytes (RFC 5321, 4.5.3.1.5), and a reply hardly has a hundred lines. */
const MAX_REPLY_BYTES = 1024 ** 2;
const CODE_LENGTH = 3;
const LF = 10;
const DASH = 45;
const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 48 && byte <= 57;

export class SmtpGuard implements Guard {
  /** Bytes of the line so far. */
  #line = 0;
  /** Bytes of the reply so far. */
  #reply = 0;
  /** Whether the line begins as the last one of a reply does. */
  #isLast = false;

  pass(chunk: Buffer): Buffer {
    for (let at = 0; at < chunk.length; ) {
      const newline = chunk.indexOf(LF, at);
      const end = newline === -1 ? chunk.length : newline + 1;
      if (this.#line === 0) this.#isLast = isDigit(chunk[at]);
      if (this.#line <= CODE_LENGTH && chunk[at + CODE_LENGTH - this.#line] === DASH) this.#isLast = false;
      this.#line += end - at;
      this.#reply += end - at;
      if (this.#reply > MAX_REPLY_BYTES)
        throw new AnswerRefused(`it sent a reply of more than ${MAX_REPLY_BYTES / 1024 ** 2} MiB`);
      if (newline !== -1) {
        if (this.#isLast) this.#reply = 0;
        this.#line = 0;
      }
      at = end;
    }
    return chunk;
  }
}
