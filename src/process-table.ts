/** The processes of this machine at one moment: who started whom, and what each has used so far. */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { endianness } from 'node:os';
import { isOutOfDescriptors } from './no-descriptors.js';

/** One process. */
export interface ProcessEntry {
  /** The id by which it can be looked at: its own, or of another of its threads when the first has ended. */
  readonly thread: number;
  readonly parent: number;
  readonly session: number;
  /** Resident memory, bytes; what it shares with others counts in full. */
  readonly residentBytes: number;
  /** CPU time of it and of those of its children it has waited for, seconds. */
  readonly cpuSeconds: number;
}

/** The kernel shows times to programs in these units, whatever its own are. */
const TICKS_PER_SECOND = 100;
const AT_PAGESZ = 6n;
const PAGE_BYTES = pageBytes();

const line = Buffer.allocUnsafe(4096);

/** Reads without waiting: some microseconds for each process. @throws when this process has no file descriptor left */
export function readProcesses(): Map<number, ProcessEntry> {
  const processes = new Map<number, ProcessEntry>();
  for (const name of readdirSync('/proc')) {
    const first = name.charCodeAt(0);
    if (first < 48 || first > 57) continue;
    const entry = readEntry(name);
    if (entry) processes.set(Number(name), entry);
  }
  return processes;
}

/** When its first thread has ended, a process shows under its own id neither memory nor files, and can go on all the same. */
function readEntry(pid: string): ProcessEntry | undefined {
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
 * Memory of some processes together, bytes, where it is more than `limit`: what they share with each other counts once.
 * @returns undefined when it is not more
 * @throws when this process has no file descriptor left
 */
export function memoryOver(
  pids: readonly number[],
  processes: ReadonlyMap<number, ProcessEntry>,
  limit: number,
): number | undefined {
  const residentOf = (pid: number) => processes.get(pid)?.residentBytes ?? 0;
  if (pids.reduce((sum, pid) => sum + residentOf(pid), 0) <= limit) return undefined;
  // Looked at closely only now: it takes the kernel longer to tell what is shared.
  const bytes = pids.reduce(
    (sum, pid) => sum + (proportionalBytes(processes.get(pid)?.thread ?? pid) ?? residentOf(pid)),
    0,
  );
  return bytes > limit ? bytes : undefined;
}

/**
 * Memory of a process, bytes, of which it has its share of what it shares with others. 0 when it has ended; undefined when
 * it does not let itself be looked at (`PR_SET_DUMPABLE`), or is another user's.
 */
function proportionalBytes(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ESRCH') return 0;
    if (code === 'EACCES' || code === 'EPERM') return undefined;
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

/** What the kernel says of a thread, with the numbers of its process. */
interface Stat extends ProcessEntry {
  readonly hasEnded: boolean;
  readonly threads: number;
}

/** proc(5): pid (command) state parent group session ...; the command may hold spaces and parentheses. */
function parseStat(id: string, text: string): Stat | undefined {
  if (text === '') return undefined;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const number = (at: number) => Number(fields[at - 3]);
  return {
    thread: Number(id),
    hasEnded: fields[0] === 'Z',
    threads: number(20),
    parent: number(4),
    session: number(6),
    cpuSeconds: (number(14) + number(15) + number(16) + number(17)) / TICKS_PER_SECOND,
    residentBytes: number(24) * PAGE_BYTES,
  };
}

/** From what the kernel has told this process when it started: pairs of words, kind and value. */
function pageBytes(): number {
  const pairs = readFileSync('/proc/self/auxv');
  const read = endianness() === 'LE' ? 'readBigUInt64LE' : 'readBigUInt64BE';
  for (let at = 0; at + 16 <= pairs.length; at += 16) {
    if (pairs[read](at) === AT_PAGESZ) return Number(pairs[read](at + 8));
  }
  return 4096;
}
