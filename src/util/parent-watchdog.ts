/**
 * A thread that kills the process when its parent has ended. The main thread cannot detect that while it is busy, and
 * an SQL statement or a hostile document can keep it busy forever.
 */
import { isMainThread, Worker } from 'node:worker_threads';

const WATCH_MS = 1_000;

/** The argument of a program that the kernel does not kill with its parent. */
export const WATCH_ARGUMENT = '--watch-parent';

/** Starts the thread where it is needed. It does not keep the process alive. */
export function watchParentIfAsked(): void {
  if (process.argv.includes(WATCH_ARGUMENT)) startParentWatchdog();
}

/** Starts the thread. It does not keep the process alive. */
export function startParentWatchdog(): void {
  new Worker(new URL(import.meta.url)).unref();
}

if (!isMainThread) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
  }, WATCH_MS);
}
