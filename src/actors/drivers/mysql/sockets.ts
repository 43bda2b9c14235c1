/**
 * The sockets of a driver, including those that are connecting, so that all can be destroyed at once, whatever state
 * the client library is in.
 */
import { Socket } from 'node:net';

/** How long closing waits for pending writes, such as the termination message. */
const CLOSE_TIMEOUT_MS = 500;

export class Sockets {
  readonly #open = new Set<Socket>();
  #closed = false;

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Creates a socket that is not connected yet. */
  create(): Socket {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    if (this.#closed) socket.destroy(new Error('the service is closed'));
    return socket;
  }

  /** Closes all sockets after their pending writes, or after a short timeout. */
  async close(): Promise<void> {
    this.#closed = true;
    const closing = [...this.#open].map(async (socket) => {
      const closed = new Promise((resolve) => socket.once('close', resolve));
      if (socket.connecting) socket.destroy();
      else socket.destroySoon();
      await closed;
    });
    const timeout = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS);
    await Promise.all(closing);
    clearTimeout(timeout);
  }

  /** Destroys all sockets; those created later are destroyed too. */
  destroy(): void {
    this.#closed = true;
    for (const socket of this.#open) socket.destroy();
  }
}
