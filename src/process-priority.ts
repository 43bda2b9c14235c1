/**
 * Programs of strangers come after the product's own processes: where the CPU is short they get a small part of it, and
 * when memory runs out the kernel ends them first. Where nothing is short, this changes nothing.
 */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Beside what runs at normal priority it gets a tenth of the CPU: their weights are 110 and 1024 (sched(7)). */
const NICE = 10;
const OOM_SCORE = 1_000;
/** The kernel lets others than root change the share of one session every 100 ms. */
const AGAIN_MS = 150;
const MOST_TRIES = 200;

/** Puts a process last, and what it starts from now on. */
export function putLast(pid: number): void {
  wherePossible(() => setPriority(pid, NICE));
  wherePossible(() => writeFileSync(`/proc/${pid}/oom_score_adj`, String(OOM_SCORE)));
}

/**
 * Puts the session of a process last. Kernels share the CPU out among sessions first (CONFIG_SCHED_AUTOGROUP, unless control
 * groups do that), and look at the priority of processes only within each.
 * @param leader its first process
 */
export function putSessionLast(leader: ChildProcess, tries = MOST_TRIES): void {
  if (leader.exitCode !== null || leader.signalCode !== null || tries === 0) return;
  const problem = wherePossible(() => writeFileSync(`/proc/${leader.pid}/autogroup`, String(NICE)));
  if (problem === 'EAGAIN') setTimeout(() => putSessionLast(leader, tries - 1), AGAIN_MS).unref();
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
