/** Error codes of the operating system. */

/** Whether something thrown is an error with one of these codes, such as `ENOENT`. */
export function isErrno(thrown: unknown, ...codes: readonly string[]): boolean {
  return thrown instanceof Error && 'code' in thrown && codes.includes(String(thrown.code));
}
