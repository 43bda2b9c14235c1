/** One run of the process of an active service: where it is reached, its bindings, its figures, and its end. */
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import pTimeout from 'p-timeout';
import { removeShared } from '../../sandbox/remove-tree.js';
import type { HostedBinding } from '../../store/service-activity.js';
import { isErrno } from '../../util/errno.js';
import type { Figures } from './figures.js';
import type { ServeRequest } from './messages.js';
import { memoryOf } from './programs.js';
import { ServiceProcess, type ServiceProcessListener } from './service-process.js';
import { type PreparedWork, prepareWork, type ServicePrograms, type ServiceUser } from './service-user.js';

/** What is the same for all services of an actor host. */
export interface IsolationSettings
  extends Pick<
    ServeRequest,
    | 'queueLimit'
    | 'defaultCallMs'
    | 'longestCallMs'
    | 'handlerThreads'
    | 'answerBytes'
    | 'memoryMb'
    | 'sqliteFolders'
    | 'logsDebug'
    | 'tokenFolder'
  > {
  readonly programs: ServicePrograms;
  /** The folder of sockets that handlers see. */
  readonly handlerFolder: string;
  /** A folder that they do not see. */
  readonly objectFolder: string;
}

const SOCKET = 'socket';
/** The share of the memory of a process for payloads; what is made of them takes as much again. */
const PAYLOAD_SHARE = 1 / 2;
/** After the limit of a drain, until the process is killed. */
const DRAIN_GRACE_MS = 2_000;
/** A drained process sends calls elsewhere until handlers have left it. */
const LEAVE_MS = 30_000;

type Work = Pick<ServeRequest, 'service' | 'config' | 'bindings' | 'sqliteFolders'>;

/** A run before its start: its user is claimed, and has the folders of its sockets. */
export interface PreparedRun extends PreparedWork<Work> {
  /** In each of the folders of sockets. */
  readonly name: string;
  /** Those of this run alone. */
  readonly folders: readonly [forHandlers: string, forObjects: string];
}

/**
 * Prepares a run, which is to be started, or discarded.
 * @throws Error when there is no user left, no file descriptor, or no place on the disk
 */
export async function prepareRun(
  given: Omit<Work, 'sqliteFolders'>,
  { sqliteFolders, programs, handlerFolder, objectFolder }: IsolationSettings,
): Promise<PreparedRun> {
  const prepared = await prepareWork({ ...given, sqliteFolders }, programs);
  const name = randomBytes(9).toString('hex');
  const run = { ...prepared, name, folders: [join(handlerFolder, name), join(objectFolder, name)] as const };
  try {
    // Handlers know the name of the socket in the first, and only the actor host connects to that in the other.
    await makeOwn(run.folders[0], 0o711, run.user);
    await makeOwn(run.folders[1], 0o700, run.user);
    return run;
  } catch (thrown) {
    await discardRun(run);
    throw thrown;
  }
}

async function makeOwn(folder: string, mode: number, user: ServiceUser | undefined): Promise<void> {
  await mkdir(folder, { mode });
  await chmod(folder, mode);
  if (user) await chown(folder, user.identity.user, user.identity.group);
}

/** Removes what was prepared. */
export async function discardRun({ user, folders }: PreparedRun): Promise<void> {
  user?.free();
  await Promise.all(folders.map(removeOwn));
}

/** With its socket, which a process that was killed has left behind. */
async function removeOwn(folder: string): Promise<void> {
  try {
    await rm(join(folder, SOCKET), { force: true });
    await rmdir(folder);
  } catch (error) {
    // There is more in it. Other services may have the same user, that of sqlite.
    if (!isErrno(error, 'ENOENT')) await removeShared(folder);
  }
}

export class ServiceRun {
  readonly #process: ServiceProcess;
  /** Signs the tokens of handlers, and authenticates the actor host. */
  readonly key = randomBytes(32).toString('base64url');
  /** The socket for handlers, in the folder that they see. */
  readonly socket: string;
  readonly objectSocket: string;
  readonly since = performance.now();
  /** Resolves when it takes calls; rejects with a ServiceError when it has ended. */
  readonly serving: Promise<unknown>;
  /** Resolves when it knows the present bindings; rejects likewise. */
  #bound: Promise<unknown>;

  /** Starts it. A failure to start is an end. */
  constructor(run: PreparedRun, settings: IsolationSettings, listener: ServiceProcessListener) {
    const { handlerFolder: _seen, objectFolder: _hidden, programs, ...limits } = settings;
    const { work, user, folders } = run;
    const memoryMb = memoryOf(work.service.type, settings.memoryMb);
    this.socket = join(run.name, SOCKET);
    this.objectSocket = join(folders[1], SOCKET);
    this.#process = new ServiceProcess(work.service, memoryMb, user, programs, {
      onMessage: (message) => listener.onMessage(message),
      onEnd: (reason) => {
        discardRun(run).catch(() => undefined); // removed at the next start
        listener.onEnd(reason);
      },
    });
    this.serving = this.#process.ask({
      type: 'serve',
      ...limits,
      ...work,
      memoryMb,
      handlerSocket: join(folders[0], SOCKET),
      objectSocket: this.objectSocket,
      key: this.key,
      memoryBytes: memoryMb * 1024 ** 2 * PAYLOAD_SHARE,
    });
    this.#bound = this.serving;
    // Those who wait are told.
    this.serving.catch(() => undefined);
  }

  /** Resolves when it takes calls with the present bindings; rejects with a ServiceError when it has ended. */
  async ready(): Promise<void> {
    await this.serving;
    await this.#bound;
  }

  /** Replaces the bindings. */
  bind(bindings: readonly HostedBinding[]): void {
    this.#bound = this.#process.ask({ type: 'bind', bindings });
    this.#bound.catch(() => undefined);
  }

  /** Its figures since the last time; rejects with a ServiceError when it has ended. */
  async measure(): Promise<Figures | undefined> {
    return (await this.#process.ask({ type: 'measure' })).figures;
  }

  /**
   * Sends new calls elsewhere, and waits for those in progress; with a limit, ends the process then. Without one, it
   * lives on until handlers have left it.
   * @returns its last figures, if it could tell them
   */
  async drain(limitMs: number | undefined): Promise<Figures | undefined> {
    const drained = this.#process.ask({ type: 'drain', limitMs }).then(
      ({ figures }) => figures,
      () => undefined, // it has ended
    );
    if (limitMs === undefined) {
      const figures = await drained;
      const timer = setTimeout(() => this.#process.kill('handlers did not leave it'), LEAVE_MS);
      void this.#process.ended().then(() => clearTimeout(timer));
      return figures;
    }
    const figures = await pTimeout(drained, {
      milliseconds: limitMs + DRAIN_GRACE_MS,
      fallback: () => undefined,
    });
    this.#process.kill('the actor host ends');
    await this.#process.ended();
    return figures;
  }
}
