/** Limits the memory of a tool and its descendants: the kernel limits each process separately. */
import type { Confinement } from '../sandbox/confinement.js';
import { processesOfUser } from '../sandbox/kill.js';
import { memoryOver, type ProcessEntry, readProcesses } from '../sandbox/process-table.js';
import { tmpBytes } from '../sandbox/tmp-usage.js';
import { isOutOfDescriptors } from '../util/file-descriptors.js';

const CHECK_EVERY_MS = 500;
const MEGABYTE = 1024 * 1024;

/**
 * @param tool its process id
 * @param onOver called, possibly more than once, when it exceeds the limit
 * @returns a function that stops watching
 */
export function watchMemory(
  tool: Promise<number | undefined>,
  confinement: Confinement,
  limitMb: number,
  onOver: () => void,
): () => void {
  let pid: number | undefined;
  void tool.then(
    (known) => {
      pid = known;
    },
    () => undefined, // it failed to start, which its caller reports
  );
  const timer = setInterval(() => {
    if (pid !== undefined && isOver(pid, confinement, limitMb * MEGABYTE)) onOver();
  }, CHECK_EVERY_MS);
  return () => clearInterval(timer);
}

function isOver(tool: number, { hasMonitor, user }: Confinement, limit: number): boolean {
  try {
    const processes = readProcesses();
    // In a sandbox, /tmp is in memory.
    const inFiles = hasMonitor ? tmpBytes(processes.get(tool)?.thread ?? tool) : 0;
    const members = user ? processesOfUser(user.id) : familyOf(tool, processes);
    return memoryOver(members, processes, limit - inFiles) !== undefined;
  } catch (error) {
    // Retried at the next check. Meanwhile, opening any file for the build fails and is reported.
    if (isOutOfDescriptors(error)) return false;
    throw error;
  }
}

/** A process and its descendants. In a sandbox, orphans become children of its first process. */
function familyOf(first: number, processes: ReadonlyMap<number, ProcessEntry>): number[] {
  const children = new Map<number, number[]>();
  for (const [pid, { parent }] of processes) {
    const siblings = children.get(parent);
    if (siblings) siblings.push(pid);
    else children.set(parent, [pid]);
  }
  const family = [first];
  for (const member of family) family.push(...(children.get(member) ?? []));
  return family;
}
