/** A snapshot of the processes of this machine with their parents and resource usage. */
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { endianness } from 'node:os';
import { isErrno } from '../util/errno.js';
import { isOutOfDescriptors } from '../util/file-descriptors.js';

export interface ProcessEntry {
  /** The id for reading its /proc entry: its own, or that of a running thread when the first has ended. */
  readonly thread: number;
  readonly parent: number;
  readonly session: number;
  /** Resident memory, bytes; shared memory counts in full. */
  readonly residentBytes: number;
  /** Whether it is a zombie. */
  readonly hasEnded: boolean;
  /** CPU time of it and of its children that it has waited for, seconds. */
  readonly cpuSeconds: number;
}

/** USER_HZ: the unit of times in /proc. */
const TICKS_PER_SECOND = 100;
const AT_PAGESZ = 6n;
const PAGE_BYTES = pageBytes();

const line = Buffer.allocUnsafe(4096);

/** What processes use, by process id. */
export type Processes = ReadonlyMap<number, ProcessEntry>;

/** Reads synchronously, some microseconds per process. @throws when this process has no file descriptor left */
export function readProcesses(): Processes {
  return readEach(processIds());
}

/**
 * The processes of these users, by user. Those of others take a tenth of the time that reading them would take.
 * @throws when this process has no file descriptor left
 */
export function readProcessesOf(users: ReadonlySet<number>): ReadonlyMap<number, Processes> {
  const byUser = new Map<number, number[]>([...users].map((user) => [user, []]));
  for (const pid of processIds()) byUser.get(userOf(pid) ?? -1)?.push(pid);
  return new Map([...byUser].map(([user, pids]) => [user, readEach(pids)]));
}

/** The same of one user. */
export function readProcessesOfUser(user: number): Processes {
  return readProcessesOf(new Set([user])).get(user) ?? new Map();
}

function readEach(pids: readonly number[]): Processes {
  return new Map(
    pids.flatMap((pid) => {
      const entry = readProcess(String(pid));
      return entry ? [[pid, entry]] : [];
    }),
  );
}

/** The ids of all processes of this machine. */
export function processIds(): number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/**
 * The effective user of a process; undefined when it has ended. The directory belongs to it even when the process is
 * not dumpable and the files in it belong to root (task_dump_owner in the kernel's fs/proc/base.c). It is also the real
 * user of an untrusted program: with no_new_privs, a set-user-ID file does not change it. A tenth of the time of
 * reading /proc/[pid]/status.
 */
export function userOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;
}

/**
 * One of them; undefined when there is none. A process can continue after its first thread has ended, but /proc then
 * shows no usage under its own id.
 */
export function readProcess(pid: string): ProcessEntry | undefined {
  const first = parseStat(pid, readStat(pid));
  if (!first?.hasEnded || first.threads <= 1) return first;
  const others = threadsOf(pid).map((thread) => parseStat(thread, readStat(thread)));
  return others.find((other) => other && !other.hasEnded) ?? first;
}

function threadsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return []; // it has ended
  }
}

/**
 * Total memory of processes, bytes, if it exceeds `limit`. Shared memory counts once.
 * @returns undefined when it does not
 * @throws when this process has no file descriptor left
 */
export function memoryOver(processes: Processes, limit: number): number | undefined {
  const entries = [...processes.values()];
  if (entries.reduce((sum, { residentBytes }) => sum + residentBytes, 0) <= limit) return undefined;
  // Only in this case, because computing the shared memory takes the kernel longer.
  const bytes = entries.reduce(
    (sum, { thread, residentBytes }) => sum + (proportionalBytes(thread) ?? residentBytes),
    0,
  );
  return bytes > limit ? bytes : undefined;
}

/**
 * Whether all threads of a process wait for an event, and none runs, is ready to, waits for a disk or is stopped. Some
 * file systems let a thread wait in the same way. @throws when no file descriptor is left
 */
export function isWaiting(pid: number): boolean {
  return threadsOf(String(pid)).every((thread) => ['S', 'Z', ''].includes(stateOf(readStat(thread))));
}

/**
 * Proportional set size of a process, bytes. 0 when it has ended; undefined when it cannot be read, because the process
 * is not dumpable (`PR_SET_DUMPABLE`) or belongs to another user.
 */
function proportionalBytes(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return 0;
    if (isErrno(error, 'EACCES', 'EPERM')) return undefined;
    throw error;
  }
}

function readStat(pid: string): string {
  let file: number;
  try {
    file = openSync(`/proc/${pid}/stat`, 'r');
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return ''; // it has ended
  }
  try {
    return line.toString('latin1', 0, readSync(file, line));
  } catch {
    return '';
  } finally {
    closeSync(file);
  }
}

/** The fields of /proc/[pid]/stat of a thread. */
interface Stat extends ProcessEntry {
  readonly threads: number;
}

/** proc(5): pid (command) state parent group session ...; the command may contain spaces and parentheses. */
function parseStat(id: string, text: string): Stat | undefined {
  if (text === '') return undefined;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const number = (at: number) => Number(fields[at - 3]);
  return {
    thread: Number(id),
    hasEnded: stateOf(text) === 'Z',
    threads: number(20),
    parent: number(4),
    session: number(6),
    cpuSeconds: (number(14) + number(15) + number(16) + number(17)) / TICKS_PER_SECOND,
    residentBytes: number(24) * PAGE_BYTES,
  };
}

/** `R` running or ready to, `S` waiting, `D` waiting for a disk, `Z` ended, ... */
function stateOf(stat: string): string {
  return stat.charAt(stat.lastIndexOf(')') + 2);
}

/** Bytes of a page of memory, from the auxiliary vector: pairs of type and value. */
function pageBytes(): number {
  const pairs = readFileSync('/proc/self/auxv');
  const read = endianness() === 'LE' ? 'readBigUInt64LE' : 'readBigUInt64BE';
  for (let at = 0; at + 16 <= pairs.length; at += 16) {
    if (pairs[read](at) === AT_PAGESZ) return Number(pairs[read](at + 8));
  }
  return 4096;
}
