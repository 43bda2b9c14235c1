/** The state of processes of this machine. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readProcess, readProcesses } from '../../src/sandbox/process-table.js';

/** False when it has ended, with all its threads, even if it is a zombie: only then its sockets are closed. */
export function isRunning(pid: number | null): boolean {
  return pid !== null && readProcess(String(pid))?.hasEnded === false;
}

/** What the kernel lets a process do, see proc_pid_status(5). */
export interface Rights {
  readonly user: number;
  /** As a set of bits, of all that it has or could get. */
  readonly capabilities: bigint;
  readonly noNewPrivs: boolean;
  /** Whether its system calls are filtered. */
  readonly isFiltered: boolean;
}

/** @throws when it has ended */
export function rightsOf(pid: number): Rights {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const value = (name: string) => new RegExp(`^${name}:\\s+(\\w+)`, 'm').exec(status)?.[1] ?? '';
  const sets = ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'].map((name) => BigInt(`0x${value(name)}`));
  return {
    user: Number(value('Uid')),
    capabilities: sets.reduce((all, set) => all | set),
    noNewPrivs: value('NoNewPrivs') === '1',
    isFiltered: value('Seccomp') === '2',
  };
}

/**
 * Limits the numbers of the files that a process opens from now on.
 * @param limit as `prlimit` takes it: the soft one, a colon, the hard one
 */
export function limitFiles(pid: number, limit: string): void {
  // Its own user may, and root in a container may not.
  const { user: uid } = rightsOf(pid);
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit}`], uid === 0 ? {} : { uid, gid: uid });
}

/** Running processes whose environment holds this text. */
export function processesWith(environment: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => read(`/proc/${pid}/environ`).includes(environment) && isRunning(pid));
}

/** The running descendants of a process, with their command lines. Reads all processes of the machine once. */
export function descendantsOf(pid: number): { pid: number; command: string }[] {
  const children = new Map<number, number[]>();
  for (const [child, { parent }] of readProcesses()) {
    const known = children.get(parent);
    if (known) known.push(child);
    else children.set(parent, [child]);
  }
  const below = (parent: number): number[] =>
    (children.get(parent) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(pid)
    .filter(isRunning)
    .map((found) => ({ pid: found, command: read(`/proc/${found}/cmdline`).replaceAll('\0', ' ').trim() }));
}

/** The process that serves the public port of a gateway. @param gateway the supervisor of this one */
export function frontOf(gateway: number): number | undefined {
  return frontsOf(gateway)[0];
}

/** The same with those that finish their last requests. The newest is the last one. */
export function frontsOf(gateway: number): number[] {
  const fronts = descendantsOf(gateway).filter(({ command }) => /^\S*\/gateway-front/.test(command));
  return fronts.map(({ pid }) => pid);
}

/** The processes of services that an actor host has started, not what starts them for it. */
export function servicesOf(host: number): { pid: number; command: string }[] {
  return descendantsOf(host).filter(({ command }) => !/^\S*\/native\/starter /.test(command));
}

/** The compilers of handlers among its descendants; a worker that has just started compiles the SDK as well. */
export function handlerCompilersOf(pid: number): number[] {
  const isOne = ({ command }: { command: string }) => /^\S*rustc .*--crate-name=handler /.test(command);
  return descendantsOf(pid)
    .filter(isOne)
    .map((found) => found.pid);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return ''; // it has ended, or belongs to another user
  }
}
