/**
 * Watches a tool and its descendants together: their memory, which the kernel limits for each process only, and whether
 * all of them wait for something that does not come.
 */
import type { Confinement } from '../sandbox/confinement.js';
import { processesOfUser } from '../sandbox/kill.js';
import { isWaiting, memoryOver, type ProcessEntry, readProcesses } from '../sandbox/process-table.js';
import { tmpBytes } from '../sandbox/tmp-usage.js';
import { isOutOfDescriptors } from '../util/file-descriptors.js';
import type { ToolLimits } from './run-tool.js';

const CHECK_EVERY_MS = 500;
const MEGABYTE = 1024 * 1024;

/**
 * @param tool its process id
 * @param onOver called, possibly more than once, when it exceeds a limit
 * @returns a function that stops watching
 */
export function watchUsage(
  tool: Promise<number | undefined>,
  confinement: Confinement,
  limits: ToolLimits,
  onOver: (limit: 'over-memory' | 'idle') => void,
): () => void {
  let watch: UsageWatch | undefined;
  void tool.then(
    (pid) => {
      if (pid !== undefined) watch = new UsageWatch(pid, confinement, limits);
    },
    () => undefined, // it failed to start, which its caller reports
  );
  const timer = setInterval(() => {
    const over = watch?.check();
    if (over) onOver(over);
  }, CHECK_EVERY_MS);
  return () => clearInterval(timer);
}

class UsageWatch {
  readonly #tool: number;
  readonly #confinement: Confinement;
  readonly #limits: ToolLimits;
  #cpuSeconds = 0;
  /** Consecutive checks without use of the processor: time also passes while this process is suspended. */
  #idleChecks = 0;

  constructor(tool: number, confinement: Confinement, limits: ToolLimits) {
    this.#tool = tool;
    this.#confinement = confinement;
    this.#limits = limits;
  }

  check(): 'over-memory' | 'idle' | undefined {
    try {
      const processes = readProcesses();
      const { user, hasNamespaces } = this.#confinement;
      // A namespace keeps its processes together; without one, they can leave the family. To look at all is slower.
      const members = user && !hasNamespaces ? processesOfUser(user.id) : familyOf(this.#tool, processes);
      if (this.#isOverMemory(members, processes)) return 'over-memory';
      return this.#isIdle(members, processes) ? 'idle' : undefined;
    } catch (error) {
      // Retried at the next check. Meanwhile, opening any file for the build fails and is reported.
      if (isOutOfDescriptors(error)) return undefined;
      throw error;
    }
  }

  #isOverMemory(members: readonly number[], processes: ReadonlyMap<number, ProcessEntry>): boolean {
    // With namespaces, /tmp is in memory.
    const inFiles = this.#confinement.hasNamespaces
      ? tmpBytes(processes.get(this.#tool)?.thread ?? this.#tool)
      : 0;
    return memoryOver(members, processes, this.#limits.totalMemoryMb * MEGABYTE - inFiles) !== undefined;
  }

  #isIdle(members: readonly number[], processes: ReadonlyMap<number, ProcessEntry>): boolean {
    const { idleMs } = this.#limits;
    if (idleMs === undefined) return false;
    const cpuSeconds = members.reduce((sum, pid) => sum + (processes.get(pid)?.cpuSeconds ?? 0), 0);
    this.#idleChecks = cpuSeconds === this.#cpuSeconds ? this.#idleChecks + 1 : 0;
    this.#cpuSeconds = cpuSeconds;
    // On a busy machine, a process can be ready to run for long.
    return this.#idleChecks * CHECK_EVERY_MS >= idleMs && members.length > 0 && members.every(isWaiting);
  }
}

/** A process and its descendants. With namespaces, orphans become children of its first process. */
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
