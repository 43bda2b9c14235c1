/**
 * One run of the process of a service, as the actor host sees it: requests, the memory limit, and its end. A process
 * that does not answer is killed.
 */
import { ServiceError } from '../service-error.js';
import type { FromService, ServiceAnswer, ServiceRequest, ToService } from './messages.js';
import type { StartedProcess, Starter, ToStart } from './starter.js';

const PING_MS = 1_000;
/** So many pings without an answer mean that it does not answer any more. */
const MAX_UNANSWERED = 3;
/** Time until its first answer, on a machine with much to do. */
const START_TIMEOUT_MS = 30_000;

/** Who is told what a process says unasked. */
export interface ServiceProcessListener {
  onMessage(message: Exclude<FromService, { type: 'answer' | 'failed' }>): void;
  /** Called once. @param reason why it has ended */
  onEnd(reason: string): void;
}

interface PendingAnswer {
  resolve(answer: ServiceAnswer): void;
  reject(error: ServiceError): void;
}

export class ServiceProcess {
  readonly #memoryMb: number;
  readonly #listener: ServiceProcessListener;
  readonly #process: StartedProcess;
  /** Resolves with the name of the folders of its sockets, if it serves; rejects with a ServiceError. */
  readonly started: Promise<string | undefined>;
  #onEnded: () => void = () => undefined;
  readonly #ended = new Promise<void>((resolve) => {
    this.#onEnded = resolve;
  });
  #hasEnded = false;
  readonly #waiting = new Map<number, PendingAnswer>();
  #lastNumber = 0;
  readonly #startTimer: NodeJS.Timeout;
  #pings: NodeJS.Timeout | undefined;
  #unanswered = 0;
  /** Why it has ended, or will. */
  #reason: string | undefined;
  #pid: number | undefined;

  /** Starts it. A failure to start is an end. */
  constructor(starter: Starter, toStart: ToStart, listener: ServiceProcessListener) {
    this.#memoryMb = toStart.memoryMb;
    this.#listener = listener;
    this.#startTimer = setTimeout(() => this.kill('it did not start in time'), START_TIMEOUT_MS);
    let onStarted: (name: string | undefined) => void = () => undefined;
    let onNotStarted: (error: ServiceError) => void = () => undefined;
    this.started = new Promise((resolve, reject) => {
      [onStarted, onNotStarted] = [resolve, reject];
    });
    // Those who wait are told.
    this.started.catch(() => undefined);
    this.#process = starter.start(toStart, {
      onStarted: (pid, name) => {
        this.#pid = pid;
        onStarted(name);
      },
      onMessage: (message) => this.#receive(message),
      onEnd: (how, printed) => {
        this.#onEnd(how, printed);
        onNotStarted(this.#goneError());
      },
    });
  }

  get pid(): number | undefined {
    return this.#pid;
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
      this.#process.send(message);
    });
  }

  /** Kills it. @param reason why */
  kill(reason: string): void {
    this.#reason ??= reason;
    this.#process.kill();
  }

  /** Resolves when it has ended. */
  async ended(): Promise<void> {
    await this.#ended;
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

  #onEnd(how: string, printed: string): void {
    this.#hasEnded = true;
    clearTimeout(this.#startTimer);
    clearInterval(this.#pings);
    this.#reason ??= this.#explain(how, printed);
    for (const { reject } of this.#waiting.values()) reject(this.#goneError());
    this.#waiting.clear();
    this.#listener.onEnd(this.#reason);
    this.#onEnded();
  }

  #goneError(): ServiceError {
    return new ServiceError('unavailable', `the process of the service has ended: ${this.#reason}`);
  }

  #explain(how: string, printed: string): string {
    if (
      /heap out of memory|Array buffer allocation failed|std::bad_alloc|Allocation failed|memory allocation of/.test(
        printed,
      )
    )
      return `it needed more than ${this.#memoryMb} MiB of memory (SERVICE_MEMORY_MB)`;
    const [, error] =
      /^(?:\w*Error.*?|FATAL ERROR): (.+)$/m.exec(printed) ?? // Node
      /^thread .* panicked at .*:\n(.+)$/m.exec(printed) ?? // Rust
      // Before its first answer: what could not start it.
      (this.#pings === undefined ? /(.+)\s*$/.exec(printed) : undefined) ??
      [];
    return error === undefined ? `it ended (${how})` : `it ended (${how}): ${error.trim()}`;
  }
}
