/**
 * One run of the process of a service, as the actor host sees it: requests, the memory limit, and its end. A process
 * that does not answer is killed.
 */
import type { ChildProcess } from 'node:child_process';
import { toError } from '../../errors.js';
import type { Identity } from '../../sandbox/launcher.js';
import { ServiceError } from '../service-error.js';
import { limitedProcess } from './limited-process.js';
import type { FromService, ServiceAnswer, ServiceRequest, ToService, WorkRequest } from './messages.js';
import { programOf } from './programs.js';
import type { ServicePrograms, ServiceUser } from './service-user.js';

const PING_MS = 1_000;
/** So many pings without an answer mean that it does not answer any more. */
const MAX_UNANSWERED = 3;
/** Time until its first answer, on a machine with much to do. */
const START_TIMEOUT_MS = 30_000;
/** The last that it printed, characters. */
const PRINTED = 4_096;

/** Who is told what a process says unasked. */
export interface ServiceProcessListener {
  onMessage(message: Exclude<FromService, { type: 'answer' | 'failed' }>): void;
  /** Called once. @param reason why it has ended */
  onEnd(reason: string): void;
}

interface Waiting {
  resolve(answer: ServiceAnswer): void;
  reject(error: ServiceError): void;
}

export class ServiceProcess {
  readonly #memoryMb: number;
  readonly #listener: ServiceProcessListener;
  readonly #child: ChildProcess | undefined;
  readonly #ended: Promise<void>;
  #hasEnded = false;
  readonly #waiting = new Map<number, Waiting>();
  #lastNumber = 0;
  readonly #startTimer: NodeJS.Timeout;
  #pings: NodeJS.Timeout | undefined;
  #unanswered = 0;
  /** Why it has ended, or will. */
  #reason: string | undefined;
  #printed = '';

  /**
   * Starts it. A failure to start is an end.
   * @param memoryMb its limit
   * @param user whom it runs as; undefined for the user of this process
   */
  constructor(
    service: WorkRequest['service'],
    memoryMb: number,
    user: Pick<ServiceUser, 'identity'> | undefined,
    programs: Pick<ServicePrograms, 'node'>,
    listener: ServiceProcessListener,
  ) {
    this.#memoryMb = memoryMb;
    this.#listener = listener;
    this.#startTimer = setTimeout(() => this.kill('it did not start in time'), START_TIMEOUT_MS);
    let onEnded: () => void = () => undefined;
    this.#ended = new Promise((resolve) => {
      onEnded = resolve;
    });
    const end = (how: string) => {
      if (this.#hasEnded) return;
      this.#onEnd(how);
      onEnded();
    };
    this.#child = this.#spawn(service, user?.identity, programs, end);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Asks it for something.
   * @throws ServiceError unavailable, when it ends before it answers
   */
  ask(request: ServiceRequest): Promise<ServiceAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#hasEnded) {
        reject(this.#goneError());
        return;
      }
      const message: ToService = { number: ++this.#lastNumber, request };
      this.#waiting.set(message.number, { resolve, reject });
      // Errors: it ends, which rejects the answer.
      if (this.#child?.connected) this.#child.send(message, () => undefined);
    });
  }

  /** Kills it. @param reason why */
  kill(reason: string): void {
    this.#reason ??= reason;
    this.#child?.kill('SIGKILL');
  }

  /** Resolves when it has ended. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  #spawn(
    { id, type }: WorkRequest['service'],
    identity: Identity | undefined,
    { node }: Pick<ServicePrograms, 'node'>,
    onEnd: (how: string) => void,
  ): ChildProcess | undefined {
    let child: ChildProcess;
    try {
      const program = programOf(type, id, this.#memoryMb, node);
      const stdio = ['ignore', 'ignore', 'pipe', 'ipc'] as const;
      child = limitedProcess(program, this.#memoryMb, identity, stdio);
    } catch (thrown) {
      // As if it were reported by the process, as most failures to start are.
      setImmediate(() => onEnd(toError(thrown).message));
      return undefined;
    }
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#printed = (this.#printed + text).slice(-PRINTED);
    });
    child.on('message', (message: FromService) => this.#receive(message));
    child.on('error', (error) => {
      // Also when it cannot be killed or told something; then it has not ended.
      if (child.pid === undefined) onEnd(error.message);
    });
    // After its streams are closed: what it printed last says why.
    child.once('close', (code, signal) => onEnd(signal ?? `exit code ${code}`));
    return child;
  }

  #receive(message: FromService): void {
    if (message.type === 'failed') {
      this.#reason ??= message.reason;
    } else if (message.type === 'answer') {
      this.#unanswered = 0;
      const waiting = this.#waiting.get(message.number);
      this.#waiting.delete(message.number);
      if (this.#pings === undefined) this.#startPings();
      waiting?.resolve(message.answer);
    } else if (!this.#hasEnded) {
      this.#listener.onMessage(message);
    }
  }

  #startPings(): void {
    clearTimeout(this.#startTimer);
    this.#pings = setInterval(() => {
      // Counted, not timed: while this process itself was busy, no answer could be read.
      if (this.#unanswered >= MAX_UNANSWERED) {
        this.kill(`it did not answer for ${(MAX_UNANSWERED * PING_MS) / 1000} s`);
        return;
      }
      this.#unanswered++;
      this.ask({ type: 'ping' }).catch(() => undefined); // it has ended, which others are told
    }, PING_MS);
  }

  #onEnd(how: string): void {
    this.#hasEnded = true;
    clearTimeout(this.#startTimer);
    clearInterval(this.#pings);
    this.#reason ??= this.#explain(how);
    for (const { reject } of this.#waiting.values()) reject(this.#goneError());
    this.#waiting.clear();
    this.#listener.onEnd(this.#reason);
  }

  #goneError(): ServiceError {
    return new ServiceError('unavailable', `the process of the service has ended: ${this.#reason}`);
  }

  #explain(how: string): string {
    if (
      /heap out of memory|Array buffer allocation failed|std::bad_alloc|Allocation failed|memory allocation of/.test(
        this.#printed,
      )
    )
      return `it needed more than ${this.#memoryMb} MiB of memory (SERVICE_MEMORY_MB)`;
    const [, error] =
      /^(?:\w*Error.*?|FATAL ERROR): (.+)$/m.exec(this.#printed) ?? // Node
      /^thread .* panicked at .*:\n(.+)$/m.exec(this.#printed) ?? // Rust
      // Before its first answer: what could not start it.
      (this.#pings === undefined ? /(.+)\s*$/.exec(this.#printed) : undefined) ??
      [];
    return error === undefined ? `it ended (${how})` : `it ended (${how}): ${error.trim()}`;
  }
}
