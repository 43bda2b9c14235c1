/** Kills programs with all their processes. */
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { isErrno } from '../util/errno.js';
import { isOutOfDescriptors } from '../util/file-descriptors.js';
import {
  type ProcessEntry,
  type Processes,
  processIds,
  readProcesses,
  readProcessesOfUser,
  userOf,
} from './process-table.js';

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
    const pids = tryToFind(find);
    empty = pids?.length === 0 ? empty + 1 : 0;
    if (empty === EMPTY_ROUNDS) return true;
    for (const pid of pids ?? []) killProcess(pid);
    if (empty === 0 && performance.now() > deadline) {
      process.emitWarning(`processes were killed and have not ended: ${pids?.join(', ') ?? 'unknown'}`);
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
  return running(readProcesses(), ({ session }) => session === leader);
}

/** The running processes of a user. */
export function processesOfUser(user: number): number[] {
  return running(readProcessesOfUser(user));
}

function running(processes: Processes, isIncluded: (entry: ProcessEntry) => boolean = () => true): number[] {
  return [...processes].flatMap(([pid, entry]) => (!entry.hasEnded && isIncluded(entry) ? [pid] : []));
}

const KNOWN_MS = 1_000;
let lastLook: { at: number; users: ReadonlySet<number | undefined> } = { at: -KNOWN_MS, users: new Set() };

/**
 * The users that have processes, also such that have ended and were not waited for, as they were at most a second ago:
 * it is asked for each start of a program, and where there are thousands, looking at them takes longer than a start.
 */
export function usersWithProcesses(): ReadonlySet<number | undefined> {
  const now = performance.now();
  if (now - lastLook.at > KNOWN_MS) lastLook = { at: now, users: new Set(processIds().map(userOf)) };
  return lastLook.users;
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
