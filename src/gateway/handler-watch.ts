/**
 * Looks at all handlers of this gateway from time to time, and ends those that use more than they may: the kernel limits
 * single processes, this limits each handler with what it has started. In a sandbox that is all; without one, what has left
 * family and session and cleared its environment counts for nobody.
 */
import type { LimitsInForce } from '../endpoint-limits.js';
import { toError } from '../errors.js';
import { markOf } from '../limited-process.js';
import type { Logger } from '../log.js';
import { memoryOver, type ProcessEntry, readProcesses } from '../process-table.js';
import { tmpBytes } from '../sandbox/tmp-usage.js';

/** A handler that is looked at. */
export interface WatchedHandler {
  readonly pid: number;
  /** Of its processes. */
  readonly mark: string;
  /** Whether it is in a sandbox, where files in /tmp are memory of its own. */
  readonly isConfined: boolean;
  readonly limits: Pick<LimitsInForce, 'memory_mb' | 'cpu_percent'>;
  /** Ends it, as crashed. */
  end(reason: string): void;
}

interface Sample {
  readonly at: number;
  readonly cpuSeconds: number;
}

interface Watched extends WatchedHandler {
  /** Of the last ten seconds and a little more, the oldest first. */
  readonly samples: Sample[];
}

const LOOK_EVERY_MS = 500;
/** With very many processes, looking takes its time: no more than this part of all time is spent on it. */
const SHARE_OF_TIME = 0.02;
const WARN_EVERY_MS = 60_000;
const CPU_WINDOW_MS = 10_000;
const MEGABYTE = 1024 * 1024;

export class HandlerWatch {
  readonly #watched = new Map<number, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #warnAgainAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly log: Logger) {}

  /** Looks at a handler until the returned function is called. */
  add(handler: WatchedHandler): () => void {
    this.#watched.set(handler.pid, { ...handler, samples: [] });
    if (!this.#timer) this.#lookAfter(LOOK_EVERY_MS);
    return () => {
      this.#watched.delete(handler.pid);
      if (this.#watched.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  #lookAfter(ms: number): void {
    this.#timer = setTimeout(() => {
      const began = performance.now();
      this.#tryToLook();
      const tookMs = performance.now() - began;
      if (this.#watched.size > 0) this.#lookAfter(Math.max(LOOK_EVERY_MS, tookMs / SHARE_OF_TIME));
    }, ms).unref();
  }

  /** Without file descriptors nothing can be seen: handlers run on, and are looked at again soon. */
  #tryToLook(): void {
    try {
      this.#look();
    } catch (thrown) {
      const now = performance.now();
      if (now < this.#warnAgainAt) return;
      this.#warnAgainAt = now + WARN_EVERY_MS;
      this.log.warn(
        { err: toError(thrown) },
        'what handlers use could not be looked at; trying again. With EMFILE, the gateway needs more open files (ulimit -n)',
      );
    }
  }

  #look(): void {
    const now = performance.now();
    const processes = readProcesses();
    const members = this.#membersOf(processes);
    for (const watched of [...this.#watched.values()]) {
      const problem = this.#problemOf(watched, members.get(watched.pid) ?? [], processes, now);
      if (problem !== undefined) watched.end(problem);
    }
  }

  /** The processes of each handler, by its id. */
  #membersOf(processes: ReadonlyMap<number, ProcessEntry>): Map<number, number[]> {
    const owners = new Map<number, number | undefined>([[process.pid, undefined]]);
    const byMark = new Map([...this.#watched.values()].map(({ mark, pid }) => [mark, pid]));
    const ownerOf = (pid: number): number | undefined => {
      if (this.#watched.has(pid)) return pid;
      if (owners.has(pid)) return owners.get(pid);
      const entry = processes.get(pid);
      let owner = entry && this.#watched.has(entry.session) ? entry.session : undefined;
      if (entry && owner === undefined && entry.parent > 1) owner = ownerOf(entry.parent);
      // In a sandbox, whoever loses its parent becomes a child of the handler. Without one, it can leave the session too,
      // and is known by its mark, unless it has taken that out of its environment. Monitors have the mark as well, but
      // they are children of ours.
      if (entry && owner === undefined && entry.parent !== process.pid) owner = byMark.get(markOf(pid) ?? '');
      owners.set(pid, owner);
      return owner;
    };
    const members = new Map<number, number[]>();
    for (const pid of processes.keys()) {
      const owner = ownerOf(pid);
      if (owner === undefined) continue;
      const known = members.get(owner);
      if (known) known.push(pid);
      else members.set(owner, [pid]);
    }
    return members;
  }

  #problemOf(
    watched: Watched,
    members: readonly number[],
    processes: ReadonlyMap<number, ProcessEntry>,
    now: number,
  ): string | undefined {
    const cpuSeconds = members.reduce((sum, pid) => sum + (processes.get(pid)?.cpuSeconds ?? 0), 0);
    return memoryProblem(watched, members, processes) ?? cpuProblem(watched, { at: now, cpuSeconds });
  }
}

function memoryProblem(
  { pid, isConfined, limits }: Watched,
  members: readonly number[],
  processes: ReadonlyMap<number, ProcessEntry>,
): string | undefined {
  const inFiles = isConfined ? tmpBytes(processes.get(pid)?.thread ?? pid) : 0;
  const inProcesses = memoryOver(members, processes, limits.memory_mb * MEGABYTE - inFiles);
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
