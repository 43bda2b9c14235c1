/** A disk of a few megabytes that a test can fill: a tmpfs. Mounting needs root. */
import { execFile } from 'node:child_process';
import { mkdir, rm, statfs, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface SmallDisk {
  /** Fills the disk except for this many KiB. */
  fill(leaveKb: number): Promise<void>;
  /** Frees the space again. */
  clear(): Promise<void>;
  unmount(): Promise<void>;
}

/** Mounts a disk on a folder, which is created if needed. */
export async function mountSmallDisk(folder: string, megabytes: number): Promise<SmallDisk> {
  await mkdir(folder, { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0755`, 'edge-gateway-test', folder]);
  const filler = join(folder, 'filler');
  return {
    fill: async (leaveKb) => {
      const { bavail, bsize } = await statfs(folder);
      const bytes = Number(bavail) * Number(bsize) - leaveKb * 1024;
      await writeFile(filler, Buffer.alloc(Math.max(0, bytes)));
    },
    clear: async () => {
      await truncate(filler, 0);
      await rm(filler);
    },
    unmount: async () => {
      await run('umount', [folder]);
    },
  };
}
