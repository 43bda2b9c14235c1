/**
 * Starts a program of ours with limits that the kernel enforces, for work that something hostile can make endless or
 * large. It gets nothing of the configuration: its environment is empty but for what verifies certificates.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { isolatedEnvironment } from '../../config.js';
import { WATCH_ARGUMENT } from '../../util/parent-watchdog.js';

/**
 * Sets the limits and replaces itself by the program: no core dump, data (KiB), size of each file. A limit
 * that cannot be set is one that was inherited and is lower. When memory is short, the kernel ends such a process
 * before others. It is killed with its parent, by the kernel where setpriv can tell it to; otherwise by a thread of its
 * own, which the last argument asks for.
 */
const SCRIPT = `ulimit -c 0
for limit in "d $1" "f $2"; do (ulimit -$limit) 2>/dev/null && ulimit -$limit; done
shift 2
{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL "$@"; fi
exec "$@" ${WATCH_ARGUMENT}`;

/** A program and its arguments. */
export interface Program {
  readonly command: readonly [file: string, ...args: string[]];
  /** Data that it maps for itself, MiB. */
  readonly ownMb: number;
  /** Whether it writes files, whose size it limits itself. */
  readonly writesFiles: boolean;
}

/** Data that Node maps for itself and for one thread, MiB, of which it uses some 60: 0.2 GiB, and 1.1 since Node 24. */
const NODE_MB = Number(process.versions.node.split('.')[0]) >= 24 ? 1280 : 256;

/** A program for Node. @param script its path, and its arguments */
export function nodeProgram(script: readonly string[], flags: readonly string[]): Program {
  return { command: [process.execPath, ...flags, ...script], ownMb: NODE_MB, writesFiles: false };
}

/** @param memoryMb what it may use besides what the program needs for itself, MiB */
export function limitedProcess(
  { command, ownMb, writesFiles }: Program,
  memoryMb: number,
  options: Pick<SpawnOptions, 'stdio'>,
): ChildProcess {
  const limits = [String((memoryMb + ownMb) * 1024), writesFiles ? 'unlimited' : '0'];
  return spawn('/bin/sh', ['-c', SCRIPT, 'sh', ...limits, ...command], {
    ...options,
    env: isolatedEnvironment(),
  });
}
