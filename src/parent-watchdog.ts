/**
 * For processes that belong to another one of ours: a thread that ends the process when the one that started it is gone. The
 * main thread cannot notice that while it computes, and a statement or a hostile document can make it compute for ever.
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
