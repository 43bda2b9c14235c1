/**
 * The sockets a driver has opened, connecting ones included, so that all of them can be destroyed at once, whatever the
 * library that uses them is waiting for.
 */
import { Socket } from 'node:net';

/** A server gets this long to take what says goodbye. */
const CLOSE_TIMEOUT_MS = 500;

export class Sockets {
  private readonly open = new Set<Socket>();
  private closed = false;

  /** Nothing is to be connected any more. */
  get isClosed(): boolean {
    return this.closed;
  }

  /** Makes a socket that is not connected yet. */
  create(): Socket {
    const socket = new Socket();
    this.open.add(socket);
    socket.once('close', () => this.open.delete(socket));
    if (this.closed) socket.destroy(new Error('the service is closed'));
    return socket;
  }

  /** Closes all when what was written to them is sent, but does not wait long for that. */
  async close(): Promise<void> {
    this.closed = true;
    const closing = [...this.open].map(async (socket) => {
      const closed = new Promise((resolve) => socket.once('close', resolve));
      if (socket.connecting) socket.destroy();
      else socket.destroySoon();
      await closed;
    });
    const timeout = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS);
    await Promise.all(closing);
    clearTimeout(timeout);
  }

  /** Destroys all, and those that are made later. */
  destroy(): void {
    this.closed = true;
    for (const socket of this.open) socket.destroy();
  }
}
