/** Confinement by kernel namespaces, which bubblewrap (`bwrap`) creates. */
import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { UNTRUSTED_GROUP } from '../util/untrusted-users.js';
import type { ConfinedProgram, Confinement, View } from './confinement.js';
import type { FilterFile } from './filter-file.js';
import type { RunUser } from './run-user.js';

/** How to call bubblewrap on this machine. */
export interface Bubblewrap {
  /** Path of `bwrap`. */
  readonly bwrap: string;
  /** Path of `setpriv`, which drops root privileges; undefined for other users, who get a user namespace instead. */
  readonly setpriv: string | undefined;
  /** The system call filter; undefined on unsupported architectures. */
  readonly filter: FilterFile | undefined;
  /** Paths in system folders that must appear empty. */
  readonly hidden: readonly HiddenPath[];
}

export class BubblewrapConfinement implements Confinement {
  readonly #bubblewrap: Bubblewrap;
  readonly #view: View;
  readonly hasMonitor = true;
  readonly user: RunUser | undefined;

  /** @param user the user to run the program as, when this process is root */
  constructor(bubblewrap: Bubblewrap, view: View, user: RunUser | undefined) {
    this.#bubblewrap = bubblewrap;
    this.#view = view;
    this.user = user;
  }

  inside(path: string): string {
    const { readOnly, writable } = this.#view;
    const mount = [...readOnly, ...writable]
      .filter(([source]) => path === source || path.startsWith(`${source}/`))
      .sort(([a], [b]) => b.length - a.length)[0];
    return mount ? mount[1] + path.slice(mount[0].length) : path;
  }

  async handOver(path: string): Promise<void> {
    await this.user?.takeOver(path);
  }

  openFiles(): number[] {
    return this.#bubblewrap.filter ? [this.#bubblewrap.filter.open()] : [];
  }

  commandLine(program: ConfinedProgram, statusFd: number): ConfinedProgram {
    const args = bubblewrapArguments(this.#bubblewrap, this.#view, this.user?.id, statusFd, program);
    return { file: this.#bubblewrap.bwrap, args, cwd: '/' };
  }
}

/** Folders of programs and libraries; on most systems all but /usr are links into it. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Index of the dynamic loader for libraries in other folders. */
const LOADER_CACHE = '/etc/ld.so.cache';
/** Size of the tmpfs over a hidden folder, which may need folders for mounts. */
const HIDDEN_BYTES = 1024 * 1024;

/** A path that is hidden inside. */
export interface HiddenPath {
  readonly path: string;
  readonly isFolder: boolean;
}

/**
 * Selects the paths that would be visible inside because they are below a system folder, with symbolic links resolved
 * and without nested paths. Paths that do not exist or cannot be reached need not be hidden.
 */
export function hiddenPaths(secret: readonly string[]): HiddenPath[] {
  const seen = secret
    .flatMap(realPath)
    .filter((path) => SYSTEM_FOLDERS.some((system) => path.startsWith(`${system}/`)));
  return [...new Set(seen)]
    .filter((path) => !seen.some((outer) => path.startsWith(`${outer}/`)))
    .map((path) => ({ path, isFolder: statSync(path).isDirectory() }));
}

function realPath(path: string): string[] {
  try {
    return [realpathSync(path)];
  } catch {
    return [];
  }
}

function emptied({ path, isFolder }: HiddenPath): string[] {
  if (!isFolder) return ['--ro-bind', '/dev/null', path];
  return ['--perms', '0755', '--size', String(HIDDEN_BYTES), '--tmpfs', path];
}

/** @param user of the program; required when this process is root */
function bubblewrapArguments(
  { setpriv, filter, hidden }: Bubblewrap,
  view: View,
  user: number | undefined,
  statusFd: number,
  program: ConfinedProgram,
): string[] {
  // Without either, the program would run as root.
  const dropsRoot = setpriv !== undefined && user !== undefined;
  if (!dropsRoot && process.getuid?.() === 0) throw new Error('root starts programs as other users only');
  return [
    // Root needs no user namespace. Without one, the process limit counts per user of a program.
    ...(dropsRoot ? [] : ['--unshare-user']),
    ...['--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-cgroup-try'],
    ...(view.network ? [] : ['--unshare-net']),
    // The program is the init process of its PID namespace: when it ends, all its processes end.
    ...['--die-with-parent', '--as-pid-1', '--json-status-fd', String(statusFd)],
    ...(filter ? ['--seccomp', String(statusFd + 1)] : []),
    ...SYSTEM_FOLDERS.flatMap(systemFolder),
    // Before the mounts of the program, which may have their source or target there.
    ...hidden.flatMap(emptied),
    ...folder('/etc'),
    ...['--ro-bind-try', LOADER_CACHE, LOADER_CACHE],
    // Read-only: otherwise a program could raise its CPU priority and lower its OOM score.
    ...['--proc', '/proc', '--remount-ro', '/proc', '--dev', '/dev'],
    // Also reads as zeros, but cannot be mapped as shared memory, which no limit counts.
    ...['--dev-bind', '/dev/full', '/dev/zero'],
    // The only writable tmpfs is limited in size, because its memory counts for no limit of the program.
    ...['--perms', '1777', '--size', String(view.tmpMb * 1024 * 1024), '--tmpfs', '/tmp'],
    ...mounts(view),
    ...[...hidden.filter(({ isFolder }) => isFolder).map(({ path }) => path), '/dev', '/'].flatMap((path) => [
      '--remount-ro',
      path,
    ]),
    ...['--chdir', program.cwd, '--'],
    ...(dropsRoot ? withoutRoot(setpriv, user) : []),
    ...[program.file, ...program.args],
  ];
}

/** Mounts a system folder, or recreates the symbolic link. */
function systemFolder(path: string): string[] {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (!status) return [];
  return status.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/** Outer folders first, so that they do not hide inner mounts. */
function mounts({ readOnly, writable }: View): string[] {
  const all = [
    ...readOnly.map(([source, target]) => ({ option: '--ro-bind', source, target })),
    ...writable.map(([source, target]) => ({ option: '--bind', source, target })),
  ].sort((a, b) => a.target.length - b.target.length);
  return all.flatMap(({ option, source, target }, at) => {
    const isInAnother = all.slice(0, at).some((outer) => target.startsWith(`${outer.target}/`));
    return [...(isInAnother ? [] : foldersAbove(target).flatMap(folder)), option, source, target];
  });
}

/** Parent folders of a mount, outermost first. */
function foldersAbove(target: string): string[] {
  const names = dirname(target).split('/').filter(Boolean);
  return names.map((_, at) => `/${names.slice(0, at + 1).join('/')}`).filter((path) => path !== '/tmp');
}

/** A folder that all users can enter; those that bubblewrap creates implicitly are for root only. */
function folder(path: string): string[] {
  return ['--perms', '0755', '--dir', path];
}

/** Sets the parent death signal again, because a change of user clears it. */
function withoutRoot(setpriv: string, user: number): string[] {
  return [
    setpriv,
    ...['--reuid', String(user), '--regid', String(UNTRUSTED_GROUP), '--clear-groups'],
    ...['--bounding-set=-all', '--inh-caps=-all', '--pdeathsig', 'SIGKILL'],
  ];
}
