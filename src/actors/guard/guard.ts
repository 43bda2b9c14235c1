/**
 * Guards between the sockets of a service's process and the client libraries, which believe what a server says: a frame
 * that claims to be longer than an answer may be is refused before a library makes room for it.
 */

/** Looks at what a server sends, before a library does. */
export interface Guard {
  /**
   * @param chunk what has come
   * @returns what the library gets, usually the same chunk
   * @throws AnswerRefused when the connection cannot be used any more
   */
  pass(chunk: Buffer): Buffer;
}

/** The server has sent something that no library may see. */
export class AnswerRefused extends Error {
  override readonly name = 'AnswerRefused';
}

/** The refusal of an answer that is too long, with a message. */
export function tooLong(what: string, bytes: number, limit: number): AnswerRefused {
  const mb = limit / 1024 ** 2;
  return new AnswerRefused(
    `${what} has ${bytes} bytes, and an answer may have ${mb} MiB (SERVICE_ANSWER_MB)`,
  );
}
