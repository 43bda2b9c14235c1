/** Figures of a process from the kernel: see proc(5). */
import { readFile } from 'node:fs/promises';

/** Clock ticks of /proc, a constant of the Linux interface to programs. */
const TICKS_PER_SECOND = 100;

/** CPU seconds, user and system, of all children a process has waited for: cutime and cstime. */
export async function childSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
}

/** Peak resident memory of a process, in MB: VmHWM. */
export async function peakMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return (Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
}
