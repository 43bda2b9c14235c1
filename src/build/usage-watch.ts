/**
 * Watches a tool and its descendants together: their memory, which the kernel limits for each process only, and whether
 * all of them wait for something that does not come.
 */
import type { Confinement } from '../sandbox/confinement.js';
import {
  isWaiting,
  memoryOver,
  type Processes,
  readProcesses,
  readProcessesOfUser,
} from '../sandbox/process-table.js';
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
      const processes = this.#processes();
      if (this.#isOverMemory(processes)) return 'over-memory';
      return this.#isIdle(processes) ? 'idle' : undefined;
    } catch (error) {
      // Retried at the next check. Meanwhile, opening any file for the build fails and is reported.
      if (isOutOfDescriptors(error)) return undefined;
      throw error;
    }
  }

  /** All that belong to the tool. */
  #processes(): Processes {
    const { user } = this.#confinement;
    return user ? readProcessesOfUser(user.id) : familyOf(this.#tool, readProcesses());
  }

  #isOverMemory(processes: Processes): boolean {
    // With namespaces, /tmp is in memory.
    const inFiles = this.#confinement.hasNamespaces
      ? tmpBytes(processes.get(this.#tool)?.thread ?? this.#tool)
      : 0;
    return memoryOver(processes, this.#limits.totalMemoryMb * MEGABYTE - inFiles) !== undefined;
  }

  #isIdle(processes: Processes): boolean {
    const { idleMs } = this.#limits;
    if (idleMs === undefined) return false;
    const cpuSeconds = [...processes.values()].reduce((sum, entry) => sum + entry.cpuSeconds, 0);
    this.#idleChecks = cpuSeconds === this.#cpuSeconds ? this.#idleChecks + 1 : 0;
    this.#cpuSeconds = cpuSeconds;
    // On a busy machine, a process can be ready to run for long.
    const isLong = this.#idleChecks * CHECK_EVERY_MS >= idleMs;
    return isLong && processes.size > 0 && [...processes.keys()].every(isWaiting);
  }
}

/** A process and its descendants. With namespaces, orphans become children of its first process. */
function familyOf(first: number, all: Processes): Processes {
  const children = new Map<number, number[]>();
  for (const [pid, { parent }] of all) {
    const siblings = children.get(parent);
    if (siblings) siblings.push(pid);
    else children.set(parent, [pid]);
  }
  const family = [first];
  for (const member of family) family.push(...(children.get(member) ?? []));
  return new Map(
    family.flatMap((pid) => {
      const entry = all.get(pid);
      return entry ? [[pid, entry]] : [];
    }),
  );
}
