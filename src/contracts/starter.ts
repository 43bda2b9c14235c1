/**
 * What an actor host and the starter of services tell each other, one JSON text to a line.
 *
 * `npm run contracts` has written this file from `rust/starter/src/messages.rs`: change it there.
 */

/** What is the same for all processes. Told by whoever starts the actor host, not by the actor host. */
export interface Settings {
  /** The launcher, which confines what it starts. */
  readonly launcher: string;
  /** None: processes have the user of the starter. */
  readonly users: Users | null;
  /** Where users in use are recorded. */
  readonly records: string;
  /** The socket of the actor host to which channels of processes are opened. */
  readonly channels: string;
  /** The folder of sockets that handlers see. */
  readonly handlerFolder: string;
  /** The folder of those that only the actor host uses. */
  readonly objectFolder: string;
  /** The folders in which files of sqlite services may be. */
  readonly sqliteFolders: readonly string[];
  /** The programs, by the names that requests give them. */
  readonly programs: Readonly<Record<string, Program>>;
  /** The environment of all processes: they have no other variables. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Ids of users and groups. */
export interface Users {
  readonly first: number;
  readonly count: number;
  readonly group: number;
  /** Besides that one. */
  readonly groups: readonly number[];
  /** The user and group of processes of sqlite services whose folder has no owner but root. */
  readonly sqlite: number;
  /** The group of the processes that read object files. */
  readonly product: number;
}

export interface Program {
  readonly file: string;
  /** `{memoryMb}` stands for the limit of a process, MiB. */
  readonly arguments: readonly string[];
  /** Data that it maps for itself, MiB. */
  readonly ownMb: number;
  /** Whether it writes files, whose size it limits itself. It runs as the owner of their folder. */
  readonly writesFiles: boolean;
  /** Which it makes: `unix` or `internet`. */
  readonly sockets: string;
}

/** A message from the actor host. */
export type Request =
  | { readonly start: Start }
  | {
      readonly kill: {
        readonly run: number;
      };
    }
  | { readonly look: Look };

/** What is there of the file of a sqlite service? The actor host may not see it itself. */
export interface Look {
  /** The number by which both know the question. */
  readonly look: number;
  /** Which of `sqlite_folders` has it. */
  readonly folder: number;
  readonly file: string;
}

export interface Start {
  /** The number by which both know the process. */
  readonly run: number;
  /** The first line of its channel, which nobody else knows. */
  readonly channel: string;
  readonly program: string;
  /** The id of the service, for the list of processes. */
  readonly service: string;
  /** What it may use besides what the program needs for itself, MiB. */
  readonly memoryMb: number;
  /** Which of `sqlite_folders` has its file. */
  readonly sqliteFolder?: number;
  /** Whether it serves: then it has folders for its sockets. */
  readonly serves: boolean;
}

/**
 * A message to the actor host. `Ended` is the last about a process, and the only one about one that could
 * not be started.
 */
export type Report =
  | {
      readonly started: {
        readonly run: number;
        readonly pid: number;
        /** That of the folders of its sockets. */
        readonly name?: string;
      };
    }
  | {
      readonly ended: {
        readonly run: number;
        /** How, or why it was not started. */
        readonly how: string;
        /** The last that it printed. */
        readonly printed: string;
      };
    }
  | {
      readonly looked: {
        readonly look: number;
        /** All of `sqlite_folders`, with links followed. */
        readonly folders: readonly string[];
        /** Whether the one in question is a folder of root, who runs no services, and not one for all, as `/tmp` is. */
        readonly belongsToRoot: boolean;
        readonly exists: boolean;
      };
    };
