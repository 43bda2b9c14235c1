/**
 * Programs of strangers come after the product's own processes: where the CPU is short, each gets a small part of what the
 * product gets, and when memory runs out the kernel ends them first. Where nothing is short, this changes nothing.
 */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** So much nicer than this process: a tenth of its weight (110 against 1024 at nice 0, sched(7)). */
const NICER = 10;
const NICEST = 19;
const OOM_SCORE = 1_000;
/** The kernel lets others than root change the share of one session of the whole machine every 100 ms. */
const AGAIN_MS = 110;
/** What the kernel, or a shortage of file descriptors, refuses for now. */
const FOR_NOW = ['EAGAIN', 'EMFILE', 'ENFILE'];

/** Leaders of sessions that are not last yet, the oldest first. */
const waiting = new Set<ChildProcess>();
let timer: NodeJS.Timeout | undefined;

/** Puts a process last, and what it starts from now on. */
export function putLast(pid: number): void {
  wherePossible(() => setPriority(pid, niceness()));
  wherePossible(() => writeFileSync(`/proc/${pid}/oom_score_adj`, String(OOM_SCORE)));
}

/**
 * Puts the session of a process last. Kernels share the CPU out among sessions first (CONFIG_SCHED_AUTOGROUP, unless control
 * groups do that), and look at the priority of processes only within each.
 * @param leader its first process
 */
export function putSessionLast(leader: ChildProcess): void {
  waiting.add(leader);
  if (!timer) putWaitingLast();
}

function putWaitingLast(): void {
  timer = undefined;
  for (const leader of waiting) {
    const isRunning = leader.exitCode === null && leader.signalCode === null;
    const problem = isRunning
      ? wherePossible(() => writeFileSync(`/proc/${leader.pid}/autogroup`, String(niceness())))
      : undefined;
    if (problem !== undefined && FOR_NOW.includes(problem)) {
      timer = setTimeout(putWaitingLast, AGAIN_MS).unref();
      return;
    }
    waiting.delete(leader);
  }
}

function niceness(): number {
  return Math.min(NICEST, getPriority() + NICER);
}

/** It has ended meanwhile, or the kernel does not have this, or does not let us: then limits and walls have to do. */
function wherePossible(change: () => void): string | undefined {
  try {
    change();
    return undefined;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
