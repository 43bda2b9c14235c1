/**
 * File descriptors that the parent process left open, for example a shell with `exec 200> lock`. They would be
 * inherited by the untrusted programs that this process starts.
 */
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const LAST_STANDARD_STREAM = 2;
const O_CLOEXEC = 0o2000000;

/**
 * Closes inherited descriptors except the standard streams. Must be called before any program is started. Descriptors
 * of Node and the IPC channel to a parent are recognised by their close-on-exec flag.
 */
export function closeInheritedFiles(): void {
  for (const name of readdirSync('/proc/self/fdinfo')) {
    const fd = Number(name);
    if (fd > LAST_STANDARD_STREAM && isInherited(fd)) closeSync(fd);
  }
}

function isInherited(fd: number): boolean {
  let text: string;
  try {
    text = readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1');
  } catch {
    return false; // the descriptor of the folder listing itself
  }
  const flags = /^flags:\s+([0-7]+)$/m.exec(text)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
}
