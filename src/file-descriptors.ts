/** How many files and connections this process may have open, and how many of them strangers may take. */
import { readFileSync } from 'node:fs';

/** Of the file descriptors of a process; the rest is for everything else. */
const SHARE_OF_CONNECTIONS = 0.8;

/** As many connections as strangers may have with this process together; infinite where no limit can be told. */
export function descriptorsForConnections(): number {
  return Math.floor(fileDescriptors() * SHARE_OF_CONNECTIONS);
}

function fileDescriptors(): number {
  try {
    const [, soft = ''] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === '' ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    // Not Linux.
    return Number.POSITIVE_INFINITY;
  }
}
