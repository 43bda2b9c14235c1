/**
 * A front's connection to one handler process: many requests in flight, frames of one turn of the event loop in one
 * write, deadlines.
 */
import { connect, type Socket } from 'node:net';
import { FrameDecoder, FrameEncoder } from '../wire/codec.js';
import { parseResponseHead, type ResponseHead } from '../wire/messages.js';

/** A request in a handler, waiting to be answered exactly once. */
export interface Exchange {
  /** In the time of `performance.now()`. */
  readonly deadline: number;
  respond(head: ResponseHead, body: Buffer): void;
  /** The handler broke off: it died, or answered nonsense. */
  broken(reason: string): void;
  expired(): void;
}

const MAX_REQUEST_NUMBER = 0xffff_ffff;

/**
 * Connects to a handler.
 * @param onStuck called when a request ran over its deadline
 */
export function connectHandler(socketPath: string, onStuck: () => void): Promise<HandlerConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(new HandlerConnection(socket, onStuck));
    });
  });
}

/** An open connection. Once closed it stays closed. */
export class HandlerConnection {
  readonly #encoder = new FrameEncoder();
  readonly #decoder = new FrameDecoder();
  /** In the order of sending, which is the order of deadlines, as all requests are given the same time. */
  readonly #pending = new Map<number, Exchange>();
  #nextNumber = 1;
  #flushScheduled = false;
  #isOpen = true;
  #onIdle: (() => void) | undefined;
  // Handlers mostly answer with the same head again and again; parsing it once is enough.
  #lastHeadText = '';
  #lastHead: ResponseHead | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly onStuck: () => void,
  ) {
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', () => undefined); // 'close' follows and says all there is to say
    socket.on('close', () => this.#close('the handler process ended'));
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get inFlight(): number {
    return this.#pending.size;
  }

  /**
   * Sends a request; the exchange hears of the answer.
   * @throws ProtocolError when head or body is over the limit of a frame
   */
  send(head: string, body: Uint8Array, exchange: Exchange): void {
    const number = this.#nextNumber;
    this.#encoder.add('request', number, head, body);
    this.#nextNumber = number === MAX_REQUEST_NUMBER ? 1 : number + 1;
    this.#pending.set(number, exchange);
    if (!this.#flushScheduled) {
      this.#flushScheduled = true;
      // After the poll phase: by then, every request that has arrived in this turn is in the buffer.
      setImmediate(this.#flush);
    }
  }

  /** Fails the requests whose deadline has passed. */
  expire(now: number): void {
    for (const [number, exchange] of this.#pending) {
      if (exchange.deadline > now) return;
      this.#pending.delete(number);
      exchange.expired();
      this.onStuck();
    }
    this.#reportIdle();
  }

  /** Resolves as soon as nothing is in flight. No request may be sent any more. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#reportIdle();
    });
  }

  close(): void {
    this.socket.end();
  }

  #flush = (): void => {
    this.#flushScheduled = false;
    if (this.#isOpen && !this.#encoder.isEmpty) this.socket.write(this.#encoder.take());
  };

  #receive(chunk: Buffer): void {
    try {
      for (const { kind, number, head, body } of this.#decoder.push(chunk)) {
        if (kind !== 'response') throw new Error('the handler sent a request');
        const pending = this.#pending.get(number);
        // Its deadline passed before the answer came.
        if (!pending) continue;
        const parsed = this.#parseHead(head);
        this.#pending.delete(number);
        pending.respond(parsed, body);
      }
    } catch (error) {
      this.#close(
        `the handler does not keep to the protocol: ${error instanceof Error ? error.message : String(error)}`,
      );
      this.socket.destroy();
    }
    this.#reportIdle();
  }

  #parseHead(text: string): ResponseHead {
    if (this.#lastHead === undefined || text !== this.#lastHeadText) {
      this.#lastHead = parseResponseHead(text);
      this.#lastHeadText = text;
    }
    return this.#lastHead;
  }

  #close(reason: string): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const broken = [...this.#pending.values()];
    this.#pending.clear();
    for (const exchange of broken) exchange.broken(reason);
    this.#reportIdle();
  }

  #reportIdle(): void {
    if (this.#pending.size > 0 || !this.#onIdle) return;
    const onIdle = this.#onIdle;
    this.#onIdle = undefined;
    onIdle();
  }
}
