/**
 * The channel to the process of a database file. Requests of one turn of the event loop are sent as one message, and
 * answers arrive in the order of the requests. An aborted statement that does not end is ended by killing the process.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Abortable, stoppedOnAbort } from '../../driver-call.js';
import { ServiceError, type ServiceErrorKind } from '../../service-error.js';
import { limitedProcess, nodeProgram } from '../../service-process/limited-process.js';

const PROGRAM = fileURLToPath(new URL('./process.js', import.meta.url));

/**
 * Memory for statements and answers, MiB; an answer of 64 MiB, the largest, needs about half. It is a limit of data
 * instead of address space, of which Node reserves much more than it uses.
 */
export const MEMORY_MB = 1024;
// Messages are arrays, which are fast to serialize.

/** The first message to a process: the file to open. */
export interface OpenRequest {
  readonly path: string;
  readonly createIfMissing: boolean;
  /** Maximum size of the file, MiB. */
  readonly maxSizeMb: number;
  /** Its present size, MiB: one that is larger already has to remain writable, so that it can become smaller. */
  readonly sizeMb: number;
}

/** Changes that stay in the WAL until it is checkpointed: 1000 pages of at most 64 KiB. */
const UNCHECKPOINTED_MB = 64;

/**
 * The maximum size of each file that the process writes, MiB: the file, its WAL and temporary files. A WAL has the last
 * changes and, in a large transaction, all pages, each with a header of up to 5 %.
 */
export function maxFileMb({ maxSizeMb, sizeMb }: OpenRequest): number {
  return Math.ceil(Math.max(maxSizeMb, sizeMb) * 1.05) + UNCHECKPOINTED_MB;
}

/**
 * The operations of requests. `read` is a read-only query that sees the state before the open transaction; operations
 * with the prefix `tx-` run in that transaction.
 */
export type Operation =
  | 'query'
  | 'execute'
  | 'read'
  | 'tx-query'
  | 'tx-execute'
  | 'begin'
  | 'commit'
  | 'rollback'
  | 'test';

export type Request = readonly [id: number, operation: Operation, payload: string];

export type Answer =
  | readonly [
      id: number,
      kind: 'ok',
      text: string | undefined,
      rowsAffected: number,
      lastInsertId: bigint | null,
    ]
  | readonly [id: number, kind: ServiceErrorKind, message: string];

/** Grace period of an aborted statement before the process is killed. */
const GRACE_MS = 100;
const ENDLESS =
  'a statement ran for too long and could only be ended together with the connection to the file';
/** Grace period for closing the file before the process is killed. */
const CLOSE_TIMEOUT_MS = 1_000;

/** The result of a successful request. */
export interface ChannelResult {
  readonly text: string | undefined;
  readonly rowsAffected: number;
  readonly lastInsertId: bigint | null;
}

interface Pending {
  readonly resolve: (result: ChannelResult) => void;
  readonly reject: (error: ServiceError) => void;
  isAborted: boolean;
}

export class SqliteChannel {
  readonly #file: OpenRequest;
  readonly #onLost: (error: ServiceError) => void;
  readonly #process: ChildProcess;
  /** In sending order: the first one is running. */
  readonly #pending = new Map<number, Pending>();
  #outbox: Request[] = [];
  #nextId = 1;
  #grace: NodeJS.Timeout | undefined;
  #ended: ServiceError | undefined;

  /** @param onLost called when the process ends without `close` */
  constructor(file: OpenRequest, onLost: (error: ServiceError) => void) {
    this.#file = file;
    this.#onLost = onLost;
    this.#process = limitedProcess(
      nodeProgram([PROGRAM], []),
      { memoryMb: MEMORY_MB, fileMb: maxFileMb(file) },
      { serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
    );
    this.#process.on('error', (error) => this.#lose(`the process for the database failed: ${error.message}`));
    this.#process.on('exit', () => this.#lose('the process for the database has ended'));
  }

  /**
   * Opens the file.
   * @throws ServiceError
   */
  async open(opening: Abortable): Promise<void> {
    await stoppedOnAbort(
      opening,
      () => this.#kill('the database did not open in time'),
      () => this.#open(),
    );
    this.#process.on('message', (answers: readonly Answer[]) => this.#receive(answers));
  }

  #open(): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      if (this.#ended) return reject(this.#ended);
      this.#pending.set(0, { resolve: () => resolve(), reject, isAborted: false });
      this.#process.once('message', (answer: { readonly opened: boolean; readonly reason?: string }) => {
        this.#pending.delete(0);
        if (answer.opened) resolve();
        else reject(new ServiceError('unavailable', `${this.#file.path} cannot be opened: ${answer.reason}`));
      });
      // Not connected if the start has failed, which `error` reports.
      if (this.#process.connected) this.#process.send(this.#file, () => undefined);
    });
  }

  /** @param call its abort ends the request if it is running */
  request(operation: Operation, payload: string, call?: Abortable): Promise<ChannelResult> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(this.#ended);
      const id = this.#nextId++;
      const pending = { resolve, reject, isAborted: false };
      this.#pending.set(id, pending);
      call?.onAbort(() => {
        pending.isAborted = true;
        this.#endAborted();
      });
      if (this.#outbox.push([id, operation, payload]) === 1) setImmediate(() => this.#flush());
    });
  }

  /** Ends the process: gracefully if it is idle, otherwise by killing it. */
  async close(): Promise<void> {
    const isIdle = this.#pending.size === 0 && !this.#ended;
    this.#ended ??= new ServiceError('unavailable', 'the database was closed');
    clearTimeout(this.#grace);
    const { exitCode, signalCode, connected } = this.#process;
    if (this.#process.pid === undefined || exitCode !== null || signalCode !== null) return;
    const exit = once(this.#process, 'exit');
    if (isIdle && connected) {
      const timeout = setTimeout(() => this.#process.kill('SIGKILL'), CLOSE_TIMEOUT_MS);
      this.#process.disconnect();
      await exit;
      clearTimeout(timeout);
    } else {
      this.#process.kill('SIGKILL');
      await exit;
    }
    this.#rejectAll(this.#ended);
  }

  #flush(): void {
    const requests = this.#outbox;
    this.#outbox = [];
    // Requests that cannot be sent are rejected when the process ends.
    if (this.#process.connected) this.#process.send(requests, () => undefined);
  }

  #receive(answers: readonly Answer[]): void {
    for (const answer of answers) {
      const pending = this.#pending.get(answer[0]);
      this.#pending.delete(answer[0]);
      if (answer[1] === 'ok') {
        pending?.resolve({ text: answer[2], rowsAffected: answer[3], lastInsertId: answer[4] });
      } else {
        const error = new ServiceError(answer[1], answer[2]);
        pending?.reject(error);
      }
    }
    // The next request, which may be aborted already, runs now.
    this.#endAborted();
  }

  /** Kills the process if the running statement was aborted and does not end within the grace period. */
  #endAborted(): void {
    const [running] = this.#pending.values();
    if (!running?.isAborted || this.#grace) return;
    this.#grace = setTimeout(() => {
      this.#grace = undefined;
      const [first] = this.#pending.values();
      if (first === running) this.#kill(ENDLESS);
      else this.#endAborted();
    }, GRACE_MS);
  }

  #kill(reason: string): void {
    this.#process.kill('SIGKILL');
    this.#lose(reason);
  }

  #lose(reason: string): void {
    clearTimeout(this.#grace);
    if (this.#ended) {
      this.#rejectAll(this.#ended);
      return;
    }
    this.#ended = new ServiceError('unavailable', reason);
    this.#rejectAll(this.#ended);
    this.#onLost(this.#ended);
  }

  #rejectAll(error: ServiceError): void {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
