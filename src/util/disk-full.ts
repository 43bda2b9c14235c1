import { isErrno } from './errno.js';

/** Recognises errors of a full disk, so that messages can say so. */

/** An operation failed because a disk is full. The message says which disk, and what to do. */
export class DiskFullError extends Error {
  override readonly name = 'DiskFullError';
}

/** How programs report it. Linkers write to mapped files, and get SIGBUS when the disk is full. */
const WORDS =
  /No space left on device|Disk quota exceeded|\(os error (28|122)\)|signal 7 \[Bus error\]|ended by SIGBUS/;

/** Whether an error, or one of its causes, is a full disk. */
export function isDiskFull(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  if (thrown instanceof DiskFullError) return true;
  if (isErrno(thrown, 'ENOSPC', 'EDQUOT')) return true;
  return isDiskFull(thrown.cause);
}

/** Whether the output of a program reports a full disk. */
export function reportsDiskFull(output: string): boolean {
  return WORDS.test(output);
}
