/** How much memory there is for this process and its descendants: that of the machine, and that of its cgroups. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Memory } from './memory-pressure.js';

const CGROUPS = '/sys/fs/cgroup';

/** The memory of the machine, and of each cgroup v2 around this process that has a limit. */
export async function readMemory(): Promise<Memory[]> {
  const machine = machineMemory(await readFile('/proc/meminfo', 'utf8'));
  const cgroups = await cgroupsMemory(CGROUPS, await readIfThere('/proc/self/cgroup'));
  return [...(machine ? [machine] : []), ...cgroups];
}

/** @param meminfo the text of /proc/meminfo */
export function machineMemory(meminfo: string): Memory | undefined {
  const [total, available] = ['MemTotal', 'MemAvailable'].map((name) => numberOf(meminfo, `${name}:`));
  if (!total || available === undefined) return undefined;
  return { total: total * 1024, available: available * 1024 };
}

/**
 * @param max the text of `memory.max`; it is `max` for one without a limit
 * @param current that of `memory.current`
 * @param stat that of `memory.stat`, see <https://docs.kernel.org/admin-guide/cgroup-v2.html>
 */
export function cgroupMemory(max: string, current: string, stat: string): Memory | undefined {
  const [total, used] = [Number(max), Number(current)];
  if (!(total > 0) || !(used >= 0)) return undefined;
  const of = (name: string) => numberOf(stat, name) ?? 0;
  // Cached files count as used, and the kernel takes them back before it ends anything, also those in use: both lists.
  // What is in memory only, as in /tmp, is on the lists of anonymous memory. What is not on disk yet has to be written
  // first, which may not be in time.
  const files = of('inactive_file') + of('active_file') - of('file_dirty') - of('file_writeback');
  const reclaimable = Math.min(used, Math.max(0, files));
  return { total, available: Math.max(0, total - used + reclaimable) };
}

/**
 * Those of the cgroups around a process that have a limit.
 * @param root where the hierarchy is mounted
 * @param membership the text of `/proc/PID/cgroup`
 */
export async function cgroupsMemory(root: string, membership: string): Promise<Memory[]> {
  const own = /^0::(\/.*)$/m.exec(membership)?.[1];
  if (own === undefined) return [];
  const memories: Memory[] = [];
  for (let path = own; ; path = dirname(path)) {
    const [max = '', current = '', stat = ''] = await Promise.all(
      ['memory.max', 'memory.current', 'memory.stat'].map((name) => readIfThere(join(root, path, name))),
    );
    const memory = cgroupMemory(max.trim() === '' ? 'max' : max, current, stat);
    if (memory) memories.push(memory);
    if (path === dirname(path)) return memories;
  }
}

function numberOf(text: string, name: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  const number = line === undefined ? Number.NaN : Number.parseInt(line.slice(name.length).trim(), 10);
  return Number.isNaN(number) ? undefined : number;
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
