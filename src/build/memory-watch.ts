/** Watches the memory of a tool with all that it has started: the kernel limits each process by itself. */
import { isOutOfDescriptors } from '../no-descriptors.js';
import { memoryOver, type ProcessEntry, readProcesses } from '../process-table.js';
import { tmpBytes } from '../sandbox/tmp-usage.js';

const LOOK_EVERY_MS = 500;
const MEGABYTE = 1024 * 1024;

/**
 * @param tool its process id
 * @param isConfined whether it is in a sandbox, where files in /tmp are memory of its own
 * @param onOver called, perhaps more than once, when it uses more than so many MiB
 * @returns stops watching
 */
export function watchMemory(
  tool: Promise<number | undefined>,
  isConfined: boolean,
  limitMb: number,
  onOver: () => void,
): () => void {
  let pid: number | undefined;
  void tool.then(
    (known) => {
      pid = known;
    },
    () => undefined, // it was never started, which is reported by who has started it
  );
  const timer = setInterval(() => {
    if (pid !== undefined && isOver(pid, isConfined, limitMb * MEGABYTE)) onOver();
  }, LOOK_EVERY_MS);
  return () => clearInterval(timer);
}

function isOver(tool: number, isConfined: boolean, limit: number): boolean {
  try {
    const processes = readProcesses();
    const inFiles = isConfined ? tmpBytes(processes.get(tool)?.thread ?? tool) : 0;
    return memoryOver(familyOf(tool, processes), processes, limit - inFiles) !== undefined;
  } catch (error) {
    // Looked at again soon. Meanwhile, whatever is to be opened for the build fails, and says so.
    if (isOutOfDescriptors(error)) return false;
    throw error;
  }
}

/** A process and its descendants. In a sandbox, what loses its parent becomes a child of the first process. */
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
