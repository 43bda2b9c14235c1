/** Follows work at the gateway, over connections that break and while the API is started again. */
import { setTimeout as delay } from 'node:timers/promises';
import { CONNECTION_LOST } from './client.js';
import { CliError, InterruptError } from './errors.js';
import type { ServerEvent } from './server-events.js';
import type { Session } from './session.js';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** An API that is started again answers much earlier. */
const AWAY_LIMIT_MS = 120_000;

/** Decides whether another try can help, and waits before it: longer each time, until the API answers. */
export class Retries {
  readonly #session: Session;
  readonly #limitMs: number;
  #pause = FIRST_PAUSE_MS;
  /** Undefined until the API has answered for the first time: an API that was never there is not waited for. */
  #answeredAt: number | undefined;

  /** @param limitMs for how long the API may be away */
  constructor(session: Session, limitMs = Number.POSITIVE_INFINITY) {
    this.#session = session;
    this.#limitMs = limitMs;
  }

  /** To be called whenever the API has answered. */
  answered(): void {
    this.#answeredAt = Date.now();
    this.#pause = FIRST_PAUSE_MS;
  }

  /** Whether another try can help after this error. */
  canHelp(thrown: unknown): boolean {
    if (!(thrown instanceof CliError) || thrown instanceof InterruptError) return false;
    const { code, status } = thrown.facts;
    // It had begun to answer.
    if (code === CONNECTION_LOST) this.#answeredAt ??= Date.now();
    if (this.#answeredAt === undefined || Date.now() - this.#answeredAt > this.#limitMs) return false;
    return status === undefined || status >= 500;
  }

  async pause(): Promise<void> {
    const { signal, out } = this.#session;
    out.progress('The connection is lost; trying again');
    await delay(this.#pause, undefined, { signal }).catch(() => {
      throw new InterruptError();
    });
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }
}

/**
 * Follows work that has begun.
 * @param work.look asks what has become of it; undefined until it has ended
 * @param work.events its events after the one with this id, until it or the process that serves them ends
 * @param hint for the error: what becomes of the work when the API stays away
 */
export async function followToEnd<T>(
  session: Session,
  work: {
    look(): Promise<T | undefined>;
    events(last: string | undefined): AsyncIterable<ServerEvent>;
    show(event: ServerEvent): void;
  },
  hint: string,
): Promise<T> {
  const retries = new Retries(session, AWAY_LIMIT_MS);
  retries.answered();
  for (let last: string | undefined; ; ) {
    try {
      const ended = await work.look();
      if (ended !== undefined) return ended;
      retries.answered();
      for await (const event of work.events(last)) {
        last = event.id ?? last;
        retries.answered();
        work.show(event);
      }
    } catch (thrown) {
      if (!retries.canHelp(thrown)) throw withHint(thrown, hint);
      await retries.pause();
    }
  }
}

function withHint(thrown: unknown, hint: string): unknown {
  if (!(thrown instanceof CliError) || thrown instanceof InterruptError) return thrown;
  return new CliError(thrown.message, { ...thrown.facts, hint }, thrown.exitCode);
}
