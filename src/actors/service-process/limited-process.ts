/**
 * Starts a program of ours with limits that the kernel enforces, for work that something hostile can make endless or
 * large. It gets nothing of the configuration: its environment is empty but for what verifies certificates, and the
 * local time. It has no rights of root, starts no processes, and ends with this process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { isolatedEnvironment } from '../../config.js';
import { type Identity, launched, ownProgram } from '../../sandbox/launcher.js';

/**
 * Sets the limits and replaces itself by the launcher: no core dump, data (KiB), size of each file. A limit that cannot
 * be set is one that was inherited and is lower. When memory is short, the kernel ends such a process before others.
 */
const SCRIPT = `ulimit -c 0
for limit in "d $1" "f $2"; do (ulimit -$limit) 2>/dev/null && ulimit -$limit; done
shift 2
{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null
exec "$@"`;

/** A program and its arguments. */
export interface Program {
  readonly command: readonly [file: string, ...args: string[]];
  /** Data that it maps for itself, MiB. */
  readonly ownMb: number;
  /** Whether it writes files, whose size it limits itself. */
  readonly writesFiles: boolean;
  /** Which it makes. */
  readonly sockets: 'unix' | 'internet';
}

/**
 * @param memoryMb what it may use besides what the program needs for itself, MiB
 * @param identity whom it runs as; undefined for the user of this process
 * @throws Error when the launcher was not built
 */
export function limitedProcess(
  { command: [file, ...args], ownMb, writesFiles, sockets }: Program,
  memoryMb: number,
  identity: Identity | undefined,
  stdio: readonly ('ignore' | 'pipe' | 'ipc')[],
): ChildProcess {
  const limits = [String((memoryMb + ownMb) * 1024), writesFiles ? 'unlimited' : '0'];
  const plan = ownProgram(stdio.length, identity ?? null, sockets);
  const [launcher, launcherArguments] = launched(plan, file, args);
  return spawn('/bin/sh', ['-c', SCRIPT, 'sh', ...limits, launcher, ...launcherArguments], {
    stdio: [...stdio],
    env: isolatedEnvironment(),
  });
}
