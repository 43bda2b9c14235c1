/**
 * A thread that kills the process when its parent has ended. The main thread cannot detect that while it is busy, and
 * an SQL statement or a hostile document can keep it busy forever.
 */
import { isMainThread, Worker } from 'node:worker_threads';

const WATCH_MS = 1_000;

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
