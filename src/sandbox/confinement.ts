/** Access of untrusted programs to this machine, and the level at which it is enforced. */

import type { Access, Plan } from '../contracts/launcher.js';
import { UNTRUSTED_GROUP } from '../util/untrusted-users.js';
import type { RunUser } from './run-user.js';

/**
 * What enforces it: namespaces of the kernel besides Landlock; Landlock and a filter of system calls; or resource
 * limits only, and as root a user of its own.
 */
export const SANDBOX_LEVELS = ['namespaces', 'landlock', 'limits'] as const;
export type SandboxLevel = (typeof SANDBOX_LEVELS)[number];

/** The files that a program sees, besides system programs and libraries, and whether it has a network. */
export interface View extends Omit<Access, 'hidden'> {
  /** Size of its own /tmp in memory, MiB; only at the level `namespaces`. */
  readonly tmpMb: number;
  /**
   * Whether its /proc has `sys/vm/overcommit_memory`, without which compilers take longer, and only links to what a
   * process finds of itself; only at the level `namespaces`. At the level `landlock` it has.
   */
  readonly showsOvercommit?: boolean;
  /**
   * Whether it may change mode, owner, times and attributes of files, as linkers do. Landlock does not look at these:
   * at that level, a program with the user of this process could change those of all its files.
   */
  readonly changesAttributes: boolean;
}

/** The file descriptors of a network namespace and, if this is not root, of the user namespace that it belongs to. */
export type EmptyNetwork = readonly number[];

/** The confinement of one program or of several that trust each other. */
export class Confinement {
  readonly level: SandboxLevel;
  /** The user that only this program runs as; undefined when it is the user of this process. */
  readonly user: RunUser | undefined;
  readonly #view: View | undefined;
  readonly #hidden: readonly string[];
  readonly #emptyNetwork: EmptyNetwork | 'first' | undefined;

  /**
   * @param view without one, a program has the same access as its user
   * @param hidden paths below system folders that it must not see
   * @param emptyNetwork of `openEmptyNetwork`: it is not given one of its own; or it is the first in one
   */
  constructor(
    level: SandboxLevel,
    user: RunUser | undefined,
    view: View | undefined,
    hidden: readonly string[],
    emptyNetwork?: EmptyNetwork | 'first',
  ) {
    this.level = level;
    this.user = user;
    this.#view = view;
    this.#hidden = hidden;
    this.#emptyNetwork = emptyNetwork;
  }

  /** Whether it has processes, a root and a /tmp of its own, and a monitor that reports its process id and its end. */
  get hasNamespaces(): boolean {
    return this.level === 'namespaces';
  }

  /** The file descriptors of the empty network that it shares; none: it has one of its own, or the machine's. */
  get emptyNetwork(): EmptyNetwork {
    const isWithout = this.hasNamespaces && this.#view?.network === false;
    return isWithout && this.#emptyNetwork !== 'first' ? (this.#emptyNetwork ?? []) : [];
  }

  /** Maps a path of this machine to the path inside. */
  inside(path: string): string {
    if (!this.hasNamespaces || !this.#view) return path;
    const { readOnly, writable } = this.#view;
    const mount = [...readOnly, ...writable]
      .filter(([source]) => path === source || path.startsWith(`${source}/`))
      .sort(([a], [b]) => b.length - a.length)[0];
    return mount ? mount[1] + path.slice(mount[0].length) : path;
  }

  /** Makes the user of the program the owner of a folder or file, not recursively. */
  async handOver(path: string): Promise<void> {
    await this.user?.takeOver(path);
  }

  /** The same, with another folder that it may write to. */
  withFolder(path: string): Confinement {
    const view = this.#view && { ...this.#view, writable: [...this.#view.writable, [path, path] as const] };
    return new Confinement(this.level, this.user, view, this.#hidden, this.#emptyNetwork);
  }

  /** What the launcher has to know of it. */
  get plan(): Pick<Plan, 'identity' | 'keepsAttributes' | 'access' | 'namespaces'> {
    const identity = this.user ? { user: this.user.id, group: UNTRUSTED_GROUP, groups: [] } : null;
    if (this.level === 'limits' || !this.#view)
      return { identity, keepsAttributes: false, access: null, namespaces: null };
    const { tmpMb, showsOvercommit = false, changesAttributes, ...access } = this.#view;
    const shared = this.emptyNetwork.length > 0 ? 'next' : 'none';
    const sharedNetwork = this.#emptyNetwork === 'first' ? 'first' : shared;
    const own = { tmpBytes: tmpMb * 1024 * 1024, showsOvercommit, sharedNetwork } as const;
    const namespaces = this.hasNamespaces ? own : null;
    return {
      ...{ identity, keepsAttributes: !changesAttributes },
      ...{ access: { ...access, hidden: this.#hidden }, namespaces },
    };
  }
}

/** No confinement, for programs that are trusted: they have the same access as this process. */
export const UNCONFINED = new Confinement('limits', undefined, undefined, []);
