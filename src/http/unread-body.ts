/**
 * Requests that are answered before their body has arrived. If the connection were closed at once, a client that is
 * still sending would see a reset instead of the response, so the rest of the body is read and dropped for a while
 * (lingering close).
 */
import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** How long the rest of a body is read, and the longest pause in it. */
const LINGER_MS = 30_000;
const LINGER_IDLE_MS = 1_000;

export type HttpServer = Server<typeof AwaitedRequest, typeof EarlyResponse>;

const closing = new WeakSet<Duplex>();

/** Whether the connection closes after the current response; later requests on it are ignored. */
export function isClosing(socket: Duplex): boolean {
  return closing.has(socket);
}

/** Ignores later requests on a connection. */
export function markClosing(socket: Duplex): void {
  closing.add(socket);
}

/** A request with `Expect: 100-continue` gets `100 Continue` when its body is first read, not before. */
export class AwaitedRequest extends IncomingMessage {
  /** Whether its head announces a body. */
  hasBody = false;
  /** Sends `100 Continue`; undefined if the client does not expect it. */
  continueWith: ServerResponse | undefined;

  /** Whether part of its body may still arrive. */
  get isArriving(): boolean {
    return this.hasBody && !this.complete;
  }

  override _read(size: number): void {
    const response = this.continueWith;
    this.continueWith = undefined;
    if (response && !response.headersSent) response.writeContinue();
    super._read(size);
  }
}

/** A response that may be sent before its request is complete, after which the connection is closed. */
export class EarlyResponse extends ServerResponse<AwaitedRequest> {
  #isEnding = false;

  override writeHead(...args: unknown[]): this {
    if (this.req.isArriving) {
      this.shouldKeepAlive = false;
      markClosing(this.req.socket);
    }
    return super.writeHead(...(args as Parameters<ServerResponse['writeHead']>));
  }

  override end(...args: unknown[]): this {
    if (this.#isEnding || !this.req.isArriving || this.destroyed) {
      this.#isEnding = true;
      return super.end(...(args as Parameters<ServerResponse['end']>));
    }
    this.#isEnding = true;
    const callback = args.find((argument) => typeof argument === 'function') as (() => void) | undefined;
    const [chunk, encoding] = args as [string | Uint8Array | undefined, BufferEncoding | undefined];
    if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') {
      // Tells the client that the response is complete before the connection closes.
      if (!this.headersSent) this.setHeader('Content-Length', Buffer.byteLength(chunk, encoding));
      this.write(chunk, typeof encoding === 'string' ? encoding : 'utf8');
    } else {
      this.flushHeaders();
    }
    dropBody(this.req, () => super.end(callback));
    return this;
  }
}

/** Reads and drops the rest of a body; calls `done` at its end, or after a timeout. */
function dropBody(request: IncomingMessage, done: () => void): void {
  const latest = performance.now() + LINGER_MS;
  let isOver = false;
  const over = () => {
    if (isOver) return;
    isOver = true;
    clearTimeout(idle);
    done();
  };
  const idle = setTimeout(over, LINGER_IDLE_MS);
  request.on('data', () => {
    if (performance.now() < latest) idle.refresh();
  });
  request.once('end', over).once('close', over);
  request.resume();
}

/** Closes a connection without reading more requests, once the client has stopped sending. */
export function closeLingering(socket: Socket): void {
  const latest = performance.now() + LINGER_MS;
  let read = socket.bytesRead;
  const check = setInterval(() => {
    if (socket.bytesRead === read || performance.now() > latest) socket.destroy();
    read = socket.bytesRead;
  }, LINGER_IDLE_MS);
  socket.once('close', () => clearInterval(check));
  socket.resume();
}
