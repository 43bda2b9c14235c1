/**
 * Watches a tool and its descendants together: their memory, which the kernel limits for each process only, whether all
 * of them wait for something that does not come, and how much of the processor they use without progress.
 */
import {
  isWaiting,
  memoryOver,
  type Processes,
  readProcesses,
  readProcessesOfUser,
} from '../sandbox/process-table.js';
import { tmpBytes } from '../sandbox/tmp-usage.js';
import { isOutOfDescriptors } from '../util/file-descriptors.js';
import type { ToolRun } from './run-tool.js';

const CHECK_EVERY_MS = 500;
/** So many times the limit of the processor's time may pass without progress: on a busy machine, it is shared. */
const MOST_WALL = 20;
const MEGABYTE = 1024 * 1024;

/** What is watched of a run. */
type WatchedRun = Pick<ToolRun, 'confinement' | 'limits' | 'progress'>;
type Exceeded = 'over-memory' | 'idle' | 'no-progress';

/**
 * @param tool its process id
 * @param onOver called, possibly more than once, when it exceeds a limit
 * @returns a function that stops watching
 */
export function watchUsage(
  tool: Promise<number | undefined>,
  run: WatchedRun,
  onOver: (limit: Exceeded) => void,
): () => void {
  let watch: UsageWatch | undefined;
  void tool.then(
    (pid) => {
      if (pid !== undefined) watch = new UsageWatch(pid, run);
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
  readonly #run: WatchedRun;
  #cpuSeconds = 0;
  /** Consecutive checks without use of the processor: time also passes while this process is suspended. */
  #idleChecks = 0;
  #progress = 0;
  #secondsWithoutProgress = 0;
  #checksWithoutProgress = 0;

  constructor(tool: number, run: WatchedRun) {
    this.#tool = tool;
    this.#run = run;
  }

  check(): Exceeded | undefined {
    try {
      const processes = this.#processes();
      if (this.#isOverMemory(processes)) return 'over-memory';
      const used = this.#cpuSecondsUsed(processes);
      if (this.#isIdle(processes, used)) return 'idle';
      return this.#isWithoutProgress(used) ? 'no-progress' : undefined;
    } catch (error) {
      // Retried at the next check. Meanwhile, opening any file for the build fails and is reported.
      if (isOutOfDescriptors(error)) return undefined;
      throw error;
    }
  }

  /** All that belong to the tool. */
  #processes(): Processes {
    const { user } = this.#run.confinement;
    return user ? readProcessesOfUser(user.id) : familyOf(this.#tool, readProcesses());
  }

  #isOverMemory(processes: Processes): boolean {
    // With namespaces, /tmp is in memory.
    const { confinement, limits } = this.#run;
    const inFiles = confinement.hasNamespaces ? tmpBytes(processes.get(this.#tool)?.thread ?? this.#tool) : 0;
    return memoryOver(processes, limits.totalMemoryMb * MEGABYTE - inFiles) !== undefined;
  }

  /** Since the last check. It is less than nothing when a process is gone for which nobody has waited. */
  #cpuSecondsUsed(processes: Processes): number {
    const before = this.#cpuSeconds;
    this.#cpuSeconds = [...processes.values()].reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
    return this.#cpuSeconds - before;
  }

  #isWithoutProgress(used: number): boolean {
    const { limits, progress } = this.#run;
    const now = progress?.() ?? 0;
    this.#secondsWithoutProgress =
      now === this.#progress ? this.#secondsWithoutProgress + Math.max(used, 0) : 0;
    this.#checksWithoutProgress = now === this.#progress ? this.#checksWithoutProgress + 1 : 0;
    this.#progress = now;
    const { cpuMsWithoutProgress: limitMs } = limits;
    if (limitMs === undefined) return false;
    // However little of the processor it uses.
    const isLong = this.#checksWithoutProgress * CHECK_EVERY_MS >= MOST_WALL * limitMs;
    return isLong || this.#secondsWithoutProgress * 1000 >= limitMs;
  }

  #isIdle(processes: Processes, used: number): boolean {
    const { idleMs } = this.#run.limits;
    if (idleMs === undefined) return false;
    this.#idleChecks = used === 0 ? this.#idleChecks + 1 : 0;
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
