/**
 * Finds programs in sandboxes whose monitor is gone. They are to be killed with it; but a program can become another one in
 * a way that makes the kernel forget that, and without the mark in its environment.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isConfinedUser } from './bubblewrap.js';

/** Nobody but root runs programs as users that nothing else runs as, by which they can be told. */
const isRoot = process.getuid?.() === 0;
const MONITOR = 'bwrap';

/** Process ids of the first processes of such sandboxes. */
export function unmonitoredPrograms(): number[] {
  if (!isRoot) return [];
  const ours = namespaceOf('self');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => namespaceOf(pid) !== ours && isUnmonitored(pid))
    .map(Number);
}

function isUnmonitored(pid: string): boolean {
  const status = statusOf(pid);
  if (!isConfinedUser(userIn(status))) return false;
  const parent = /^PPid:\s+(\d+)/m.exec(status)?.[1] ?? '0';
  const above = statusOf(parent);
  // One that has ended between the two looks is looked at the next time.
  if (above === '' && parent !== '0') return false;
  // Those further down end with the first.
  return !isConfinedUser(userIn(above)) && /^Name:\s+(.*)/m.exec(above)?.[1] !== MONITOR;
}

function userIn(status: string): number {
  return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1);
}

function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1');
  } catch {
    return ''; // it has ended
  }
}

function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined; // it has ended
  }
}
