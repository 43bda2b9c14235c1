/** What processes of Node still hold after their garbage was collected. */
import { execFile } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const COLLECTOR = fileURLToPath(new URL('collect.js', import.meta.url));
const TIMEOUT_MS = 60_000;

/**
 * Collects all garbage of a process.
 * @returns bytes that its objects hold, on the heap and outside; undefined when it is no process of Node
 */
export async function heldAfterCollection(pid: number): Promise<number | undefined> {
  if (!isNode(pid)) return undefined;
  const { stdout } = await run(process.execPath, ['--experimental-websocket', COLLECTOR, String(pid)], {
    timeout: TIMEOUT_MS,
  });
  return Number(stdout);
}

function isNode(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) === readlinkSync('/proc/self/exe');
  } catch {
    return false; // it has ended, or belongs to another user
  }
}
