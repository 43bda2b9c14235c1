/** A few sessions of one server, each used by one call at a time. They are opened when they are needed. */
import { ServiceError } from '../service-error.js';
import type { FileSession, OpenSession } from './ftp-session.js';

/** A session that has rested for longer may have been closed by the server: it is asked before it is used. */
const FRESH_MS = 5_000;

export class SessionPool {
  readonly #open: OpenSession;
  readonly #idle: { readonly session: FileSession; readonly since: number }[] = [];
  readonly #used = new Set<FileSession>();
  /** Breaks off sessions that are being opened. */
  readonly #closing = new AbortController();

  constructor(open: OpenSession) {
    this.#open = open;
  }

  /** Uses a session alone. When the signal is aborted, the session is closed, and whatever it does fails. */
  async use<T>(work: (session: FileSession) => Promise<T>, signal: AbortSignal): Promise<T> {
    const session = await this.#take(signal);
    const close = () => session.close();
    signal.addEventListener('abort', close, { once: true });
    try {
      return await work(session);
    } catch (thrown) {
      // Who knows what state it is in, unless the server said no in so many words.
      if (!(thrown instanceof ServiceError) || thrown.kind === 'unavailable') session.close();
      throw thrown;
    } finally {
      signal.removeEventListener('abort', close);
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
      if (session.isOpen && (Date.now() - since < FRESH_MS || (await answers(session)))) return session;
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

async function answers(session: FileSession): Promise<boolean> {
  return session.check().then(
    () => true,
    () => false,
  );
}
