/** The native program that confines an untrusted program and becomes it: `rust/launcher`. Its `plan.rs` reads this. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { IdRange } from '../util/untrusted-users.js';

export const LAUNCHER = fileURLToPath(new URL('../../native/launcher', import.meta.url));

/** A file or folder of this machine, and its path inside. */
export type Mount = readonly [source: string, target: string];

/** Whom a program runs as; only root can say. */
export interface Identity {
  readonly user: number;
  readonly group: number;
  /** Besides that one. */
  readonly groups: readonly number[];
}

/** What a program may reach. */
export interface Access {
  readonly readOnly: readonly Mount[];
  readonly writable: readonly Mount[];
  readonly network: boolean;
  /** Paths below system folders that it must not see, without symbolic links. */
  readonly hidden: readonly string[];
}

/** What the launcher does before it becomes the program. */
export interface LaunchPlan {
  /** This process: the program ends with it. null: it goes on without. */
  readonly parent: number | null;
  /** The program keeps so many descriptors, from 0 on. With namespaces, reports go to the next one. */
  readonly streams: number;
  readonly cwd: string;
  /** null: that of this process. */
  readonly nice: number | null;
  /** Of each process, but for `processes`; null: no limit but those of this process. */
  readonly limits: {
    readonly addressSpaceBytes: number;
    readonly fileBytes: number;
    readonly openFiles: number;
    readonly cpuSeconds: number | null;
    readonly processes: number | null;
  } | null;
  /** null: the user of this process, with its rights if `access`, `own` and `process` are null, too. */
  readonly identity: Identity | null;
  /** The folder of a cgroup to join. */
  readonly cgroup: string | null;
  /** It may not change mode, owner, times or attributes of files. */
  readonly keepsAttributes: boolean;
  /** null: what its user may reach. */
  readonly access: Access | null;
  /** null: those of this machine. */
  readonly namespaces: {
    readonly tmpBytes: number;
    /** Its /proc has the file with which compilers find out how the kernel gives out memory. */
    readonly showsOvercommit: boolean;
    /**
     * Without a network: it has one of its own (`none`), which others will enter (`first`), or may enter that one
     * (`next`): the descriptors after that of reports are the network and, if this is not root, its user namespace.
     */
    readonly sharedNetwork: 'none' | 'first' | 'next';
  } | null;
  /**
   * It is a program of the product that answers strangers or backends: whatever its user, it has no capabilities and no
   * terminal, and starts no processes. null: another one.
   */
  readonly own: {
    /** Which it makes, besides those that it was given. */
    readonly sockets: 'unix';
    /**
     * The launcher connects to Unix sockets of these users for the program, which asks it through the descriptor after
     * the others. null: the program connects by itself.
     */
    readonly connectsTo: IdRange | null;
  } | null;
  /** It is one of the processes of the Procfile, which gives up rights of root. Another one has none of this. */
  readonly process?: {
    /** Those that it keeps, by their numbers in capabilities(7), below 32. */
    readonly capabilities: readonly number[];
    /**
     * Files and folders that its user is to reach, whatever folders are above them; and files that it is to read,
     * whosever they are. What is not there is left out. Only with an identity.
     */
    readonly needs: readonly string[];
    /**
     * The program that starts others for it, which keeps rights of root: its path and arguments. This one asks it by
     * the descriptor after the others.
     */
    readonly starter: readonly string[] | null;
  };
}

/**
 * The plan of a program of the product that answers strangers or backends. It has the files of its user.
 * @param streams how many descriptors it has
 * @param identity null: the user of this process
 */
export function ownProgram(
  streams: number,
  identity: Identity | null,
  connectsTo: IdRange | null = null,
): LaunchPlan {
  return {
    ...{ parent: process.pid, streams, cwd: '/', nice: null, limits: null, identity, cgroup: null },
    ...{ keepsAttributes: false, access: null, namespaces: null, own: { sockets: 'unix', connectsTo } },
  };
}

/**
 * The command line that runs a program according to a plan.
 * @throws Error when the launcher was not built
 */
export function launched(plan: LaunchPlan, file: string, args: readonly string[]): [string, string[]] {
  if (!existsSync(LAUNCHER)) throw new Error(`there is no ${LAUNCHER}: run \`npm run build\``);
  return [LAUNCHER, [JSON.stringify(plan), file, ...args]];
}
