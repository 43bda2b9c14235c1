/** Watches folders, not files: many editors replace a file when they save. */
import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { CliError } from './errors.js';

interface Watched {
  readonly watcher: FSWatcher;
  /** Which folder it was: another one may have its name now. */
  readonly folder: Stats;
  isGone: boolean;
}

export class FolderWatchers {
  readonly #watched = new Map<string, Watched>();
  #isClosed = false;

  /** @param changed is called with each change */
  constructor(private readonly changed: () => void) {}

  /**
   * Watches these folders, too; of one that is not there, the nearest one above it that is.
   * @returns whether some were not watched before: what was read in them may have changed unseen
   */
  add(folders: Iterable<string>): boolean {
    let isMore = false;
    for (const folder of folders) if (this.#watch(folder)) isMore = true;
    return isMore;
  }

  /** Watches these folders, and no others. @returns as `add` */
  only(folders: Iterable<string>): boolean {
    const wanted = new Set([...folders].map((folder) => existing(folder)[0]));
    const isMore = this.add(wanted);
    for (const folder of this.#watched.keys()) if (!wanted.has(folder)) this.#end(folder);
    return isMore;
  }

  close(): void {
    this.#isClosed = true;
    for (const folder of this.#watched.keys()) this.#end(folder);
  }

  #watch(wanted: string): boolean {
    const [folder, stats] = existing(wanted);
    const known = this.#watched.get(folder);
    if (this.#isClosed || (known && !known.isGone && isSame(known.folder, stats))) return false;
    this.#end(folder);
    try {
      const watcher = watch(folder, (event, name) => {
        // It was removed or moved, or it is something in it that has the same name.
        if (event === 'rename' && (name === null || name === basename(folder))) watched.isGone = true;
        this.changed();
      });
      const watched = { watcher, folder: stats, isGone: false };
      watcher.on('error', () => {
        watched.isGone = true;
        this.changed();
      });
      this.#watched.set(folder, watched);
      return true;
    } catch (thrown) {
      // It has just been removed; the one above says when it is there again.
      if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return this.#watch(dirname(folder));
      throw notWatched(folder, thrown as NodeJS.ErrnoException);
    }
  }

  #end(folder: string): void {
    this.#watched.get(folder)?.watcher.close();
    this.#watched.delete(folder);
  }
}

/** A folder, or the nearest one above it that is there. */
function existing(folder: string): readonly [path: string, stats: Stats] {
  for (let path = folder; ; path = dirname(path)) {
    const stats = statsOf(path);
    if (stats?.isDirectory()) return [path, stats];
    if (path === dirname(path)) throw new CliError(`${folder} cannot be watched`, { code: 'cannot_watch' });
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined; // whatever is wrong with it, reading what is in it says why
  }
}

function isSame(left: Stats, right: Stats): boolean {
  return left.dev === right.dev && left.ino === right.ino;
}

/** The system watches so many files for a user. */
function notWatched(folder: string, { code, message }: NodeJS.ErrnoException): CliError {
  const limit = { EMFILE: 'fs.inotify.max_user_instances', ENOSPC: 'fs.inotify.max_user_watches' }[
    code ?? ''
  ];
  const hint = limit && `The limit of this machine is used up; raise it: sysctl ${limit}`;
  return new CliError(`${folder} cannot be watched: ${message}`, {
    code: 'cannot_watch',
    ...(hint !== undefined && { hint }),
  });
}
