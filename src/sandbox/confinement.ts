/** What a program that is not trusted may see and reach, whatever enforces it. */
/** A file or folder of this machine, and what it is called inside. */
export type Mount = readonly [source: string, target: string];

/** All that a program sees, besides the programs and libraries in /usr, a /proc of its own and the harmless devices. */
export interface View {
  readonly readOnly: readonly Mount[];
  /** Folders. The program has to be given them: `Confinement.handOver`. */
  readonly writable: readonly Mount[];
  /** Whether it shares the network of this machine; otherwise it has none, and no abstract Unix sockets. */
  readonly network: boolean;
  /** Room in its /tmp, which is memory, MiB. */
  readonly tmpMb: number;
}

/** A program to run. Paths are those of inside. */
export interface ConfinedProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

/** One run of a program, or several that trust each other, behind the same walls. */
export interface Confinement {
  /** How a path of this machine is called inside. */
  inside(path: string): string;
  /** Makes a folder or file, not what is in it, belong to whom the program runs as. */
  handOver(path: string): Promise<void>;
  /** File descriptors that the command line needs, open: from the one after `statusFd` on. Who asks closes them. */
  openFiles(): number[];
  /**
   * The command line that runs a program so. It is given the whole environment of the program as its own.
   * @param statusFd file descriptor on which it reports, if `reports`
   */
  commandLine(program: ConfinedProgram, statusFd: number): ConfinedProgram;
  /** Whether a monitor stands between the program and us, which reports the program's process id and how it ended. */
  readonly reports: boolean;
}

/** No walls: the program sees what we see, at real paths. Only resource limits hold it. */
export const UNCONFINED: Confinement = {
  inside: (path) => path,
  handOver: async () => undefined,
  openFiles: () => [],
  commandLine: (program) => program,
  reports: false,
};
