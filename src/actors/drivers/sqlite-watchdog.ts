/**
 * A thread of the process that has a database open: ends the process when whoever started it is gone. The main thread
 * cannot notice that while a statement runs, and a statement may run for ever.
 */
const WATCH_MS = 1_000;

const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
}, WATCH_MS);
