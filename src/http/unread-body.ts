/**
 * Bodies that nobody reads. A client that is still sending when its connection is closed would see a failure instead of
 * the answer: the rest is taken off the connection for a while, whatever closes it.
 */
import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** How long the rest of a body is read that nobody wants, and how long nothing of it may come. */
const LINGER_MS = 30_000;
const LINGER_IDLE_MS = 1_000;

/** A server of these. */
export type HttpServer = Server<typeof AwaitedRequest, typeof EarlyResponse>;

const closing = new WeakSet<Duplex>();

/** Whether the connection closes after an answer that is under way: what comes after it is not looked at. */
export function isClosing(socket: Duplex): boolean {
  return closing.has(socket);
}

/** Says that what comes on a connection from now on is not to be looked at. */
export function markClosing(socket: Duplex): void {
  closing.add(socket);
}

/** A request whose body is asked for (`Expect: 100-continue`) once somebody wants it, and not before. */
export class AwaitedRequest extends IncomingMessage {
  /** Whether its head announces a body. */
  hasBody = false;
  /** What to ask with, while the client waits for that. */
  askWith: ServerResponse | undefined;

  /** Whether some of its body may still be on its way. */
  get isArriving(): boolean {
    return this.hasBody && !this.complete;
  }

  override _read(size: number): void {
    const response = this.askWith;
    this.askWith = undefined;
    if (response && !response.headersSent) response.writeContinue();
    super._read(size);
  }
}

/** An answer that may come before its request has arrived completely; the connection is closed after such a one. */
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
      // What the client waits for before it knows that the answer is complete.
      if (!this.headersSent) this.setHeader('Content-Length', Buffer.byteLength(chunk, encoding));
      this.write(chunk, typeof encoding === 'string' ? encoding : 'utf8');
    } else {
      this.flushHeaders();
    }
    dropBody(this.req, () => super.end(callback));
    return this;
  }
}

/** Reads what is left of a body, for a while; calls `done` when it has ended, or is given up. */
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

/** Closes a connection on which nothing can be read as a request any more, once the client has stopped sending. */
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
