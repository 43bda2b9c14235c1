/** What a program in the sandbox keeps in its /tmp: memory that is part of no process. */
import { statfsSync, statSync } from 'node:fs';

/** What the kernel needs for a file besides what is in it, with a long name, bytes. */
const FILE_BYTES = 1_300;

/**
 * 0 bytes when the sandbox has ended, or has not quite started.
 * @param pid its first process, or a thread of that which has not ended
 */
export function tmpBytes(pid: number): number {
  const tmp = `/proc/${pid}/root/tmp`;
  try {
    // While it is being started, it may still be in the folders of this machine.
    if (statSync(tmp).dev === statSync('/tmp', { throwIfNoEntry: false })?.dev) return 0;
    const { blocks, bfree, bsize, files, ffree } = statfsSync(tmp);
    return (blocks - bfree) * bsize + (files - ffree) * FILE_BYTES;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ESRCH') return 0;
    throw error;
  }
}
