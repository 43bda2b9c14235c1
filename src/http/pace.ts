/**
 * Ends connections of clients that send or take too slowly to be waited for. While a server waits for a client, it looks at
 * spans of `patienceMs`: in each, so many bytes have to come or go. Time in which it is the server that does not read, or
 * has nothing to send, does not count.
 */
import type { Socket } from 'node:net';
import type { AwaitedRequest, HttpServer } from './unread-body.js';

/** How long a server waits for its clients. */
export interface Patience {
  /** The length of one span, milliseconds. */
  readonly patienceMs: number;
  /** What has to come or go on average over a span. */
  readonly minBytesPerSecond: number;
}

/** One direction of a connection: the span that is going on. */
interface Span {
  waitedMs: number;
  /** Bytes at its beginning. */
  bytes: number;
}

interface Connection {
  /** The body that is on its way. */
  incoming: AwaitedRequest | undefined;
  readonly received: Span;
  readonly taken: Span;
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
        received: { waitedMs: 0, bytes: 0 },
        taken: { waitedMs: 0, bytes: 0 },
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
    begin(connection.received, request.socket.bytesRead);
  }

  #look(passedMs: number): void {
    for (const [socket, connection] of this.#connections) {
      // Reset: what the system holds for the client, it would offer for minutes.
      if (this.#isReaderSlow(socket, connection, passedMs)) socket.resetAndDestroy();
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
    return this.#isTooSlow(connection.received, socket.bytesRead, passedMs);
  }

  #isReaderSlow(socket: Socket, connection: Connection, passedMs: number): boolean {
    const handle = (socket as { _handle?: Handle | null })._handle;
    if (!handle) return false;
    const sent = handle.bytesWritten - handle.writeQueueSize;
    if (socket.writableLength === 0) {
      begin(connection.taken, sent);
      return false;
    }
    return this.#isTooSlow(connection.taken, sent, passedMs);
  }

  #isTooSlow(span: Span, bytes: number, passedMs: number): boolean {
    const { patienceMs, minBytesPerSecond } = this.patience;
    span.waitedMs += passedMs;
    if (span.waitedMs < patienceMs) return false;
    if (bytes - span.bytes < (span.waitedMs / 1_000) * minBytesPerSecond) return true;
    begin(span, bytes);
    return false;
  }
}

function begin(span: Span, bytes: number): void {
  span.waitedMs = 0;
  span.bytes = bytes;
}
