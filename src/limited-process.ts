/**
 * Starts other people's programs: in a process group of their own, with a clean environment and resource limits,
 * and ends them together with everything they have started.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs';
import { isAlive } from './process-liveness.js';

/** Limits the kernel enforces on each process (`setrlimit`). */
export interface ResourceLimits {
  /** Address space, MiB. */
  readonly memoryMb: number;
  /** Largest file it may write, MiB. */
  readonly fileMb: number;
  /** Open files. */
  readonly openFiles: number;
}

/** What to start. */
export interface LimitedCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ResourceLimits;
  readonly stdio: StdioOptions;
  /** From `newMark`: `killTree` finds by it even processes that left the group. */
  readonly mark: string;
}

/** Marks of the processes started here that have not ended yet. */
const activeMarks = new Set<string>();

const MARK_VARIABLE = 'EDGE_PROCESS_MARK';
const MARK_ENTRY = `${MARK_VARIABLE}=`;

/** Process ids mean something only within their namespace: a container has its own. */
const PID_NAMESPACE = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';

/** A value for one run, which also tells whose it is. */
export function newMark(): string {
  return `${PID_NAMESPACE}.${process.pid}.${randomUUID()}`;
}

// The shell sets the limits and becomes the program: no process stands between it and us.
const LIMIT_SCRIPT =
  'ulimit -c 0 && ulimit -v "$1" && ulimit -f "$2" && ulimit -n "$3" && shift 3 && exec "$@"';
const FILE_BLOCK_BYTES = 512;

/** Starts a program under limits. The child leads a process group: end it with `killTree`. */
export function spawnLimited(command: LimitedCommand): ChildProcess {
  const { limits, mark } = command;
  activeMarks.add(mark);
  const child = spawn(
    '/bin/sh',
    [
      '-c',
      LIMIT_SCRIPT,
      'sh',
      String(limits.memoryMb * 1024),
      String((limits.fileMb * 1024 * 1024) / FILE_BLOCK_BYTES),
      String(limits.openFiles),
      command.file,
      ...command.args,
    ],
    {
      cwd: command.cwd,
      env: { ...command.env, [MARK_VARIABLE]: mark },
      stdio: command.stdio,
      detached: true,
    },
  );
  for (const event of ['exit', 'error']) child.once(event, () => activeMarks.delete(mark));
  return child;
}

/**
 * Kills a process started by `spawnLimited`, its group, and every process that inherited its mark, until none is left.
 */
export async function killTree(leader: number, mark: string): Promise<void> {
  killGroup(leader);
  // A marked process may fork while we look; each round kills parents first, so this ends.
  for (;;) {
    const found = markedProcesses().filter((marked) => marked.mark === mark);
    if (found.length === 0) return;
    for (const { pid } of found) killProcess(pid);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/**
 * Kills what was left behind: by programs started here that have ended, and by other processes of ours that were killed
 * and could not see to it. To be called from time to time; looking through all processes takes a millisecond or some.
 */
export function killLeftovers(): void {
  for (const { pid, mark } of markedProcesses()) {
    const [namespace, owner] = mark.split('.');
    if (namespace !== PID_NAMESPACE) continue;
    const isLeft = Number(owner) === process.pid ? !activeMarks.has(mark) : !isAlive(Number(owner));
    if (isLeft) killProcess(pid);
  }
}

/** Kills the process group of a child at once; what left the group goes on. */
export function killGroup(leader: number): void {
  killProcess(-leader);
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

interface MarkedProcess {
  readonly pid: number;
  readonly mark: string;
}

/** For environments; those that we make are small. */
const environment = Buffer.allocUnsafe(128 * 1024);

/** Reads without waiting: a few microseconds for each process, where asynchronous reads would take a hundred. */
function markedProcesses(): MarkedProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    const variables = environment.toString('latin1', 0, readEnvironment(pid));
    const at = variables.indexOf(MARK_ENTRY);
    if (at === -1) return [];
    const start = at + MARK_ENTRY.length;
    return { pid: Number(pid), mark: variables.slice(start, variables.indexOf('\0', start)) };
  });
}

/** @returns bytes read */
function readEnvironment(pid: string): number {
  let file: number;
  try {
    file = openSync(`/proc/${pid}/environ`, 'r');
  } catch {
    // Processes end while we look, and those of other users cannot be read: neither is ours to kill.
    return 0;
  }
  try {
    return readSync(file, environment);
  } catch {
    return 0;
  } finally {
    closeSync(file);
  }
}
