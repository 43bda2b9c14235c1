/**
 * Closes connections of clients that send or receive too slowly. While the server waits for a client, it counts bytes
 * over windows of `stallTimeoutMs`; in each, a minimum has to be transferred. Time in which the server itself does not
 * read, or has nothing to send, does not count.
 */
import type { Socket } from 'node:net';
import type { AwaitedRequest, HttpServer } from './unread-body.js';

export interface SlowClientLimits {
  /** The length of a window, milliseconds. */
  readonly stallTimeoutMs: number;
  /** The minimum, on average over a window. */
  readonly minBytesPerSecond: number;
}

/** The current window of one direction of a connection. */
interface Window {
  waitedMs: number;
  /** Bytes transferred before it. */
  bytes: number;
}

interface Connection {
  /** A request whose body is arriving. */
  incoming: AwaitedRequest | undefined;
  readonly received: Window;
  readonly sent: Window;
}

/** Node has no public API for how much of the written data was sent. */
interface Handle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

const CHECK_EVERY_MS = 1_000;

/** Guards the connections of one server, and counts them. */
export class SlowClientGuard {
  readonly #limits: SlowClientLimits;
  readonly #onSlowSender: (socket: Socket) => void;
  readonly #connections = new Map<Socket, Connection>();

  /** @param onSlowSender sends an error, and closes the connection; slow receivers are reset here */
  constructor(server: HttpServer, limits: SlowClientLimits, onSlowSender: (socket: Socket) => void) {
    this.#limits = limits;
    this.#onSlowSender = onSlowSender;
    server.on('connection', (socket: Socket) => {
      this.#connections.set(socket, {
        incoming: undefined,
        received: { waitedMs: 0, bytes: 0 },
        sent: { waitedMs: 0, bytes: 0 },
      });
      socket.once('close', () => this.#connections.delete(socket));
    });
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      // Bounded: time in which this process was blocked is not the client's fault.
      this.#check(Math.min(now - last, 2 * CHECK_EVERY_MS));
      last = now;
    }, CHECK_EVERY_MS).unref();
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
    restart(connection.received, request.socket.bytesRead);
  }

  #check(passedMs: number): void {
    for (const [socket, connection] of this.#connections) {
      // Reset, or the kernel would keep sending buffered data for minutes.
      if (this.#isReceiverSlow(socket, connection, passedMs)) socket.resetAndDestroy();
      else if (connection.incoming && this.#isSenderSlow(socket, connection, connection.incoming, passedMs)) {
        connection.incoming = undefined;
        this.#onSlowSender(socket);
      }
    }
  }

  #isSenderSlow(socket: Socket, connection: Connection, request: AwaitedRequest, passedMs: number): boolean {
    if (request.complete) {
      connection.incoming = undefined;
      return false;
    }
    if (request.continueWith || request.isPaused() || request.readableLength >= request.readableHighWaterMark)
      return false;
    return this.#isTooSlow(connection.received, socket.bytesRead, passedMs);
  }

  #isReceiverSlow(socket: Socket, connection: Connection, passedMs: number): boolean {
    const handle = (socket as { _handle?: Handle | null })._handle;
    if (!handle) return false;
    const sent = handle.bytesWritten - handle.writeQueueSize;
    if (socket.writableLength === 0) {
      restart(connection.sent, sent);
      return false;
    }
    return this.#isTooSlow(connection.sent, sent, passedMs);
  }

  #isTooSlow(window: Window, bytes: number, passedMs: number): boolean {
    const { stallTimeoutMs, minBytesPerSecond } = this.#limits;
    window.waitedMs += passedMs;
    if (window.waitedMs < stallTimeoutMs) return false;
    if (bytes - window.bytes < (window.waitedMs / 1_000) * minBytesPerSecond) return true;
    restart(window, bytes);
    return false;
  }
}

function restart(window: Window, bytes: number): void {
  window.waitedMs = 0;
  window.bytes = bytes;
}
