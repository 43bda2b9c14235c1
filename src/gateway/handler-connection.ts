/**
 * A front's connection to one handler process: many requests in flight, frames of one turn of the event loop in one
 * write, deadlines.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import { toError } from '../errors.js';
import type { MemoryBudget } from '../memory-budget.js';
import { type Frame, FrameDecoder, FrameEncoder, ProtocolError } from '../wire/codec.js';
import { parseResponseHead, type ResponseHead } from '../wire/messages.js';
import { InFlight } from './in-flight.js';

/** A request in a handler, waiting to be answered exactly once. */
export interface Exchange {
  /** In the time of `performance.now()`. */
  readonly deadline: number;
  /** The body's bytes may be used only until this returns, unless they are memory of its own. */
  respond(head: ResponseHead, body: Buffer, ownsBody: boolean): void;
  /** The handler broke off: it died, or answered nonsense. */
  broken(reason: string): void;
  expired(): void;
  /** The connection closed before the request was sent: no handler has seen it. */
  unsent(): void;
}

/** What is told of a connection. */
export interface ConnectionEvents {
  /** A request ran over its deadline. */
  stuck(): void;
  /** It is of no more use, for this reason; its requests have been told. */
  lost(reason: string): void;
}

/** A head beyond this is more than any client takes, and work to read. */
const MAX_RESPONSE_HEAD_CHARACTERS = 64 * 1024;

/**
 * Connects to a handler.
 * @param memory for answers that have not arrived completely
 */
export function connectHandler(
  socketPath: string,
  memory: MemoryBudget,
  events: ConnectionEvents,
): Promise<HandlerConnection> {
  return new Promise((resolve, reject) => {
    // Read straight into the decoder's buffer: a new one for each read would be work for the collector.
    const decoder = new FrameDecoder();
    let connection: HandlerConnection | undefined;
    const onread = {
      buffer: () => {
        const space = decoder.space();
        connection?.giveBack();
        return space;
      },
      // Not read any further when the answer is false.
      callback: (bytes: number) => connection?.filled(bytes) ?? true,
    };
    const place = openSocketFile(socketPath);
    const socket = connect({ path: `/proc/self/fd/${place}`, onread });
    const leavePlace = () => {
      socket.off('connect', leavePlace).off('error', leavePlace);
      closeSync(place);
    };
    socket.once('connect', leavePlace).once('error', leavePlace);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      connection = new HandlerConnection(socket, decoder, memory, events);
      resolve(connection);
    });
  });
}

/** Not in Node's constants: opens a place in the file system, not what is there. */
const O_PATH = 0o10000000;

/**
 * Opens a socket's place, so that it is certain what is connected to: its folder belongs to the handler, which may have
 * put a link there to a socket that it cannot reach itself.
 */
function openSocketFile(path: string): number {
  const folder = openSync(dirname(path), O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const place = openSync(`/proc/self/fd/${folder}/${basename(path)}`, O_PATH | constants.O_NOFOLLOW);
    if (fstatSync(place).isSocket()) return place;
    closeSync(place);
  } finally {
    closeSync(folder);
  }
  throw new Error('where its socket should be is something else');
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
  /** Requests that ran over their deadline and may still be answered. */
  #expired = 0;
  /** What the decoder holds of the memory. */
  #held = 0;
  /** Reading waits for memory. */
  #isPaused = false;

  constructor(
    private readonly socket: Socket,
    private readonly decoder: FrameDecoder,
    private readonly memory: MemoryBudget,
    private readonly events: ConnectionEvents,
  ) {
    // The first of them that comes: requests of the same turn must not be sent to a process that is gone.
    for (const event of ['end', 'error', 'close'])
      socket.on(event, () => this.#close('it closed its connection with the gateway'));
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

  /** Fails the requests whose deadline has passed, and goes on reading when that had to wait for memory. */
  expire(now: number): void {
    if (this.#isPaused && this.#holdUnfinished()) {
      this.#isPaused = false;
      this.socket.resume();
    }
    for (const exchange of this.#pending.takeIf(({ deadline }) => deadline <= now)) {
      this.#expired++;
      exchange.expired();
      this.events.stuck();
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

  /**
   * Takes note of bytes from the handler that were put into the decoder's space.
   * @returns false when there is no room for more; `expire` looks whether there is some again
   */
  filled(bytes: number): boolean {
    try {
      const frames = this.decoder.filled(bytes);
      // Large ones are memory of their own now.
      this.giveBack();
      for (const frame of frames) this.#answered(frame);
    } catch (error) {
      this.#close(`it does not keep to the protocol: ${toError(error).message}`);
      this.socket.destroy();
    }
    this.#reportIdle();
    this.#isPaused = this.#isOpen && !this.#holdUnfinished();
    return !this.#isPaused;
  }

  /** The decoder may have let go of what a large answer needed. */
  giveBack(): void {
    const grown = this.decoder.grownBy;
    if (grown >= this.#held) return;
    this.memory.giveBack(this.#held - grown);
    this.#held = grown;
  }

  /** @throws ProtocolError when nothing was asked that this could be the answer to */
  #answered({ kind, number, head, body, ownsBody }: Frame): void {
    if (kind !== 'response') throw new ProtocolError('it sent a request');
    const pending = this.#pending.get(number);
    if (!pending) {
      // Its deadline passed before the answer came. Whoever sends more of them keeps the gateway from its work.
      if (this.#expired-- > 0) return;
      throw new ProtocolError('it sent an answer that was not asked for, or sent it twice');
    }
    this.#pending.delete(number);
    let parsed: ResponseHead;
    try {
      parsed = this.#parseHead(head);
    } catch (error) {
      pending.broken(`its answer cannot be used: ${toError(error).message}`);
      return;
    }
    pending.respond(parsed, body, ownsBody);
  }

  /** @returns false when there is no room for what has arrived of an answer */
  #holdUnfinished(): boolean {
    const grown = this.decoder.grownBy;
    if (grown <= this.#held) return true;
    if (!this.memory.take(grown - this.#held)) return false;
    this.#held = grown;
    return true;
  }

  #parseHead(text: string): ResponseHead {
    if (this.#lastHead === undefined || text !== this.#lastHeadText) {
      if (text.length > MAX_RESPONSE_HEAD_CHARACTERS)
        throw new Error(`its head is longer than ${MAX_RESPONSE_HEAD_CHARACTERS} characters`);
      this.#lastHead = parseResponseHead(text);
      this.#lastHeadText = text;
    }
    return this.#lastHead;
  }

  #close(reason: string): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.memory.giveBack(this.#held);
    this.#held = 0;
    const unsent = this.#unsent.map((number) => {
      const exchange = this.#pending.get(number);
      this.#pending.delete(number);
      return exchange;
    });
    for (const exchange of this.#pending.takeIf(() => true)) exchange.broken(reason);
    for (const exchange of unsent) exchange?.unsent();
    this.events.lost(reason);
    this.#reportIdle();
  }

  #reportIdle(): void {
    if (this.#pending.size > 0 || !this.#onIdle) return;
    const onIdle = this.#onIdle;
    this.#onIdle = undefined;
    onIdle();
  }
}
