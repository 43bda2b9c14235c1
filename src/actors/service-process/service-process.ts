/**
 * One run of the process of a service, as the actor host sees it: messages, the memory limit, and its end. A process
 * that does not answer is killed. `src/processes/service.ts` is the program.
 */
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { limitedNode } from './limited-node.js';
import type { FromService, ToService } from './messages.js';

const PROGRAM = fileURLToPath(new URL('../../processes/service.js', import.meta.url));
/**
 * For an idle service that takes 15 MiB instead of 30: a small young generation, machine code only for what is used
 * much, and no threads for them.
 */
const FLAGS = ['--max-semi-space-size=1', '--optimize-for-size', '--v8-pool-size=0'];
const PING_MS = 1_000;
/** So many pings without an answer mean that it does not answer any more. */
const MAX_UNANSWERED = 3;
/** Time until it can answer, on a machine with much to do. */
const START_TIMEOUT_MS = 30_000;
/** The last that it printed, characters. */
const PRINTED = 4_096;

/** Who is told what a process says. */
export interface ServiceProcessListener {
  onMessage(message: FromService): void;
  /** @param reason why, unless `end` was called */
  onEnd(reason: string): void;
}

export class ServiceProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #memoryMb: number;
  #isStarted = false;
  /** Until it has started: what it is told then. */
  #waiting: ToService[] = [];
  #unanswered = 0;
  #pings: NodeJS.Timeout | undefined;
  /** Why it has ended, or will. */
  #reason: string | undefined;
  #printed = '';

  /**
   * Starts it.
   * @param id of the service, for the list of processes
   * @param memoryMb its limit
   */
  constructor(id: string, memoryMb: number, listener: ServiceProcessListener) {
    this.#memoryMb = memoryMb;
    this.#child = limitedNode(
      [PROGRAM, id],
      { memoryMb, fileMb: 0 },
      [...FLAGS, `--max-old-space-size=${memoryMb}`],
      {
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      },
    );
    const starting = setTimeout(() => this.kill('it did not start in time'), START_TIMEOUT_MS);
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#printed = (this.#printed + text).slice(-PRINTED);
    });
    this.#child.on('message', (message: FromService) => {
      // A process that is being killed says nothing that matters any more.
      if (this.#reason !== undefined && message.type !== 'failed') return;
      if (message.type === 'pong') this.#unanswered = 0;
      else if (message.type === 'failed') this.#reason ??= message.reason;
      else if (message.type === 'started') {
        clearTimeout(starting);
        this.#onStarted();
      } else listener.onMessage(message);
    });
    this.#ended = new Promise((resolve) => {
      const onEnd = (how: string) => {
        clearTimeout(starting);
        clearInterval(this.#pings);
        listener.onEnd(this.#reason ?? this.#explain(how));
        resolve();
      };
      this.#child.once('error', (error) => {
        // Also when it cannot be killed or told something; then it has not ended.
        if (this.#child.pid === undefined) onEnd(error.message);
      });
      // After its streams are closed: what it printed last says why.
      this.#child.once('close', (code, signal) => onEnd(signal ?? `exit code ${code}`));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Tells it something; ignored when it has ended. */
  send(message: ToService): void {
    if (!this.#isStarted) this.#waiting.push(message);
    // Errors: it ends, which `close` reports.
    else if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  /** Kills it. @param reason why */
  kill(reason: string): void {
    this.#reason ??= reason;
    this.#child.kill('SIGKILL');
  }

  /** Resolves when it has ended. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  #onStarted(): void {
    this.#isStarted = true;
    for (const message of this.#waiting.splice(0)) this.send(message);
    this.#pings = setInterval(() => {
      if (!this.#child.connected) return;
      // Counted, not timed: while this process itself was busy, no answer could be read.
      if (this.#unanswered >= MAX_UNANSWERED) {
        this.kill(`it did not answer for ${(MAX_UNANSWERED * PING_MS) / 1000} s`);
        return;
      }
      this.#unanswered++;
      this.send({ type: 'ping' });
    }, PING_MS);
  }

  #explain(how: string): string {
    if (
      /heap out of memory|Array buffer allocation failed|std::bad_alloc|Allocation failed/.test(this.#printed)
    )
      return `it needed more than ${this.#memoryMb} MiB of memory (SERVICE_MEMORY_MB)`;
    const [, error] = /^(?:\w*Error.*?|FATAL ERROR): (.+)$/m.exec(this.#printed) ?? [];
    return error === undefined ? `it ended (${how})` : `it ended (${how}): ${error.trim()}`;
  }
}
