/**
 * The sockets a driver has opened, connecting ones included, so that all of them can be destroyed at once, whatever the
 * library that uses them is waiting for.
 */
import { Socket } from 'node:net';

export class Sockets {
  private readonly open = new Set<Socket>();
  private closed = false;

  /** Makes a socket that is not connected yet. */
  create(): Socket {
    const socket = new Socket();
    this.open.add(socket);
    socket.once('close', () => this.open.delete(socket));
    if (this.closed) socket.destroy(new Error('the service is closed'));
    return socket;
  }

  /** Destroys all, and those that are made later. */
  destroy(): void {
    this.closed = true;
    for (const socket of this.open) socket.destroy();
  }
}
