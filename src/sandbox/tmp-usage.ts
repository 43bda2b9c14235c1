/** Memory usage of the /tmp of a program in the sandbox, which no process is charged for. */
import { statfsSync, statSync } from 'node:fs';
import { isErrno } from '../util/errno.js';

/** Kernel memory per file with a long name, without its content, bytes. */
const FILE_BYTES = 1_300;

/**
 * Returns 0 bytes when the sandbox has ended or is still starting.
 * @param pid its first process, or a running thread of it
 */
export function tmpBytes(pid: number): number {
  const tmp = `/proc/${pid}/root/tmp`;
  try {
    // During the start, it may still see the file system of this machine.
    if (statSync(tmp).dev === statSync('/tmp', { throwIfNoEntry: false })?.dev) return 0;
    const { blocks, bfree, bsize, files, ffree } = statfsSync(tmp);
    return (blocks - bfree) * bsize + (files - ffree) * FILE_BYTES;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return 0;
    throw error;
  }
}
