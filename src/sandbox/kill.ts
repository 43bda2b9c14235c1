/** Kills programs with all their processes. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { isErrno } from '../util/errno.js';
import { isOutOfDescriptors } from '../util/file-descriptors.js';
import { readProcesses } from './process-table.js';

/** Consecutive rounds without a process before it is done: a process may fork while the table is read. */
const EMPTY_ROUNDS = 2;
const ROUND_MS = 5;
/** A process in an uninterruptible wait, as for a disk that does not answer, does not end when it is killed. */
const LIMIT_MS = 10_000;

/**
 * Kills the processes that `find` returns until there are none.
 * @param find returns the ids of running processes
 * @returns false when some have not ended after `limitMs`, which is logged as a warning
 */
export async function killAll(find: () => number[], limitMs = LIMIT_MS): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  for (let empty = 0; ; ) {
    const found = tryToFind(find);
    empty = found?.length === 0 ? empty + 1 : 0;
    if (empty === EMPTY_ROUNDS) return true;
    for (const pid of found ?? []) killProcess(pid);
    if (empty === 0 && performance.now() > deadline) {
      process.emitWarning(`processes were killed and have not ended: ${found?.join(', ') ?? 'unknown'}`);
      return false;
    }
    // Those that were killed need a while to end; otherwise others only get their turn.
    await (empty === 0 ? delay(ROUND_MS) : nextTurn());
  }
}

/** Undefined when no file descriptor is left to read the process table. */
function tryToFind(find: () => number[]): number[] | undefined {
  try {
    return find();
  } catch (error) {
    if (isOutOfDescriptors(error)) return undefined;
    throw error;
  }
}

/** The running processes of a session, without those that have started a new session. */
export function processesOfSession(leader: number): number[] {
  return [...readProcesses()]
    .filter(([, { session, hasEnded }]) => session === leader && !hasEnded)
    .map(([pid]) => pid);
}

/**
 * The running processes of a user, including those of set-user-ID programs, whose files can belong to anybody: so each
 * process is read.
 */
export function processesOfUser(user: number): number[] {
  return processIds().filter((pid) => {
    const status = readStatus(pid);
    return userIn(status) === user && !hasEnded(status);
  });
}

/**
 * Whether a process has this effective user. Much faster, for each start of a program; a process that has made itself
 * unreadable is not seen.
 */
export function hasProcesses(user: number): boolean {
  return processIds().some((pid) => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === user);
}

function processIds(): number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** The real user of a process; undefined when it has ended. */
export function userOf(pid: number): number | undefined {
  return userIn(readStatus(pid));
}

function userIn(status: string): number | undefined {
  const user = /^Uid:\s+(\d+)/m.exec(status)?.[1];
  return user === undefined ? undefined : Number(user);
}

/** Not ended while other threads run, even if the first thread has ended. */
function hasEnded(status: string): boolean {
  return /^State:\s+[ZX]/m.test(status) && !/^Threads:\s+([2-9]|\d{2,})$/m.test(status);
}

function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1');
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return ''; // it has ended
  }
}

/** Kills the process group of a child; processes that have left the group are not killed. */
export function killGroup(leader: number | undefined): void {
  if (leader !== undefined) killProcess(-leader);
}

export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!isErrno(error, 'ESRCH')) throw error;
  }
}
