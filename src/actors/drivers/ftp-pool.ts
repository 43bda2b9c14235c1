/** A few sessions of one server, each used by one call at a time. They are opened when they are needed. */
import { ServiceError } from '../service-error.js';
import type { FileSession, OpenSession } from './ftp-session.js';

/** A session that has rested for longer may have been closed by the server: it is asked before it is used. */
const FRESH_MS = 5_000;

export class SessionPool {
  readonly #open: OpenSession;
  readonly #freshMs: number;
  readonly #idle: { readonly session: FileSession; readonly since: number }[] = [];
  readonly #used = new Set<FileSession>();
  /** Breaks off sessions that are being opened. */
  readonly #closing = new AbortController();

  /** @param freshMs how long a session may rest before it is asked whether it still works */
  constructor(open: OpenSession, freshMs = FRESH_MS) {
    this.#open = open;
    this.#freshMs = freshMs;
  }

  /** Uses a session alone. When the signal is aborted, the session is closed, and whatever it does fails. */
  async use<T>(work: (session: FileSession) => Promise<T>, signal: AbortSignal): Promise<T> {
    const session = await this.#take(signal);
    try {
      return await closedOnAbort(session, signal, () => work(session));
    } catch (thrown) {
      // Who knows what state it is in, unless the server said no in so many words.
      if (!(thrown instanceof ServiceError) || thrown.kind === 'unavailable') session.close();
      throw thrown;
    } finally {
      this.#give(session);
    }
  }

  close(): void {
    this.#closing.abort();
    for (const { session } of this.#idle.splice(0)) session.close();
    for (const session of this.#used) session.close();
  }

  async #take(signal: AbortSignal): Promise<FileSession> {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
      const { session, since } = idle;
      this.#used.add(session);
      if (session.isOpen && (Date.now() - since < this.#freshMs || (await answers(session, signal))))
        return session;
      session.close();
      this.#used.delete(session);
    }
    const session = await this.#open(AbortSignal.any([signal, this.#closing.signal]));
    this.#used.add(session);
    // Closed while it was being opened.
    if (this.#closing.signal.aborted) session.close();
    return session;
  }

  #give(session: FileSession): void {
    this.#used.delete(session);
    if (session.isOpen && !this.#closing.signal.aborted) this.#idle.push({ session, since: Date.now() });
    else session.close();
  }
}

async function answers(session: FileSession, signal: AbortSignal): Promise<boolean> {
  return closedOnAbort(session, signal, () => session.check()).then(
    () => true,
    () => false,
  );
}

async function closedOnAbort<T>(
  session: FileSession,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const close = () => session.close();
  if (signal.aborted) close();
  signal.addEventListener('abort', close, { once: true });
  try {
    return await work();
  } finally {
    signal.removeEventListener('abort', close);
  }
}
