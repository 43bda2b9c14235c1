/**
 * The way to the process that has a file open. What is asked for within one turn of the event loop goes as one message,
 * and answers come back in the order of the requests. A statement that is still running after it was given up ends with
 * the process.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { DriverCall } from '../driver.js';
import { ServiceError } from '../service-error.js';
import type { Answer, OpenRequest, Operation, Request } from './sqlite-messages.js';

const PROGRAM = fileURLToPath(new URL('./sqlite-process.js', import.meta.url));

/** A statement that nobody waits for any more gets this long to be over. */
const GRACE_MS = 100;
const ENDLESS =
  'a statement ran for too long and could only be ended together with the connection to the file';
/** The process gets this long to close the file by itself. */
const CLOSE_TIMEOUT_MS = 1_000;

/** The answer to a request that succeeded. */
export interface ChannelResult {
  readonly text: string | undefined;
  readonly rowsAffected: number;
  readonly lastInsertId: bigint | null;
}

interface Pending {
  readonly resolve: (result: ChannelResult) => void;
  readonly reject: (error: ServiceError) => void;
  /** Nobody waits for it any more. */
  isGivenUp: boolean;
}

export class SqliteChannel {
  private readonly process: ChildProcess;
  /** In the order in which they were sent: the first is the one that runs. */
  private readonly pending = new Map<number, Pending>();
  private outbox: Request[] = [];
  private nextId = 1;
  private grace: NodeJS.Timeout | undefined;
  private ended: ServiceError | undefined;

  /** @param onLost called when the process ends and nobody has closed it */
  constructor(private readonly onLost: (error: ServiceError) => void) {
    this.process = fork(PROGRAM, {
      serialization: 'advanced',
      // Nothing of what this process is configured with is its business.
      env: {},
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.process.on('error', (error) => this.lose(`the process for the database failed: ${error.message}`));
    this.process.on('exit', () => this.lose('the process for the database has ended'));
  }

  /**
   * Opens the file.
   * @throws ServiceError
   */
  async open(request: OpenRequest, signal: AbortSignal): Promise<void> {
    const abort = () => this.kill('the database did not open in time');
    signal.addEventListener('abort', abort);
    try {
      if (signal.aborted) abort();
      await new Promise<void>((resolve, reject) => {
        this.pending.set(0, { resolve: () => resolve(), reject, isGivenUp: false });
        if (this.ended) return reject(this.ended);
        this.process.once('message', (answer: { readonly opened: boolean; readonly reason?: string }) => {
          if (answer.opened) resolve();
          else reject(new ServiceError('unavailable', `${request.path} cannot be opened: ${answer.reason}`));
        });
        // Where it could not be started, which is what the event `error` tells, there is no channel.
        if (this.process.connected) this.process.send(request, () => undefined);
      });
      this.process.on('message', (answers: readonly Answer[]) => this.receive(answers));
    } finally {
      this.pending.delete(0);
      signal.removeEventListener('abort', abort);
    }
  }

  /**
   * Asks for something.
   * @param call that it is for: when nobody waits for it any more and it still runs, it is ended
   */
  request(operation: Operation, payload: string, call?: DriverCall): Promise<ChannelResult> {
    return new Promise((resolve, reject) => {
      if (this.ended) return reject(this.ended);
      const id = this.nextId++;
      const pending = { resolve, reject, isGivenUp: false };
      this.pending.set(id, pending);
      call?.onAbort(() => {
        pending.isGivenUp = true;
        this.endGivenUp();
      });
      if (this.outbox.push([id, operation, payload]) === 1) setImmediate(() => this.flush());
    });
  }

  /** Ends the process: by itself if nothing is under way, at once otherwise. */
  async close(): Promise<void> {
    const isIdle = this.pending.size === 0 && !this.ended;
    this.ended ??= new ServiceError('unavailable', 'the database was closed');
    clearTimeout(this.grace);
    const { exitCode, signalCode, connected } = this.process;
    if (this.process.pid === undefined || exitCode !== null || signalCode !== null) return;
    const exit = once(this.process, 'exit');
    if (isIdle && connected) {
      const timeout = setTimeout(() => this.process.kill('SIGKILL'), CLOSE_TIMEOUT_MS);
      this.process.disconnect();
      await exit;
      clearTimeout(timeout);
    } else {
      this.process.kill('SIGKILL');
      await exit;
    }
    this.rejectAll(this.ended);
  }

  private flush(): void {
    const requests = this.outbox;
    this.outbox = [];
    // What could not be sent is answered when the process ends.
    if (this.process.connected) this.process.send(requests, () => undefined);
  }

  private receive(answers: readonly Answer[]): void {
    for (const answer of answers) {
      const pending = this.pending.get(answer[0]);
      this.pending.delete(answer[0]);
      if (answer[1] === 'ok') {
        pending?.resolve({ text: answer[2], rowsAffected: answer[3], lastInsertId: answer[4] });
      } else {
        const error = new ServiceError(answer[1], answer[2]);
        pending?.reject(error);
      }
    }
    // The next one runs now.
    this.endGivenUp();
  }

  /** Ends the statement that runs if nobody waits for it, unless it is over in a moment: waiting its turn does no harm. */
  private endGivenUp(): void {
    const [running] = this.pending.values();
    if (!running?.isGivenUp || this.grace) return;
    this.grace = setTimeout(() => {
      this.grace = undefined;
      const [first] = this.pending.values();
      if (first === running) this.kill(ENDLESS);
      else this.endGivenUp();
    }, GRACE_MS);
  }

  private kill(reason: string): void {
    this.process.kill('SIGKILL');
    this.lose(reason);
  }

  private lose(reason: string): void {
    clearTimeout(this.grace);
    if (this.ended) {
      this.rejectAll(this.ended);
      return;
    }
    this.ended = new ServiceError('unavailable', reason);
    this.rejectAll(this.ended);
    this.onLost(this.ended);
  }

  private rejectAll(error: ServiceError): void {
    for (const { reject } of this.pending.values()) reject(error);
    this.pending.clear();
  }
}
