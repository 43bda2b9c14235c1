/** Confinement by namespaces of the kernel, which bubblewrap (`bwrap`) makes. */
import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { lchown } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ConfinedProgram, Confinement, View } from './confinement.js';
import type { FilterFile } from './filter-file.js';

/** How to call bubblewrap on this machine. */
export interface Bubblewrap {
  /** Path of `bwrap`. */
  readonly bwrap: string;
  /** Path of `setpriv`, which gives up root; undefined when we are not root, and a user namespace does instead. */
  readonly setpriv: string | undefined;
  /** The system calls that are refused; undefined on architectures for which there is no filter. */
  readonly filter: FilterFile | undefined;
  /** What among the programs and libraries of the system is to look empty. */
  readonly hidden: readonly HiddenPath[];
}

/** Namespaces made by bubblewrap. */
export class BubblewrapConfinement implements Confinement {
  readonly reports = true;
  /** As whom the program runs when we are root: nobody else runs as this user, nor owns a file. */
  readonly #user: number;

  constructor(
    private readonly bubblewrap: Bubblewrap,
    private readonly view: View,
    user: number | undefined,
  ) {
    this.#user = user ?? freshUser();
  }

  inside(path: string): string {
    const { readOnly, writable } = this.view;
    const mount = [...readOnly, ...writable]
      .filter(([source]) => path === source || path.startsWith(`${source}/`))
      .sort(([a], [b]) => b.length - a.length)[0];
    return mount ? mount[1] + path.slice(mount[0].length) : path;
  }

  async handOver(path: string): Promise<void> {
    if (this.bubblewrap.setpriv !== undefined) await lchown(path, this.#user, this.#user);
  }

  openFiles(): number[] {
    return this.bubblewrap.filter ? [this.bubblewrap.filter.open()] : [];
  }

  commandLine(program: ConfinedProgram, statusFd: number): ConfinedProgram {
    const args = bubblewrapArguments(this.bubblewrap, this.view, this.#user, statusFd, program);
    return { file: this.bubblewrap.bwrap, args, cwd: '/' };
  }
}

/** Users of programs inside: ids of this range are given to nobody else. */
const FIRST_USER = 1_900_000_000;
const USERS = 2 ** 24;

function freshUser(): number {
  return FIRST_USER + Math.floor(Math.random() * USERS);
}

/** Whether files of this user were made by programs inside. */
export function isConfinedUser(uid: number): boolean {
  return uid >= FIRST_USER && uid < FIRST_USER + USERS;
}

/** Where programs and libraries are; on most systems all but /usr are links into it. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Where the loader finds libraries that are not in a standard folder. */
const LOADER_CACHE = '/etc/ld.so.cache';
/** Room for folders in which something else is mounted. */
const HIDDEN_BYTES = 1024 * 1024;

/** Something that is not to be seen inside. */
export interface HiddenPath {
  readonly path: string;
  readonly isFolder: boolean;
}

/**
 * Which of these would be seen inside, because they are below /usr or another folder of the system, under the paths that
 * they really have; nothing that is in another of them. What does not exist, or what we cannot reach ourselves, need not
 * be hidden.
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

/** @param user as whom the program runs, when we are root */
function bubblewrapArguments(
  { setpriv, filter, hidden }: Bubblewrap,
  view: View,
  user: number,
  statusFd: number,
  program: ConfinedProgram,
): string[] {
  return [
    // Without a user namespace when we are root: limits of processes then count for the user of the program alone.
    ...(setpriv === undefined ? ['--unshare-user'] : []),
    ...['--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-cgroup-try'],
    ...(view.network ? [] : ['--unshare-net']),
    // The program is the first process of its namespace: when it ends, everything it has started ends.
    ...['--die-with-parent', '--as-pid-1', '--json-status-fd', String(statusFd)],
    ...(filter ? ['--seccomp', String(statusFd + 1)] : []),
    ...SYSTEM_FOLDERS.flatMap(systemFolder),
    // Before all that the program is given, which may come from there or stand in there.
    ...hidden.flatMap(emptied),
    ...folder('/etc'),
    ...['--ro-bind-try', LOADER_CACHE, LOADER_CACHE],
    // Not to be written to: there a program could give itself more of the CPU, and a better place when memory runs out.
    ...['--proc', '/proc', '--remount-ro', '/proc', '--dev', '/dev'],
    // It reads as zeros too; but shared memory, which no limit counts, cannot be had from it.
    ...['--dev-bind', '/dev/full', '/dev/zero'],
    // Memory of a tmpfs counts for no limit of the program: there is one of limited size, and no other to write to.
    ...['--perms', '1777', '--size', String(view.tmpMb * 1024 * 1024), '--tmpfs', '/tmp'],
    ...mounts(view),
    ...[...hidden.filter(({ isFolder }) => isFolder).map(({ path }) => path), '/dev', '/'].flatMap((path) => [
      '--remount-ro',
      path,
    ]),
    ...['--chdir', program.cwd, '--'],
    ...(setpriv === undefined ? [] : withoutRoot(setpriv, user)),
    ...[program.file, ...program.args],
  ];
}

/** As on this machine: a folder, or the link that it is. */
function systemFolder(path: string): string[] {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (!status) return [];
  return status.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/** Outer folders first, so that what stands in them is not hidden. */
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

/** Folders that have to be made for a mount, outermost first. */
function foldersAbove(target: string): string[] {
  const names = dirname(target).split('/').filter(Boolean);
  return names.map((_, at) => `/${names.slice(0, at + 1).join('/')}`).filter((path) => path !== '/tmp');
}

/** A folder that everybody can enter; those that bubblewrap makes by itself are for root alone. */
function folder(path: string): string[] {
  return ['--perms', '0755', '--dir', path];
}

/** A change of user clears the request to be killed with the parent, so it is made again. */
function withoutRoot(setpriv: string, user: number): string[] {
  return [
    setpriv,
    ...['--reuid', String(user), '--regid', String(user), '--clear-groups'],
    ...['--bounding-set=-all', '--inh-caps=-all', '--pdeathsig', 'SIGKILL'],
  ];
}
