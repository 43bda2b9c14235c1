/**
 * Untrusted programs have a lower priority than the processes of the product: under CPU contention each gets a small
 * share. On an idle machine this has no effect.
 */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';

/** Added to the niceness of this process: a tenth of its weight (110 against 1024 at nice 0, sched(7)). */
const NICE_INCREMENT = 10;
const MAX_NICE = 19;
/** Users other than root may change one autogroup per 100 ms on the whole machine. */
const RETRY_MS = 110;
/** Error codes of temporary failures. */
const TEMPORARY_ERRORS = ['EAGAIN', 'EMFILE', 'ENFILE'];

/** Session leaders whose priority must still be lowered, oldest first. */
const waiting = new Set<ChildProcess>();
let timer: NodeJS.Timeout | undefined;

/** The niceness of untrusted programs. */
export function niceness(): number {
  return Math.min(MAX_NICE, getPriority() + NICE_INCREMENT);
}

/**
 * Lowers the priority of a session. With CONFIG_SCHED_AUTOGROUP, and without control groups, the kernel divides CPU
 * time among sessions first, and niceness applies only within a session.
 * @param leader the first process of the session
 */
export function lowerSessionPriority(leader: ChildProcess): void {
  waiting.add(leader);
  if (!timer) lowerWaiting();
}

function lowerWaiting(): void {
  timer = undefined;
  for (const leader of waiting) {
    const isRunning = leader.exitCode === null && leader.signalCode === null;
    const problem = isRunning ? lower(leader) : undefined;
    if (problem !== undefined && TEMPORARY_ERRORS.includes(problem)) {
      timer = setTimeout(lowerWaiting, RETRY_MS).unref();
      return;
    }
    waiting.delete(leader);
  }
}

/** @returns the error code, if the process has ended or the kernel does not support or permit the change */
function lower({ pid }: ChildProcess): string | undefined {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(niceness()));
    return undefined;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
