/** Access of untrusted programs to this machine, independent of how it is enforced. */
import { UNTRUSTED_GROUP } from '../util/untrusted-users.js';
import type { RunUser } from './run-user.js';

/** A file or folder of this machine, and its path inside. */
export type Mount = readonly [source: string, target: string];

/** The files that a program sees, besides system programs and libraries, its own /proc and harmless devices. */
export interface View {
  readonly readOnly: readonly Mount[];
  /** Folders. `Confinement.handOver` makes the program their owner. */
  readonly writable: readonly Mount[];
  /** Whether it shares the network of this machine; otherwise it has no network and no abstract Unix sockets. */
  readonly network: boolean;
  /** Size of its /tmp, which is in memory, MiB. */
  readonly tmpMb: number;
}

/** A program to run. Paths are as seen inside. */
export interface ConfinedProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

/** The command line that runs a confined program. */
export interface CommandLine extends ConfinedProgram {
  /** The user and group to start it as; those of this process by default. */
  readonly uid?: number;
  readonly gid?: number;
}

/** The confinement of one program or of several that trust each other. */
export interface Confinement {
  /** Maps a path of this machine to the path inside. */
  inside(path: string): string;
  /** Makes the user of the program the owner of a folder or file, not recursively. */
  handOver(path: string): Promise<void>;
  /** Opens the file descriptors that the command line needs after `statusFd`. The caller closes them. */
  openFiles(): number[];
  /**
   * The command line that runs a program confined. The environment is passed to the program unchanged.
   * @param statusFd file descriptor on which it reports, if `hasMonitor`
   */
  commandLine(program: ConfinedProgram, statusFd: number): CommandLine;
  /** Whether a monitor process runs the program in a sandbox and reports its process id and exit status. */
  readonly hasMonitor: boolean;
  /** The user that only this program runs as; undefined when it is the user of this process. */
  readonly user: RunUser | undefined;
}

/** No confinement: the program has the same access as this process. */
export const UNCONFINED: Confinement = {
  inside: (path) => path,
  handOver: async () => undefined,
  openFiles: () => [],
  commandLine: (program) => program,
  hasMonitor: false,
  user: undefined,
};

/**
 * No sandbox, but a separate user.
 * @param setpriv path of the program, which keeps set-user-ID programs from giving it the rights of other users
 */
export function confinedByUser(user: RunUser, setpriv?: string): Confinement {
  return {
    ...UNCONFINED,
    handOver: (path) => user.takeOver(path),
    commandLine: ({ file, args, cwd }) => ({
      ...(setpriv === undefined
        ? { file, args }
        : { file: setpriv, args: ['--no-new-privs', '--', file, ...args] }),
      cwd,
      uid: user.id,
      gid: UNTRUSTED_GROUP,
    }),
    user,
  };
}
