/**
 * Starts untrusted programs: confined, in their own session, with a clean environment and resource limits; and kills
 * them with all their processes. None escapes, but at the level `limits` and not as root: there, processes that have
 * left the session keep running.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Plan } from '../contracts/launcher.js';
import type { Cgroup } from './cgroups.js';
import type { Confinement } from './confinement.js';
import { killAll, killGroup, killProcess, processesOfSession } from './kill.js';
import { launched } from './launcher.js';
import { type ProgramEnd, readReports } from './monitor.js';
import { lowerSessionPriority, niceness } from './process-priority.js';

/** Limits that the kernel enforces on each process (`setrlimit`). */
export interface ResourceLimits {
  /** Address space, MiB. */
  readonly memoryMb: number;
  /** Largest file it may write, MiB. */
  readonly fileMb: number;
  /** Open files. */
  readonly openFiles: number;
  /** CPU time, seconds. */
  readonly cpuSeconds?: number;
  /**
   * Total number of processes and threads. Not limited without a separate user, because all processes of the user
   * would count.
   */
  readonly processes?: number;
}

const MEGABYTE = 1024 * 1024;

/** A program with its arguments, environment and limits. */
export interface LimitedCommand {
  /** Paths in `file`, `args` and `cwd` are as seen inside. */
  readonly confinement: Confinement;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The complete environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ResourceLimits;
  /** Standard and additional streams; none is inherited. */
  readonly stdio: readonly ('ignore' | 'pipe')[];
  /** The control group of the program and all processes that it starts; it is removed when they have ended. */
  readonly group?: Cgroup | undefined;
}

/** A started program. */
export interface LimitedProcess {
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** All streams by file descriptor. */
  readonly stdio: ChildProcess['stdio'];
  /** The id of the program, not of its monitor, on this machine; undefined when it could not be started. */
  readonly pid: Promise<number | undefined>;
  /** Resolves when it has ended; rejects when it could not be started. Its streams may have unread data. */
  readonly ended: Promise<ProgramEnd>;
  /** Resolves when it has ended and its streams are closed, which its child processes can delay. */
  readonly closed: Promise<void>;
  /** Kills it with all its processes, and resolves when none is left. */
  kill(): Promise<void>;
}

/**
 * Starts a program, confined and limited, in its own session.
 * @throws when no file descriptors are left or its arguments are invalid
 */
export function spawnLimited(command: LimitedCommand): LimitedProcess {
  const { confinement, stdio, env } = command;
  const statusFd = stdio.length;
  confinement.user?.claim();
  let child: ChildProcess;
  try {
    const [file, args] = launched(planOf(command), command.file, command.args);
    child = spawn(file, args, {
      env,
      stdio: [...stdio, ...streamsOfLauncher(confinement)],
      detached: true,
    });
  } catch (error) {
    confinement.user?.release();
    command.group?.remove();
    throw error;
  }
  if (child.pid !== undefined) lowerSessionPriority(child);
  // Without file descriptors Node creates no streams.
  if (!child.stdio) command.group?.remove();
  if (!child.stdio) throw new Error(`${command.file} could not be started: no file descriptors are left`);
  const status = confinement.hasNamespaces ? (child.stdio[statusFd] as Readable | null) : undefined;
  const running = status ? monitored(child, confinement, status) : direct(child, confinement);
  if (command.group) void running.cleared.then(() => command.group?.remove());
  return running;
}

function streamsOfLauncher({ hasNamespaces, emptyNetwork }: Confinement): readonly ('pipe' | number)[] {
  return hasNamespaces ? ['pipe', ...emptyNetwork] : [];
}

function planOf({ cwd, stdio, limits, confinement, group }: LimitedCommand): Plan {
  const { memoryMb, fileMb, openFiles, cpuSeconds = null, processes = null } = limits;
  const sharesUser = confinement.user === undefined && !confinement.hasNamespaces;
  return {
    ...{ ...confinement.plan, own: null },
    ...{ parent: process.pid, streams: stdio.length, cwd, nice: niceness(), cgroup: group?.path ?? null },
    limits: {
      addressSpaceBytes: memoryMb * MEGABYTE,
      fileBytes: fileMb * MEGABYTE,
      openFiles,
      cpuSeconds,
      processes: sharesUser ? null : processes,
    },
  };
}

interface Cleared extends LimitedProcess {
  /** Resolves when it and all its processes have ended. */
  readonly cleared: Promise<void>;
}

/** The child is the program. */
function direct(child: ChildProcess, { user }: Confinement): Cleared {
  const ended = endOf(child);
  const { pid } = child;
  const killEverything = async () => {
    if (user) await user.end();
    else if (pid !== undefined) await killAll(() => processesOfSession(pid));
  };
  // Also when it ends by itself. Only once, because the session id can be reused.
  const cleared = handled(ended.then(killEverything, killEverything));
  return {
    ...streamsOf(child),
    pid: Promise.resolve(pid),
    ended,
    cleared,
    kill: handling(async () => {
      if (child.exitCode === null && child.signalCode === null) killGroup(pid);
      await cleared;
    }),
  };
}

/** The child is a monitor, which ends when all processes of the program have ended. */
function monitored(child: ChildProcess, { user }: Confinement, status: Readable): Cleared {
  const reports = readReports(status);
  const exited = endOf(child);
  const ended = handled(
    exited.then(async (monitor) => {
      const end = await reports.end;
      if (end) return end;
      // Either it was killed, or it has failed to set up the sandbox and printed why.
      if (monitor.code === null) return monitor;
      throw new Error('the sandbox could not be set up');
    }),
  );
  // A program that has cleared its parent death signal outlives a killed monitor.
  let isOver = false;
  const cleared = handled(
    exited
      .then(
        ({ signal }) => (signal === null ? user?.release() : user?.end()),
        () => user?.release(),
      )
      .then(() => {
        isOver = true;
      }),
  );
  return {
    ...streamsOf(child),
    pid: handled(reports.pid),
    ended,
    cleared,
    kill: handling(async () => {
      const pid = reports.knownPid();
      // Kills the program, not the monitor, which ends after the last process of the namespace.
      if (isOver) return;
      if (pid === undefined) killGroup(child.pid);
      else killProcess(pid);
      await cleared;
    }),
  };
}

function endOf(child: ChildProcess): Promise<ProgramEnd> {
  return handled(
    new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => resolve({ code, signal }));
    }),
  );
}

function streamsOf(child: ChildProcess): Pick<LimitedProcess, 'stdout' | 'stderr' | 'stdio' | 'closed'> {
  const closed = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
  return { stdout: child.stdout, stderr: child.stderr, stdio: child.stdio, closed };
}

function handling(run: () => Promise<void>): () => Promise<void> {
  return () => handled(run());
}

/** Prevents an unhandled rejection if the caller does not await the promise. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
