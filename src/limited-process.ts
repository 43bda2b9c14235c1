/**
 * Starts other people's programs: behind the walls of a sandbox, in a process group of their own, with a clean environment
 * and resource limits; and ends them together with what they have started: in a sandbox with all of it, without one with
 * what is still in their group or has their mark in its environment. A program that leaves both outlives its end there.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { isOutOfDescriptors } from './no-descriptors.js';
import { isAlive } from './process-liveness.js';
import { putLast, putSessionLast } from './process-priority.js';
import type { ConfinedProgram, Confinement } from './sandbox/confinement.js';
import { unmonitoredPrograms } from './sandbox/unmonitored.js';

/** Limits the kernel enforces on each process (`setrlimit`). */
export interface ResourceLimits {
  /** Address space, MiB. */
  readonly memoryMb: number;
  /** Largest file it may write, MiB. */
  readonly fileMb: number;
  /** Open files. */
  readonly openFiles: number;
  /** CPU time, seconds. */
  readonly cpuSeconds?: number;
  /** Processes and threads of all it starts together. In a sandbox only: elsewhere all of the same user would count. */
  readonly processes?: number;
}

/** What to start. */
export interface LimitedCommand {
  /** Its paths, here and in `args` and `cwd`, are those of inside. */
  readonly confinement: Confinement;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ResourceLimits;
  /** Standard streams, and more; none inherited. */
  readonly stdio: readonly ('ignore' | 'pipe')[];
}

/** How a program ended: one of the two. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program that was started. */
export interface LimitedProcess {
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** All streams, by their numbers. */
  readonly stdio: ChildProcess['stdio'];
  /** The program's own id on this machine, not that of its monitor; undefined when it could not be started. */
  readonly pid: Promise<number | undefined>;
  /** In the environment of its processes, by which those are found that have left their family: `markOf`. */
  readonly mark: string;
  /** Resolves when it has ended; rejects when it could not be started. Its streams may still have something to read. */
  readonly ended: Promise<ProgramEnd>;
  /** Resolves when it has ended and its streams are closed; what it left behind can hold them open. */
  readonly closed: Promise<void>;
  /**
   * Kills it and what it has started, and resolves when none is left. In a sandbox that is all; without one, what has
   * left group and session and cleared its environment is not found, and goes on.
   */
  kill(): Promise<void>;
}

/** Marks of the processes started here that have not ended yet. */
const activeMarks = new Set<string>();

const MARK_VARIABLE = 'EDGE_PROCESS_MARK';
const MARK_ENTRY = `${MARK_VARIABLE}=`;

/** Process ids mean something only within their namespace: a container has its own. */
const PID_NAMESPACE = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';

/**
 * A value for one run, which also tells whose it is. Processes are found by it even when they have left the group, unless
 * they have cleared their environment.
 */
function newMark(): string {
  return `${PID_NAMESPACE}.${process.pid}.${randomUUID()}`;
}

// The shell sets the limits and becomes the program: no process stands between it and us, or its monitor. Shells disagree
// on the letter for processes.
const LIMIT_SCRIPT = `
  umask 022
  [ -n "$BASH_VERSION" ] && processes=-u || processes=-p
  ulimit -c 0 && ulimit -v "$1" && ulimit -f "$2" && ulimit -n "$3" && ulimit -t "$4" &&
    { [ "$5" = unlimited ] || ulimit $processes "$5"; } && shift 5 && exec "$@"`;
const FILE_BLOCK_BYTES = 512;

/**
 * Starts a program under limits, behind the walls of its confinement, in a process group of its own.
 * @throws when there are no file descriptors left, or its arguments cannot be passed on
 */
export function spawnLimited(command: LimitedCommand): LimitedProcess {
  const { confinement, stdio } = command;
  const mark = newMark();
  const statusFd = stdio.length;
  const { file, args, cwd } = confinement.commandLine(underLimits(command), statusFd);
  const files = confinement.openFiles();
  let child: ChildProcess;
  try {
    child = spawn(file, args, {
      cwd,
      env: { ...command.env, [MARK_VARIABLE]: mark },
      stdio: [...stdio, ...(confinement.reports ? (['pipe'] as const) : []), ...files],
      detached: true,
    });
  } finally {
    for (const fd of files) closeSync(fd);
  }
  if (child.pid !== undefined) {
    activeMarks.add(mark);
    putLast(child.pid);
    putSessionLast(child);
  }
  for (const event of ['exit', 'error']) child.once(event, () => activeMarks.delete(mark));
  // Node makes no streams then.
  if (!child.stdio) throw new Error(`${command.file} could not be started: no file descriptors are left`);
  const status = confinement.reports ? (child.stdio[statusFd] as Readable | null | undefined) : undefined;
  return status ? monitored(child, status, mark) : direct(child, mark);
}

function underLimits({ file, args, cwd, limits, confinement }: LimitedCommand): ConfinedProgram {
  const { memoryMb, fileMb, openFiles, cpuSeconds = 'unlimited' } = limits;
  const processes = (confinement.reports ? limits.processes : undefined) ?? 'unlimited';
  const fileBlocks = (fileMb * 1024 * 1024) / FILE_BLOCK_BYTES;
  const values = [memoryMb * 1024, fileBlocks, openFiles, cpuSeconds, processes].map(String);
  return { file: '/bin/sh', args: ['-c', LIMIT_SCRIPT, 'sh', ...values, file, ...args], cwd };
}

/** The child is the program. */
function direct(child: ChildProcess, mark: string): LimitedProcess {
  const ended = new Promise<ProgramEnd>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  return {
    ...streamsOf(child),
    mark,
    pid: Promise.resolve(child.pid),
    ended: handled(ended),
    kill: () => killTree(child, mark),
  };
}

/** The child is a monitor, which ends when the program has ended with everything that it had started. */
function monitored(child: ChildProcess, status: Readable, mark: string): LimitedProcess {
  const reported = readStatus(status);
  // The monitor may have started it before it was put last itself.
  void reported.pid.then((pid) => pid !== undefined && putLast(pid));
  const exited = new Promise<ProgramEnd>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const ended = async (): Promise<ProgramEnd> => {
    const monitor = await exited;
    const { exitCode } = await reported.end;
    if (exitCode !== undefined) return endOf(exitCode);
    // Killed, or it got no further than to say on the error stream what it could not do.
    if (monitor.code === null) return monitor;
    throw new Error(`the sandbox could not be set up (bubblewrap ended with exit code ${monitor.code})`);
  };
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  const gone = exited.then(over, over);
  return {
    ...streamsOf(child),
    mark,
    pid: handled(reported.pid),
    ended: handled(ended()),
    kill: async () => {
      if (isOver) return;
      const pid = reported.knownPid();
      // Not the monitor: it is there until the last process of the namespace is gone.
      if (pid !== undefined) killProcess(pid);
      else await killTree(child, mark);
      await gone;
    },
  };
}

function streamsOf(child: ChildProcess): Pick<LimitedProcess, 'stdout' | 'stderr' | 'stdio' | 'closed'> {
  const closed = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
  return { stdout: child.stdout, stderr: child.stderr, stdio: child.stdio, closed };
}

/** Who waits for it hears of a failure; nobody has to. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

interface Reports {
  /** Resolves with the program's id, or undefined when the monitor ended before it knew. */
  readonly pid: Promise<number | undefined>;
  /** Resolves when the monitor has nothing more to say; without an exit code when the program was never run. */
  readonly end: Promise<{ readonly exitCode: number | undefined }>;
  knownPid(): number | undefined;
}

/** Reads what the monitor reports: a line of JSON when the program is about to start, one when it has ended. */
function readStatus(stream: Readable): Reports {
  let text = '';
  let known: number | undefined;
  let knowPid: (pid: number | undefined) => void = () => undefined;
  const pid = new Promise<number | undefined>((resolve) => {
    knowPid = resolve;
  });
  const value = (name: string) => {
    const number = new RegExp(`"${name}": *(\\d+)`).exec(text)?.[1];
    return number === undefined ? undefined : Number(number);
  };
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    known ??= value('child-pid');
    if (known !== undefined) knowPid(known);
  });
  const end = new Promise<{ exitCode: number | undefined }>((resolve) => {
    stream.once('error', () => undefined); // closed by its end, which is what is waited for
    stream.once('close', () => {
      knowPid(known);
      resolve({ exitCode: value('exit-code') });
    });
  });
  return { pid, end, knownPid: () => known };
}

/** A monitor tells of a signal in the way of shells. */
function endOf(exitCode: number): ProgramEnd {
  const signal = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return signal ? { code: null, signal: signal[0] as NodeJS.Signals } : { code: exitCode, signal: null };
}

/** So often nothing must have been found before nothing is left. */
const QUIET_ROUNDS = 3;

/** Kills a child, its group, and every process that inherited its mark, until none is left. */
async function killTree(child: ChildProcess, mark: string): Promise<void> {
  killGroup(child.pid);
  // A marked process may fork while we look; each round kills parents first, so this ends. One that is just becoming
  // another program shows no mark for a moment.
  for (let quiet = 0; quiet < QUIET_ROUNDS; quiet++) {
    const found = lookFor(mark);
    if (found === undefined || found.length > 0) quiet = -1;
    for (const { pid } of found ?? []) killProcess(pid);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Undefined when there was no file descriptor left to look with. */
function lookFor(mark: string): MarkedProcess[] | undefined {
  try {
    return markedProcesses().filter((marked) => marked.mark === mark);
  } catch (error) {
    if (isOutOfDescriptors(error)) return undefined;
    throw error;
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
  for (const pid of unmonitoredPrograms()) killProcess(pid);
}

/** Kills the process group of a child at once; what left the group goes on. */
export function killGroup(leader: number | undefined): void {
  if (leader !== undefined) killProcess(-leader);
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
    const mark = markOf(pid);
    return mark === undefined ? [] : { pid: Number(pid), mark };
  });
}

/** The mark of a process, if it was started here, or by what was. @throws when there is no file descriptor left */
export function markOf(pid: number | string): string | undefined {
  const variables = environment.toString('latin1', 0, readEnvironment(pid));
  const at = variables.indexOf(MARK_ENTRY);
  if (at === -1) return undefined;
  const start = at + MARK_ENTRY.length;
  return variables.slice(start, variables.indexOf('\0', start));
}

/** @returns bytes read */
function readEnvironment(pid: number | string): number {
  let file: number;
  try {
    file = openSync(`/proc/${pid}/environ`, 'r');
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
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
