/**
 * A front's connection to one handler process. It multiplexes requests, writes the frames of one turn of the event loop
 * together, and enforces deadlines.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import { toError } from '../errors.js';
import type { MemoryBudget } from '../util/memory-budget.js';
import { type Frame, FrameDecoder, FrameEncoder, ProtocolError } from '../wire/codec.js';
import { parseResponseHead, type ResponseHead } from '../wire/messages.js';
import { InFlight } from './in-flight.js';

/** A request to a handler; exactly one of these functions is called. */
export interface Exchange {
  /** In the time of `performance.now()`. */
  readonly deadline: number;
  /** The body may be used only until this returns, unless `ownsBody`. */
  respond(head: ResponseHead, body: Buffer, ownsBody: boolean): void;
  /** The handler exited, or violated the protocol. */
  aborted(reason: string): void;
  expired(): void;
  /** The connection closed before the request was sent. */
  unsent(): void;
}

/** Events of a connection. */
export interface ConnectionEvents {
  /** A request exceeded its deadline. */
  deadlineExceeded(): void;
  /** The connection is closed; its requests have been aborted before. */
  connectionLost(reason: string): void;
}

/** Larger heads are more than clients accept, and cost time to parse. */
const MAX_RESPONSE_HEAD_CHARACTERS = 64 * 1024;

/**
 * Connects to a handler.
 * @param memory for responses that have not arrived completely
 */
export function connectHandler(
  socketPath: string,
  memory: MemoryBudget,
  events: ConnectionEvents,
): Promise<HandlerConnection> {
  return new Promise((resolve, reject) => {
    // Reads go into the decoder's buffer: a new buffer for each read would be garbage to collect.
    const decoder = new FrameDecoder();
    let connection: HandlerConnection | undefined;
    const onread = {
      buffer: () => {
        const space = decoder.space();
        connection?.release();
        return space;
      },
      // False pauses reading.
      callback: (bytes: number) => connection?.filled(bytes) ?? true,
    };
    const file = openSocketFile(socketPath);
    const socket = connect({ path: `/proc/self/fd/${file}`, onread });
    const closeFile = () => {
      socket.off('connect', closeFile).off('error', closeFile);
      closeSync(file);
    };
    socket.once('connect', closeFile).once('error', closeFile);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      connection = new HandlerConnection(socket, decoder, memory, events);
      resolve(connection);
    });
  });
}

/** Not in Node's constants: opens a location in the file system without opening the file. */
const O_PATH = 0o10000000;

/**
 * Opens the file of a socket without following links. Its folder belongs to the handler, which could put a link there
 * to a socket that it cannot reach itself.
 */
function openSocketFile(path: string): number {
  const folder = openSync(dirname(path), O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const file = openSync(`/proc/self/fd/${folder}/${basename(path)}`, O_PATH | constants.O_NOFOLLOW);
    if (fstatSync(file).isSocket()) return file;
    closeSync(file);
  } finally {
    closeSync(folder);
  }
  throw new Error('the file of its socket is not a socket');
}

/** An open connection. It does not reconnect. */
export class HandlerConnection {
  readonly #socket: Socket;
  readonly #decoder: FrameDecoder;
  readonly #memory: MemoryBudget;
  readonly #events: ConnectionEvents;
  readonly #encoder = new FrameEncoder();
  readonly #pending = new InFlight<Exchange>();
  /** Numbers of the requests that wait for the next flush. */
  readonly #unsent: number[] = [];
  #isOpen = true;
  #onIdle: (() => void) | undefined;
  // Consecutive responses mostly have the same head, which is parsed once.
  #lastHeadText = '';
  #lastHead: ResponseHead | undefined;
  /** Requests past their deadline that may still be answered. */
  #expired = 0;
  /** Memory reserved for what the decoder buffers. */
  #reserved = 0;
  /** Reading waits for memory. */
  #isPaused = false;

  constructor(socket: Socket, decoder: FrameDecoder, memory: MemoryBudget, events: ConnectionEvents) {
    this.#socket = socket;
    this.#decoder = decoder;
    this.#memory = memory;
    this.#events = events;
    // Whichever comes first: requests of the same turn must not be sent to a process that has exited.
    for (const event of ['end', 'error', 'close'])
      socket.on(event, () => this.#close('it closed its connection to the gateway'));
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get inFlight(): number {
    return this.#pending.size;
  }

  /**
   * Sends a request, which is answered through the exchange.
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
      // After the poll phase, when every request that arrived in this turn has been added.
      setImmediate(this.#flush);
    }
    return true;
  }

  /** Fails the requests past their deadline, and resumes reading when that waited for memory. */
  expire(now: number): void {
    if (this.#isPaused && this.#reserveBuffered()) {
      this.#isPaused = false;
      this.#socket.resume();
    }
    for (const exchange of this.#pending.takeIf(({ deadline }) => deadline <= now)) {
      this.#expired++;
      exchange.expired();
      // Otherwise its answer may have arrived: it is not the handler that keeps the memory.
      if (!this.#isPaused) this.#events.deadlineExceeded();
    }
    this.#reportIdle();
  }

  /** Resolves when nothing is in flight. No request may be sent any more. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#reportIdle();
    });
  }

  close(): void {
    this.#socket.end();
  }

  #flush = (): void => {
    this.#unsent.length = 0;
    if (!this.#isOpen || this.#encoder.isEmpty) return;
    const parts = this.#encoder.take();
    const last = parts.length - 1;
    this.#socket.cork();
    for (const [at, part] of parts.entries()) {
      this.#socket.write(part, at === last ? () => this.#encoder.recycle(parts) : undefined);
    }
    this.#socket.uncork();
  };

  /**
   * Processes bytes from the handler that were read into the decoder's buffer.
   * @returns false when no memory is left, to pause reading; `expire` resumes it
   */
  filled(bytes: number): boolean {
    try {
      const frames = this.#decoder.filled(bytes);
      // Large frames have memory of their own now.
      this.release();
      for (const frame of frames) this.#answered(frame);
    } catch (error) {
      this.#close(`it violated the protocol: ${toError(error).message}`);
      this.#socket.destroy();
    }
    this.#reportIdle();
    this.#isPaused = this.#isOpen && !this.#reserveBuffered();
    return !this.#isPaused;
  }

  /** Releases what the decoder no longer buffers, as after a large response. */
  release(): void {
    const grown = this.#decoder.grownBy;
    if (grown >= this.#reserved) return;
    this.#memory.release(this.#reserved - grown);
    this.#reserved = grown;
  }

  /** @throws ProtocolError when it is not the response to a request in flight */
  #answered({ kind, number, head, body, ownsBody }: Frame): void {
    if (kind !== 'response') throw new ProtocolError('it sent a request');
    const pending = this.#pending.get(number);
    if (!pending) {
      // A late response to a request past its deadline. More of them than such requests are a violation.
      if (this.#expired-- > 0) return;
      throw new ProtocolError('it sent a response to no request, or a second one');
    }
    this.#pending.delete(number);
    let parsed: ResponseHead;
    try {
      parsed = this.#parseHead(head);
    } catch (error) {
      pending.aborted(`its response is invalid: ${toError(error).message}`);
      return;
    }
    pending.respond(parsed, body, ownsBody);
  }

  /** Reserves memory for a response that has arrived in part. @returns false when there is none */
  #reserveBuffered(): boolean {
    const grown = this.#decoder.grownBy;
    if (grown <= this.#reserved) return true;
    if (!this.#memory.take(grown - this.#reserved)) return false;
    this.#reserved = grown;
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
    this.#memory.release(this.#reserved);
    this.#reserved = 0;
    const unsent = this.#unsent.map((number) => {
      const exchange = this.#pending.get(number);
      this.#pending.delete(number);
      return exchange;
    });
    for (const exchange of this.#pending.takeIf(() => true)) exchange.aborted(reason);
    for (const exchange of unsent) exchange?.unsent();
    this.#events.connectionLost(reason);
    this.#reportIdle();
  }

  #reportIdle(): void {
    if (this.#pending.size > 0 || !this.#onIdle) return;
    const onIdle = this.#onIdle;
    this.#onIdle = undefined;
    onIdle();
  }
}
