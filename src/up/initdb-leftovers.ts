/** What an interrupted `initdb` leaves behind: processes that nobody waits for any more, and the password in a file. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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

/** Removes the file by which the library tells `initdb` the password. Everybody can read it, so it must not stay. */
export function removePasswordFile(password: string): void {
  for (const name of readdirSync(tmpdir()).filter((candidate) => candidate.startsWith('pg-password-'))) {
    const file = join(tmpdir(), name);
    if (read(file).trim() === password) rmSync(file, { force: true });
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // it has gone, or belongs to somebody else
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
