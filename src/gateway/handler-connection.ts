/**
 * A front's connection to one handler process: many requests in flight, frames of one turn of the event loop in one
 * write, deadlines.
 */
import { connect, type Socket } from 'node:net';
import { FrameDecoder, FrameEncoder } from '../wire/codec.js';
import { parseResponseHead, type ResponseHead } from '../wire/messages.js';
import { InFlight } from './in-flight.js';

/** A request in a handler, waiting to be answered exactly once. */
export interface Exchange {
  /** In the time of `performance.now()`. */
  readonly deadline: number;
  /** The body's bytes may be used only until this returns. */
  respond(head: ResponseHead, body: Buffer): void;
  /** The handler broke off: it died, or answered nonsense. */
  broken(reason: string): void;
  expired(): void;
  /** The connection closed before the request was sent: no handler has seen it. */
  unsent(): void;
}

/**
 * Connects to a handler.
 * @param onStuck called when a request ran over its deadline
 */
export function connectHandler(socketPath: string, onStuck: () => void): Promise<HandlerConnection> {
  return new Promise((resolve, reject) => {
    // Read straight into the decoder's buffer: a new one for each read would be work for the collector.
    const decoder = new FrameDecoder();
    let connection: HandlerConnection | undefined;
    const onread = {
      buffer: () => decoder.space(),
      callback: (bytes: number) => {
        connection?.filled(bytes);
        return true;
      },
    };
    const socket = connect({ path: socketPath, onread });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      connection = new HandlerConnection(socket, decoder, onStuck);
      resolve(connection);
    });
  });
}

/** An open connection. Once closed it stays closed. */
export class HandlerConnection {
  readonly #encoder = new FrameEncoder();
  readonly #pending = new InFlight<Exchange>();
  /** Numbers of the requests that wait for the next flush. */
  readonly #unsent: number[] = [];
  #isOpen = true;
  #onIdle: (() => void) | undefined;
  // Handlers mostly answer with the same head again and again; parsing it once is enough.
  #lastHeadText = '';
  #lastHead: ResponseHead | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly decoder: FrameDecoder,
    private readonly onStuck: () => void,
  ) {
    // The first of them that comes: requests of the same turn must not be sent to a process that is gone.
    for (const event of ['end', 'error', 'close'])
      socket.on(event, () => this.#close('the handler process ended'));
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get inFlight(): number {
    return this.#pending.size;
  }

  /**
   * Sends a request; the exchange hears of the answer.
   * @returns false when too many are in flight
   * @throws ProtocolError when head or body is over the limit of a frame
   */
  send(head: string, body: Uint8Array, exchange: Exchange): boolean {
    const number = this.#pending.add(exchange);
    if (number === undefined) return false;
    try {
      this.#encoder.add('request', number, head, body);
    } catch (error) {
      this.#pending.delete(number);
      throw error;
    }
    if (this.#unsent.push(number) === 1) {
      // After the poll phase: by then, every request that has arrived in this turn is in the buffer.
      setImmediate(this.#flush);
    }
    return true;
  }

  /** Fails the requests whose deadline has passed. */
  expire(now: number): void {
    for (const exchange of this.#pending.takeIf(({ deadline }) => deadline <= now)) {
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
    this.#unsent.length = 0;
    if (!this.#isOpen || this.#encoder.isEmpty) return;
    const parts = this.#encoder.take();
    const last = parts.length - 1;
    this.socket.cork();
    for (const [at, part] of parts.entries()) {
      this.socket.write(part, at === last ? () => this.#encoder.recycle(parts) : undefined);
    }
    this.socket.uncork();
  };

  /** Takes note of bytes from the handler that were put into the decoder's space. */
  filled(bytes: number): void {
    try {
      for (const { kind, number, head, body } of this.decoder.filled(bytes)) {
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
    const unsent = this.#unsent.map((number) => {
      const exchange = this.#pending.get(number);
      this.#pending.delete(number);
      return exchange;
    });
    for (const exchange of this.#pending.takeIf(() => true)) exchange.broken(reason);
    for (const exchange of unsent) exchange?.unsent();
    this.#reportIdle();
  }

  #reportIdle(): void {
    if (this.#pending.size > 0 || !this.#onIdle) return;
    const onIdle = this.#onIdle;
    this.#onIdle = undefined;
    onIdle();
  }
}
