/** Full disks: recognised wherever they are run into, so that people are told what it is and what to do. */

/** Something could not be carried out because a disk is full. The message says which, and what to do. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
}

/** How programs say it. Linkers write by way of memory, and die of a bus error when there is no room behind it. */
const WORDS =
  /No space left on device|Disk quota exceeded|\(os error (28|122)\)|signal 7 \[Bus error\]|ended by SIGBUS/;
const CODES = ['ENOSPC', 'EDQUOT'];

/** True when an error, or what caused it, is a full disk. */
export function isNoRoom(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  if (thrown instanceof NoRoomError) return true;
  if ('code' in thrown && CODES.includes(String(thrown.code))) return true;
  return isNoRoom(thrown.cause);
}

/** True when what a program printed tells of a full disk. */
export function tellsOfNoRoom(output: string): boolean {
  return WORDS.test(output);
}
