/**
 * File descriptors that the parent process left open, for example a shell with `exec 200> lock`. The processes of the
 * product would hold them, too, and pass them on; untrusted programs get none anyway, which the launcher sees to.
 */
import { closeSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isErrno } from '../util/errno.js';

const LAST_STANDARD_STREAM = 2;
const O_ACCMODE = 0o3;
const O_RDONLY = 0o0;
const O_CLOEXEC = 0o2000000;

/**
 * Closes inherited descriptors except the standard streams and these. Must be called before any program is started.
 * Descriptors of Node and the IPC channel to a parent are recognised by their close-on-exec flag. Files that are open
 * for reading only are left: since Node 22, another thread reads certificates while the process starts
 * (NODE_EXTRA_CA_CERTS), from files without that flag.
 */
export function closeInheritedFiles(kept: readonly number[] = []): void {
  for (const name of readdirSync('/proc/self/fdinfo')) {
    const fd = Number(name);
    if (fd > LAST_STANDARD_STREAM && !kept.includes(fd) && isInherited(fd)) close(fd);
  }
}

function isInherited(fd: number): boolean {
  let text: string;
  let target: string;
  try {
    text = readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1');
    target = readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return false; // the descriptor of the folder listing itself
  }
  const field = /^flags:\s+([0-7]+)$/m.exec(text)?.[1];
  if (field === undefined) return false;
  const flags = Number.parseInt(field, 8);
  const isFileForReading = target.startsWith('/') && (flags & O_ACCMODE) === O_RDONLY;
  return (flags & O_CLOEXEC) === 0 && !isFileForReading;
}

function close(fd: number): void {
  try {
    closeSync(fd);
  } catch (thrown) {
    // Another thread of Node has closed it.
    if (!isErrno(thrown, 'EBADF')) throw thrown;
  }
}
