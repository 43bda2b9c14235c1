/**
 * Ends connections of clients that send or take too slowly to be waited for. A server waits for a client `patienceMs`,
 * and longer the more bytes have come or gone meanwhile. Time in which it is the server that does not read, or has
 * nothing to send, does not count.
 */
import type { Socket } from 'node:net';
import type { AwaitedRequest, HttpServer } from './unread-body.js';

/** How long a server waits for its clients. */
export interface Patience {
  /** While nothing comes, or goes, milliseconds. */
  readonly patienceMs: number;
  /** Each of these bytes prolongs the wait, to a second for as many. */
  readonly minBytesPerSecond: number;
}

interface Connection {
  /** The body that is on its way. */
  incoming: AwaitedRequest | undefined;
  waitedForBodyMs: number;
  readAtStart: number;
  waitedForReaderMs: number;
  sentAtStart: number;
}

/** Node has no public way to ask how much of what was written has left the process. */
interface Handle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

const LOOK_EVERY_MS = 1_000;

/** Looks after the connections of one server. */
export class Pace {
  readonly #connections = new Map<Socket, Connection>();

  constructor(
    server: HttpServer,
    private readonly patience: Patience,
    private readonly tooSlow: (socket: Socket) => void,
  ) {
    server.on('connection', (socket: Socket) => {
      this.#connections.set(socket, {
        incoming: undefined,
        waitedForBodyMs: 0,
        readAtStart: 0,
        waitedForReaderMs: 0,
        sentAtStart: 0,
      });
      socket.once('close', () => this.#connections.delete(socket));
    });
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      // Not what the clock says when this process was busy with other things: the client could do nothing about that.
      this.#look(Math.min(now - last, 2 * LOOK_EVERY_MS));
      last = now;
    }, LOOK_EVERY_MS).unref();
    server.once('close', () => clearInterval(timer));
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** A body begins to arrive. */
  expectBody(request: AwaitedRequest): void {
    const connection = this.#connections.get(request.socket);
    if (!connection) return;
    connection.incoming = request;
    connection.waitedForBodyMs = 0;
    connection.readAtStart = request.socket.bytesRead;
  }

  #look(passedMs: number): void {
    for (const [socket, connection] of this.#connections) {
      if (this.#isReaderSlow(socket, connection, passedMs)) socket.destroy();
      else if (connection.incoming && this.#isSenderSlow(socket, connection, connection.incoming, passedMs)) {
        connection.incoming = undefined;
        this.tooSlow(socket);
      }
    }
  }

  #isSenderSlow(socket: Socket, connection: Connection, request: AwaitedRequest, passedMs: number): boolean {
    if (request.complete) {
      connection.incoming = undefined;
      return false;
    }
    if (request.askWith || request.isPaused() || request.readableLength >= request.readableHighWaterMark)
      return false;
    connection.waitedForBodyMs += passedMs;
    return this.#isOver(connection.waitedForBodyMs, socket.bytesRead - connection.readAtStart);
  }

  #isReaderSlow(socket: Socket, connection: Connection, passedMs: number): boolean {
    const handle = (socket as { _handle?: Handle | null })._handle;
    if (!handle) return false;
    const sent = handle.bytesWritten - handle.writeQueueSize;
    if (socket.writableLength === 0) {
      connection.waitedForReaderMs = 0;
      connection.sentAtStart = sent;
      return false;
    }
    connection.waitedForReaderMs += passedMs;
    return this.#isOver(connection.waitedForReaderMs, sent - connection.sentAtStart);
  }

  #isOver(waitedMs: number, bytes: number): boolean {
    const { patienceMs, minBytesPerSecond } = this.patience;
    return waitedMs > patienceMs + (bytes / minBytesPerSecond) * 1_000;
  }
}
