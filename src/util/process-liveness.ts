import { readFileSync, readlinkSync } from 'node:fs';
import { isErrno } from './errno.js';

/** Where process ids mean the same processes as here: the boot of the machine, and the namespace of a container. */
export const PID_NAMESPACE = [
  orEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()),
  orEmpty(() => readlinkSync('/proc/self/ns/pid')),
].join(' ');

/** Whether a process with this id exists here. */
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
 * Identifies this process, for the names of what it creates: `<process id>-<start>`. Process ids repeat, after a reboot
 * and in each container.
 */
export const THIS_PROCESS = `${process.pid}-${startOf(process.pid)}`;

/** A regular expression for such an identity, or for the process id alone, which earlier versions used. */
export const PROCESS_PATTERN = '\\d+(?:-\\d+)?';

/**
 * Whether a process is running.
 * @param identity of a process id alone, any process with it is meant, except this one
 */
export function isRunning(identity: string): boolean {
  const [pid = '', start] = identity.split('-');
  if (start !== undefined) return startOf(pid) === start;
  const id = Number(pid);
  return id > 0 && id !== process.pid && isAlive(id);
}

/** When a process was started, in clock ticks since boot; undefined when it has ended. */
function startOf(pid: number | string): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of the program, in parentheses, can contain anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** Systems that show a process little of themselves may hide these files. */
function orEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
