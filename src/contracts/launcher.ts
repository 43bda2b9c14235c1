/**
 * What the launcher does before it becomes a program: an argument of it, as JSON.
 *
 * `npm run contracts` has written this file from `rust/launcher/src/plan.rs`: change it there.
 */

export interface Plan {
  /** Process id of whoever starts the program, which ends with it. Null: it goes on without. */
  readonly parent: number | null;
  /** The program keeps so many descriptors, from 0 on. With namespaces, reports go to the next one. */
  readonly streams: number;
  /** The current folder, as the program sees it. */
  readonly cwd: string;
  /** Null: that of the launcher. */
  readonly nice: number | null;
  /** Null: those of the launcher. */
  readonly limits: Limits | null;
  /**
   * Whom the program runs as; as root only. Null: the user of the launcher, with its rights if `access`, `own`
   * and `process` are null, too.
   */
  readonly identity: Identity | null;
  /** The folder of a cgroup to join; null: that of the launcher. */
  readonly cgroup: string | null;
  /**
   * It may not change mode, owner, times or attributes of files. Where it runs as the user of the service,
   * without namespaces, nothing else keeps it from those of the service.
   */
  readonly keepsAttributes: boolean;
  /** Null: what its user may reach. */
  readonly access: Access | null;
  /** Null: those of the machine. */
  readonly namespaces: Namespaces | null;
  /** It is a program of the product that answers strangers or backends. Null: another one. */
  readonly own: Own | null;
  /** It is a process of the product itself, which listens, and starts programs. Another one has none of this. */
  readonly process?: Process;
}

/**
 * A program of the product that keeps none of its rights: whatever its user, it has no capabilities, no
 * terminal, and starts no processes.
 */
export interface Own {
  /** Which it makes, besides those that it was given. */
  readonly sockets: Sockets;
  /**
   * The launcher connects to Unix sockets of these users for it, see `connector.rs`. Null: it connects by
   * itself.
   */
  readonly connectsTo: Users | null;
}

/**
 * A process of the product, as the Procfile names them, that gives up what it does not need of the rights of
 * root.
 */
export interface Process {
  /** Those that it keeps, by their numbers in capabilities(7), below 32. */
  readonly capabilities: readonly number[];
  /**
   * Files and folders that its user is to reach, whatever folders are above them; and files that it is to
   * read, whosever they are. What is not there is left out. Only with an identity.
   */
  readonly needs: readonly string[];
  /**
   * The program that starts others for it, which keeps rights of root: its path, and its arguments. The
   * descriptor after the others leads to it.
   */
  readonly starter: readonly string[] | null;
}

export type Sockets =
  | 'unix'
  /** Those of networks, too. */
  | 'internet';

/** Limits of each process. Null: that of the launcher. */
export interface Limits {
  readonly addressSpaceBytes: number;
  readonly fileBytes: number;
  readonly openFiles: number;
  readonly cpuSeconds: number | null;
  /** The limit for all processes of its user together. */
  readonly processes: number | null;
}

export interface Identity {
  readonly user: number;
  readonly group: number;
  /** Besides that one. */
  readonly groups: readonly number[];
}

/** Users with successive ids. */
export interface Users {
  readonly first: number;
  readonly count: number;
}

/** A file or folder of the machine, and where the program sees it if it has namespaces. */
export type Mount = readonly [string, string];

/** What a program may reach. */
export interface Access {
  readonly readOnly: readonly Mount[];
  readonly writable: readonly Mount[];
  readonly network: boolean;
  /** Paths below system folders that it must not see, without symbolic links. */
  readonly hidden: readonly string[];
}

export interface Namespaces {
  /** Size of its own /tmp. */
  readonly tmpBytes: number;
  /** Its /proc has the file with which compilers find out how the kernel gives out memory. */
  readonly showsOvercommit: boolean;
  readonly sharedNetwork: SharedNetwork;
}

/** The network namespace of a program without a network. */
export type SharedNetwork =
  /** It has one of its own. */
  | 'none'
  /**
   * It has one of its own that others will enter. This user is root in its user namespace, if it has one: so
   * the tables of the network belong to it, and it can close them.
   */
  | 'first'
  /**
   * It may enter the one that is open as the descriptor after that of reports; the next one is its user
   * namespace, if it has one.
   */
  | 'next';
