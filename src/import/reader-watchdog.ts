/**
 * A thread of the process that reads an import: ends the process when whoever started it is gone. The main thread cannot
 * notice that while it parses, and a hostile document may make it parse for ever.
 */
const WATCH_MS = 1_000;

const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
}, WATCH_MS);
