/** The processes of an `initdb` that nobody waits for any more. */
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Kills the `initdb` that makes this data folder, and what it has started. Synchronous: for the very end of a process.
 * @returns whether there was any; they take a moment to end
 */
export function killInitdb(folder: string): boolean {
  const found = readdirSync('/proc').filter(
    (pid) =>
      /^\d+$/.test(pid) &&
      // initdb has the folder among its arguments, the server it starts in its environment.
      (read(`/proc/${pid}/cmdline`).split('\0').includes(`--pgdata=${folder}`) ||
        read(`/proc/${pid}/environ`).split('\0').includes(`PGDATA=${folder}`)),
  );
  for (const pid of found) kill(Number(pid));
  return found.length > 0;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // it has ended, or belongs to somebody else
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
