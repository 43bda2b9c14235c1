/**
 * Control groups (version 2) for untrusted programs: the kernel limits memory, processes and CPU time of all processes
 * of a program together. They are used where this process was given a part of the hierarchy of its own: by systemd with
 * `Delegate=yes`, or in a container that may write to it. https://docs.kernel.org/admin-guide/cgroup-v2.html
 */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { toError } from '../errors.js';
import { isErrno } from '../util/errno.js';

const CONTROLLERS = ['cpu', 'memory', 'pids'];
/** In this leaf of its own is this process, because a group with controllers for its children has no processes. */
const OWN_LEAF = 'service';
/** A tenth of the weight of other groups. */
const CPU_WEIGHT = 10;
/** `cpu.max` is a share of this, microseconds. */
const CPU_PERIOD = 100_000;

/** The group of a program. */
const PROGRAM = /^program-\d+-\d+$/;
/** One that could not be removed is tried again after this. */
const AGAIN_MS = 1_000;

/** Limits of all processes of a program together. */
export interface GroupLimits {
  readonly memoryBytes: number;
  readonly processes: number | undefined;
  /** Most time of processors, in percent of one core. */
  readonly cpuPercent: number | undefined;
}

/** The group of one program. */
export class Cgroup {
  /** Its folder. */
  readonly path: string;
  #ranOut = false;

  /** @param path of a folder that does not exist yet */
  constructor(path: string, limits: GroupLimits) {
    this.path = path;
    mkdirSync(path);
    try {
      this.#limit(limits);
    } catch (error) {
      // Nobody else knows of it.
      this.remove();
      throw error;
    }
  }

  #limit({ memoryBytes, processes, cpuPercent }: GroupLimits): void {
    const set = (file: string, value: string) => writeFileSync(join(this.path, file), value);
    set('memory.max', String(memoryBytes));
    set('memory.oom.group', '1');
    if (existsSync(join(this.path, 'memory.swap.max'))) set('memory.swap.max', '0');
    set('cpu.weight', String(CPU_WEIGHT));
    if (processes !== undefined) set('pids.max', String(processes));
    if (cpuPercent !== undefined)
      set('cpu.max', `${Math.ceil((cpuPercent / 100) * CPU_PERIOD)} ${CPU_PERIOD}`);
  }

  /** What its processes have used of the processor, seconds, and of memory, bytes; zeros when it is gone. */
  usage(): { readonly cpuSeconds: number; readonly bytes: number } {
    return {
      cpuSeconds: valueIn(this.#read('cpu.stat'), 'usage_usec') / 1e6,
      bytes: Number(this.#read('memory.current').trim()),
    };
  }

  /** Whether the kernel has ended processes of it because they used too much memory. */
  hasRunOutOfMemory(): boolean {
    this.#ranOut ||= valueIn(this.#read('memory.events'), 'oom_kill') > 0;
    return this.#ranOut;
  }

  /** Removes it. One that still has processes, which could not be ended, stays. */
  remove(): void {
    // It is asked for later, too.
    this.hasRunOutOfMemory();
    if (removeGroup(this.path)) return;
    // Its last processes are just ending.
    setTimeout(() => removeGroup(this.path), AGAIN_MS).unref();
  }

  #read(file: string): string {
    try {
      return readFileSync(join(this.path, file), 'latin1');
    } catch (error) {
      if (isErrno(error, 'ENOENT', 'ENODEV')) return '';
      throw error;
    }
  }
}

/** @returns false when it still has processes */
function removeGroup(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return true;
    if (isErrno(error, 'EBUSY')) return false;
    throw error;
  }
}

/** The part of the hierarchy that this process was given. */
export class Cgroups {
  readonly #folder: string;
  #count = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Takes over the part of the hierarchy that this process is in.
   * @returns why that cannot be done, when it cannot
   * @param root where the hierarchy is mounted
   * @param own `/proc/self/cgroup`
   */
  static open(root = '/sys/fs/cgroup', own = '/proc/self/cgroup'): Cgroups | { readonly problem: string } {
    const path = /^0::(.+)$/m.exec(readFileSync(own, 'latin1'))?.[1];
    if (path === undefined) return { problem: 'control groups of version 2 are not in use' };
    const folder = join(root, path);
    try {
      const has = readFileSync(join(folder, 'cgroup.controllers'), 'latin1').trim().split(' ');
      const missing = CONTROLLERS.filter((name) => !has.includes(name));
      if (missing.length > 0) return { problem: `${path} has no controllers for ${missing.join(', ')}` };
      for (const file of ['cgroup.procs', 'cgroup.subtree_control'])
        accessSync(join(folder, file), constants.W_OK);
      const others = readFileSync(join(folder, 'cgroup.procs'), 'latin1')
        .split('\n')
        .filter((pid) => pid !== '' && Number(pid) !== process.pid);
      if (others.length > 0) return { problem: `${path} has other processes, too` };
      // Those of a killed service.
      for (const name of readdirSync(folder)) if (PROGRAM.test(name)) removeGroup(join(folder, name));
      mkdirSync(join(folder, OWN_LEAF), { recursive: true });
      writeFileSync(join(folder, OWN_LEAF, 'cgroup.procs'), String(process.pid));
      writeFileSync(join(folder, 'cgroup.subtree_control'), CONTROLLERS.map((name) => `+${name}`).join(' '));
    } catch (error) {
      return { problem: toError(error).message };
    }
    return new Cgroups(folder);
  }

  /** Makes a group for one program. */
  make(limits: GroupLimits): Cgroup {
    return new Cgroup(join(this.#folder, `program-${process.pid}-${++this.#count}`), limits);
  }
}

/** The number beside a name, in a text that has a name and a value in each line; 0 when it is not there. */
function valueIn(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}
