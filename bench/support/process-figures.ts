/** Figures of a process from the kernel: see proc(5). */
import { readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';

/** Clock ticks of /proc, a constant of the Linux interface to programs. */
const TICKS_PER_SECOND = 100;

/** CPU seconds, user and system, of all children a process has waited for: cutime and cstime. */
export async function childSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
}

/** CPU seconds, user and system, of processes together. */
export async function cpuSeconds(pids: readonly number[]): Promise<number> {
  let ticks = 0;
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / TICKS_PER_SECOND;
}

/** The front of a gateway: the child of its supervisor that runs this program. */
export async function frontPid(gateway: number): Promise<number> {
  const children = await readFile(`/proc/${gateway}/task/${gateway}/children`, 'utf8');
  for (const pid of children.trim().split(' '))
    if (basename(await readlink(`/proc/${pid}/exe`)) === 'gateway-front') return Number(pid);
  throw new Error(`The gateway ${gateway} has no front`);
}

/** Resident memory of a process, in MB: VmRSS. */
export async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
}

/** Peak resident memory of a process, in MB: VmHWM. */
export async function peakMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return (Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
}
