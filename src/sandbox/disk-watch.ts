/** Limits how much a program writes: the kernel has no limit for all its files together. */
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';

/** A watch over folders. */
export interface DiskWatch {
  /** Whether the folders hold too much now. */
  isOver(): Promise<boolean>;
  stop(): void;
}

const CHECK_EVERY_MS = 500;
/**
 * The pause grows with the duration of a check, which grows with the number of files, so that checks take only a part
 * of the time.
 */
const PAUSE_FACTOR = 10;
/** Counted for an empty file, which occupies disk space too. */
const LEAST_BYTES = 4096;

/** @param onOver called once, when the folders exceed the limit */
export function watchDisk(folders: readonly string[], limitMb: number, onOver: () => void): DiskWatch {
  const limit = limitMb * 1024 * 1024;
  const isOver = async () => (await bytesIn(folders, limit)) > limit;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const check = async () => {
    const started = performance.now();
    if (await isOver()) return isStopped || onOver();
    const pause = Math.max(CHECK_EVERY_MS, (performance.now() - started) * PAUSE_FACTOR);
    if (!isStopped) timer = setTimeout(() => void check(), pause);
  };
  if (folders.length > 0) timer = setTimeout(() => void check(), CHECK_EVERY_MS);
  return {
    isOver,
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** Disk usage of folders, bytes; stops counting once it exceeds `enough`. Links are not followed. */
export async function bytesIn(folders: readonly string[], enough: number): Promise<number> {
  let bytes = 0;
  const open = [...folders];
  for (let folder = open.pop(); folder !== undefined && bytes <= enough; folder = open.pop()) {
    // During a check files are created and deleted, and paths can be too long to open.
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
