/** Watches how much a tool writes: no limit of the kernel is about all its files together. */
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';

/** A watch over folders. */
export interface DiskWatch {
  /** Whether the folders hold too much now. */
  isOver(): Promise<boolean>;
  stop(): void;
}

const LOOK_EVERY_MS = 500;
/** Looking takes the longer, the more files there are; it is not to take more than a part of the time. */
const PAUSE_FACTOR = 10;
/** An empty file takes room too. */
const LEAST_BYTES = 4096;

/** @param onOver called once, when the folders hold more than so many MiB */
export function watchDisk(folders: readonly string[], limitMb: number, onOver: () => void): DiskWatch {
  const limit = limitMb * 1024 * 1024;
  const isOver = async () => (await bytesIn(folders, limit)) > limit;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const look = async () => {
    const started = performance.now();
    if (await isOver()) return isStopped || onOver();
    const pause = Math.max(LOOK_EVERY_MS, (performance.now() - started) * PAUSE_FACTOR);
    if (!isStopped) timer = setTimeout(() => void look(), pause);
  };
  if (folders.length > 0) timer = setTimeout(() => void look(), LOOK_EVERY_MS);
  return {
    isOver,
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** What folders take on the disk, bytes; counts no further than somewhat above `enough`. Links are not followed. */
export async function bytesIn(folders: readonly string[], enough: number): Promise<number> {
  let bytes = 0;
  const open = [...folders];
  for (let folder = open.pop(); folder !== undefined && bytes <= enough; folder = open.pop()) {
    // Files come and go, and paths can be longer than can be opened, while it is looked.
    const entries = await opendir(folder).catch(() => undefined);
    if (!entries) continue;
    for await (const entry of entries) {
      const path = join(folder, entry.name);
      const status = await lstat(path).catch(() => undefined);
      bytes += Math.max(LEAST_BYTES, (status?.blocks ?? 0) * 512);
      if (entry.isDirectory()) open.push(path);
      if (bytes > enough) break;
    }
  }
  return bytes;
}
