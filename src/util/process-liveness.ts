import { readFileSync } from 'node:fs';
import { isErrno } from './errno.js';

/** Whether a process with this id exists on this machine. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists, but belongs to another user.
    return isErrno(error, 'EPERM');
  }
}

/**
 * When a process was started, in clock ticks since boot; undefined when it has ended. Together with its id, which can
 * be reused, it identifies a process.
 */
export function startOf(pid: number | string): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of the program, in parentheses, can contain anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
