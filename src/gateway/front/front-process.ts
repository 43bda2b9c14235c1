/**
 * One process of the front, the native program that serves the public port: its start, the messages to and from it, and
 * its end. It ends by itself when this process has ended, because then the channel between them is closed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { isolatedEnvironment } from '../../config.js';
import type { FromFront, FrontAnswer } from '../../contracts/front.js';
import { launched, ownProgram } from '../../sandbox/launcher.js';
import { readLines } from '../../util/lines.js';
import { FRONT_USER, HAS_UNTRUSTED_USERS, UNTRUSTED_USERS } from '../../util/untrusted-users.js';
import type { Configure, FrontNotice, FrontReport, FrontRequest, FrontSettings } from './messages.js';
import type { PublicSockets } from './public-socket.js';

const programAt = (name: string) => fileURLToPath(new URL(`../../../native/${name}`, import.meta.url));
const PROGRAM = programAt('gateway-front');
/** The same with TLS. */
const PROGRAM_WITH_TLS = programAt('gateway-front-tls');
/** The descriptor of the channel in the process; the next ones are those of the sockets. */
const CHANNEL = 3;
/** A process that is being stopped is killed after this: later than it ends by itself. */
const STOP_LIMIT_MS = 40_000;

/** How a process has ended. */
export interface FrontEnd {
  readonly code: number | null;
  readonly signal: string | null;
  /** Why it could not be started. */
  readonly error?: Error;
}

export class FrontProcess {
  readonly startedAt = performance.now();
  /** Resolves when it has ended, and all that it said has been received. */
  readonly ended: Promise<FrontEnd>;
  readonly #child: ChildProcess;
  readonly #channel: Duplex | null | undefined;
  readonly #report: (report: FrontReport) => void;
  readonly #unanswered = new Map<number, (answer: FrontAnswer | undefined) => void>();
  #lastSeq = 0;
  #hasEnded = false;
  #isStopping = false;

  /**
   * Starts it. A failure of the system to do so is an end.
   * @param report called with what it reports unasked
   * @throws Error when the program was not built
   */
  constructor(
    { plain, secure }: PublicSockets,
    settings: FrontSettings,
    report: (report: FrontReport) => void,
  ) {
    const program = secure ? PROGRAM_WITH_TLS : PROGRAM;
    if (!existsSync(program)) throw new Error(`there is no ${program}: run \`npm run build\``);
    this.#report = report;
    const stdio = ['ignore', 'inherit', 'inherit', 'pipe', plain.fd, ...(secure ? [secure.fd] : [])] as const;
    const [launcher, launcherArguments] = launchedFront(program, stdio.length);
    this.#child = spawn(launcher, launcherArguments, { stdio: [...stdio], env: isolatedEnvironment() });
    this.ended = new Promise((resolve) => {
      const end = (how: FrontEnd) => {
        this.#hasEnded = true;
        for (const answer of this.#unanswered.values()) answer(undefined);
        this.#unanswered.clear();
        resolve(how);
      };
      // Also when it cannot be killed; then it has not ended.
      this.#child.on('error', (error) => {
        if (this.#child.pid === undefined) end({ code: null, signal: null, error });
      });
      // Not `exit`: what it said last may not have been read by then.
      this.#child.once('close', (code, signal) => end({ code, signal }));
    });
    // Without a free file descriptor there are no streams at all.
    this.#channel = this.#child.stdio?.[CHANNEL] as Duplex | null | undefined;
    if (this.#channel) readLines(this.#channel, (line) => this.#receive(JSON.parse(line) as FromFront));
    // It has ended, which others are told.
    this.#channel?.on('error', () => undefined);
    this.#write({ type: 'configure', ...settings });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether it was told to finish its requests. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** @returns the answer, or undefined when the process has ended before it answered */
  request(request: FrontRequest): Promise<FrontAnswer | undefined> {
    return new Promise((resolve) => {
      if (this.#hasEnded) {
        resolve(undefined);
        return;
      }
      const seq = ++this.#lastSeq;
      this.#unanswered.set(seq, resolve);
      this.#write({ ...request, seq });
    });
  }

  /** Tells it something that has no answer. */
  tell(message: FrontNotice): void {
    if (!this.#hasEnded) this.#write(message);
  }

  /** Lets it finish its requests; resolves when it has ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const limit = setTimeout(() => this.kill(), STOP_LIMIT_MS);
    await this.request({ type: 'stop' });
    await this.ended;
    clearTimeout(limit);
  }

  /** Ends it with all its connections. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #write(message: Configure | FrontNotice | (FrontRequest & { readonly seq: number })): void {
    if (this.#channel?.writable) this.#channel.write(`${JSON.stringify(message)}\n`);
  }

  #receive(message: FromFront): void {
    if (message.type !== 'done') {
      this.#report(message);
      return;
    }
    const answer = this.#unanswered.get(message.seq);
    this.#unanswered.delete(message.seq);
    answer?.(message);
  }
}

/** As root, it is another user, for whom the launcher connects to handlers. @param streams its descriptors */
function launchedFront(program: string, streams: number): [string, string[]] {
  if (!HAS_UNTRUSTED_USERS) return launched(ownProgram(streams, null), program, []);
  const identity = { user: FRONT_USER, group: FRONT_USER, groups: [] };
  return launched(ownProgram(streams, identity, UNTRUSTED_USERS), program, [String(streams)]);
}
