/** One run of the process of an active service: where it is reached, its bindings, its figures, and its end. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pTimeout from 'p-timeout';
import type { HostedBinding } from '../../store/service-activity.js';
import type { Figures } from './figures.js';
import type { ServeRequest } from './messages.js';
import { memoryOf } from './programs.js';
import { ServiceProcess, type ServiceProcessListener } from './service-process.js';
import type { WithSqliteFolder } from './sqlite-paths.js';
import type { Starter } from './starter.js';

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
  readonly starter: Starter;
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

export type ServedWork = Pick<ServeRequest, 'service' | 'config' | 'bindings' | 'sqliteFolders'>;

export class ServiceRun {
  readonly #process: ServiceProcess;
  /** Signs the tokens of handlers, and authenticates the actor host. */
  readonly key = randomBytes(32).toString('base64url');
  readonly since = performance.now();
  /** Resolves when it takes calls; rejects with a ServiceError when it has ended. */
  readonly serving: Promise<unknown>;
  readonly #objectFolder: string;
  /** That of its folder of sockets; none before it is started. */
  #name = '';
  /** Resolves when it knows the present bindings; rejects likewise. */
  #bound: Promise<unknown>;

  /** Starts it. A failure to start is an end. */
  constructor(
    { sqliteFolder, ...work }: WithSqliteFolder<ServedWork>,
    settings: IsolationSettings,
    listener: ServiceProcessListener,
  ) {
    const { handlerFolder, objectFolder, starter, ...limits } = settings;
    const { service } = work;
    const memoryMb = memoryOf(service.type, settings.memoryMb);
    this.#objectFolder = objectFolder;
    this.#process = new ServiceProcess(starter, { service, memoryMb, sqliteFolder, serves: true }, listener);
    this.serving = this.#process.started.then((name = '') => {
      this.#name = name;
      return this.#process.ask({
        type: 'serve',
        ...limits,
        ...work,
        memoryMb,
        handlerSocket: join(handlerFolder, this.socket),
        objectSocket: this.objectSocket,
        key: this.key,
        memoryBytes: memoryMb * 1024 ** 2 * PAYLOAD_SHARE,
      });
    });
    this.#bound = this.serving;
    // Those who wait are told.
    this.serving.catch(() => undefined);
  }

  /** The socket for handlers, in the folder that they see. To be called when it is serving. */
  get socket(): string {
    return join(this.#name, SOCKET);
  }

  /** That of object files. To be called when it is serving. */
  get objectSocket(): string {
    return join(this.#objectFolder, this.#name, SOCKET);
  }

  /** Resolves when it takes calls with the present bindings; rejects with a ServiceError when it has ended. */
  async ready(): Promise<void> {
    await this.serving;
    await this.#bound;
  }

  /** Replaces the bindings. */
  bind(bindings: readonly HostedBinding[]): void {
    // After the work that it began with.
    this.#bound = this.#process.started.then(() => this.#process.ask({ type: 'bind', bindings }));
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
    const drained = this.#process.ask({ type: 'drain', ...(limitMs !== undefined && { limitMs }) }).then(
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
