/** The limit on open files of this process, and errors when it is reached. */
import { readFileSync } from 'node:fs';
import { isErrno } from './errno.js';

/** Share of the descriptors for client connections; the rest is for files, handlers and other processes. */
const SHARE_OF_CONNECTIONS = 0.8;

/** Maximum number of client connections of this process; infinite where the limit is not known. */
export function descriptorsForConnections(): number {
  return Math.floor(fileDescriptors() * SHARE_OF_CONNECTIONS);
}

/** Whether an error means that this process or machine has no free descriptor. */
export function isOutOfDescriptors(thrown: unknown): boolean {
  return isErrno(thrown, 'EMFILE', 'ENFILE');
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
