/**
 * Files that whoever started this process has left open for it, by oversight: a shell (`exec 200> lock`), a supervisor. They
 * would go on to the programs of strangers that are started here.
 */
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const LAST_STANDARD_STREAM = 2;
const O_CLOEXEC = 0o2000000;

/**
 * Closes what was inherited, standard streams excepted. To be called before anything is started. What Node opens, and the
 * channel to a parent of ours, is marked to be closed in programs started here: by that the rest can be told.
 */
export function closeInheritedFiles(): void {
  for (const name of readdirSync('/proc/self/fdinfo')) {
    const fd = Number(name);
    if (fd > LAST_STANDARD_STREAM && isPassedOn(fd)) closeSync(fd);
  }
}

function isPassedOn(fd: number): boolean {
  let text: string;
  try {
    text = readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1');
  } catch {
    return false; // by which the folder itself was read
  }
  const flags = /^flags:\s+([0-7]+)$/m.exec(text)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
}
