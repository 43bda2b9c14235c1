/** Looks at processes of this machine. */
import { readdirSync, readFileSync } from 'node:fs';

/** False when it has ended, also when nobody has asked how. */
export function isRunning(pid: number | null): boolean {
  if (pid === null) return false;
  const stat = read(`/proc/${pid}/stat`);
  // pid (command) state ...; the command may hold spaces and parentheses.
  return stat !== '' && stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
}

/** Running processes whose environment holds this text. */
export function processesWith(environment: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => read(`/proc/${pid}/environ`).includes(environment) && isRunning(pid));
}

/** The running descendants of a process, with their command lines. */
export function descendantsOf(pid: number): { pid: number; command: string }[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => isRunning(candidate) && parentOf(candidate) === pid);
  return children.flatMap((child) => [
    { pid: child, command: read(`/proc/${child}/cmdline`).replaceAll('\0', ' ').trim() },
    ...descendantsOf(child),
  ]);
}

/** The compilers of handlers among its descendants; a worker that has just started compiles the SDK as well. */
export function handlerCompilersOf(pid: number): number[] {
  const isOne = ({ command }: { command: string }) => /^\S*rustc .*--crate-name=handler /.test(command);
  return descendantsOf(pid)
    .filter(isOne)
    .map((found) => found.pid);
}

function parentOf(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return ''; // it has ended, or belongs to somebody else
  }
}
