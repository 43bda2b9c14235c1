/**
 * Periodically checks all handlers of this gateway and ends those over their limits: the kernel limits single
 * processes, this limits each handler including its child processes. As root and with namespaces these are all counted;
 * otherwise a process that has left both its parent and its session is not.
 */
import { toError } from '../../errors.js';
import type { LimitsInForce } from '../../model/endpoint-limits.js';
import type { Cgroup } from '../../sandbox/cgroups.js';
import type { Confinement } from '../../sandbox/confinement.js';
import {
  memoryOver,
  type ProcessEntry,
  type Processes,
  readProcesses,
  readProcessesOf,
} from '../../sandbox/process-table.js';
import { tmpBytes } from '../../sandbox/tmp-usage.js';
import type { Logger } from '../../util/log.js';

export interface WatchedHandler {
  readonly pid: number;
  readonly confinement: Pick<Confinement, 'hasNamespaces' | 'user'>;
  readonly limits: Pick<LimitsInForce, 'memory_mb' | 'cpu_percent'>;
  /** The kernel limits it as a whole. */
  readonly group?: Cgroup | undefined;
  /** Ends it and reports it as crashed. */
  end(reason: string): void;
  /** What all its processes have used of the processor since the last check, and their memory now. */
  readonly used?: ((cpuSeconds: number, bytes: number) => void) | undefined;
}

interface Sample {
  readonly at: number;
  readonly cpuSeconds: number;
}

interface Watched extends WatchedHandler {
  /** What it used in slightly more than the last ten seconds, oldest first. */
  readonly samples: Sample[];
  cpuSeconds: number;
}

const CHECK_INTERVAL_MS = 500;
/** Maximum share of time spent on checks, which take long with very many processes. */
const MAX_TIME_SHARE = 0.02;
const WARN_INTERVAL_MS = 60_000;
const CPU_WINDOW_MS = 10_000;
const MEGABYTE = 1024 * 1024;

export class HandlerWatch {
  readonly #log: Logger;
  readonly #watched = new Map<number, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #warnAgainAt = Number.NEGATIVE_INFINITY;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Watches a handler until the returned function is called. */
  add(handler: WatchedHandler): () => void {
    this.#watched.set(handler.pid, { ...handler, samples: [], cpuSeconds: 0 });
    if (!this.#timer) this.#checkAfter(CHECK_INTERVAL_MS);
    return () => {
      this.#watched.delete(handler.pid);
      if (this.#watched.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  #checkAfter(ms: number): void {
    this.#timer = setTimeout(() => {
      const began = performance.now();
      this.#tryToCheck();
      const tookMs = performance.now() - began;
      if (this.#watched.size > 0) this.#checkAfter(Math.max(CHECK_INTERVAL_MS, tookMs / MAX_TIME_SHARE));
    }, ms).unref();
  }

  /** Without file descriptors the process table cannot be read: handlers keep running until the next check. */
  #tryToCheck(): void {
    try {
      this.#check();
    } catch (thrown) {
      const now = performance.now();
      if (now < this.#warnAgainAt) return;
      this.#warnAgainAt = now + WARN_INTERVAL_MS;
      this.#log.warn(
        { err: toError(thrown) },
        'what handlers use could not be read; trying again. With EMFILE, the gateway needs more open files (ulimit -n)',
      );
    }
  }

  #check(): void {
    const now = performance.now();
    const watched = [...this.#watched.values()];
    // The kernel counts those of the others.
    const counted = watched.filter(({ group }) => group === undefined);
    const users = new Set(counted.flatMap(({ confinement }) => confinement.user?.id ?? []));
    const byUser = users.size > 0 ? readProcessesOf(users) : undefined;
    const byFamily = users.size < counted.length ? this.#families(readProcesses()) : undefined;
    for (const handler of watched) {
      const { user } = handler.confinement;
      const processes = user ? byUser?.get(user.id) : byFamily?.get(handler.pid);
      const problem = this.#problemOf(handler, processes ?? new Map(), now);
      if (problem !== undefined) handler.end(problem);
    }
  }

  /** The processes of each handler, by the process id of the handler. */
  #families(all: Processes): ReadonlyMap<number, Processes> {
    const owners = new Map<number, number | undefined>([[process.pid, undefined]]);
    const ownerOf = (pid: number): number | undefined => {
      if (this.#watched.has(pid)) return pid;
      if (owners.has(pid)) return owners.get(pid);
      const entry = all.get(pid);
      let owner = entry && this.#watched.has(entry.session) ? entry.session : undefined;
      // With namespaces, an orphaned process becomes a child of the handler.
      if (entry && owner === undefined && entry.parent > 1) owner = ownerOf(entry.parent);
      owners.set(pid, owner);
      return owner;
    };
    const families = new Map<number, Map<number, ProcessEntry>>();
    for (const [pid, entry] of all) {
      const owner = ownerOf(pid);
      if (owner === undefined) continue;
      const family = families.get(owner);
      if (family) family.set(pid, entry);
      else families.set(owner, new Map([[pid, entry]]));
    }
    return families;
  }

  #problemOf(watched: Watched, processes: Processes, now: number): string | undefined {
    if (watched.group) {
      const { cpuSeconds, bytes } = watched.group.usage();
      this.#tell(watched, cpuSeconds, bytes);
      return undefined;
    }
    const entries = [...processes.values()];
    const cpuSeconds = entries.reduce((sum, entry) => sum + entry.cpuSeconds, 0);
    const bytes = entries.reduce((sum, { residentBytes }) => sum + residentBytes, 0);
    this.#tell(watched, cpuSeconds, bytes);
    return memoryProblem(watched, processes) ?? cpuProblem(watched, { at: now, cpuSeconds });
  }

  #tell(watched: Watched, cpuSeconds: number, bytes: number): void {
    // What ended processes have used is not always counted for those that remain.
    watched.used?.(Math.max(0, cpuSeconds - watched.cpuSeconds), bytes);
    watched.cpuSeconds = cpuSeconds;
  }
}

function memoryProblem({ pid, confinement, limits }: Watched, processes: Processes): string | undefined {
  // With namespaces, files in /tmp are in memory.
  const inFiles = confinement.hasNamespaces ? tmpBytes(processes.get(pid)?.thread ?? pid) : 0;
  const inProcesses = memoryOver(processes, limits.memory_mb * MEGABYTE - inFiles);
  if (inProcesses === undefined) return undefined;
  const usedMb = Math.ceil((inProcesses + inFiles) / MEGABYTE);
  return `it used ${usedMb} MiB of memory, and may use ${limits.memory_mb} (memory_mb)`;
}

function cpuProblem({ limits, samples }: Watched, sample: Sample): string | undefined {
  const { cpu_percent: limit } = limits;
  if (limit === undefined) return undefined;
  samples.push(sample);
  while (samples[1] && sample.at - samples[1].at >= CPU_WINDOW_MS) samples.shift();
  const [oldest] = samples;
  const passed = oldest ? (sample.at - oldest.at) / 1000 : 0;
  if (!oldest || passed * 1000 < CPU_WINDOW_MS) return undefined;
  const percent = ((sample.cpuSeconds - oldest.cpuSeconds) / passed) * 100;
  if (percent <= limit) return undefined;
  return `it used ${Math.round(percent)} % of a core for ${CPU_WINDOW_MS / 1000} s, and may use ${limit} % (cpu_percent)`;
}
