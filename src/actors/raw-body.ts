/**
 * Large response bodies that bypass the HTTP parser. Node's parser copies what it reads into new buffers, twice the
 * size of the body, for which V8 collects garbage again and again (mark-compact, up to a third of the CPU time). Here
 * the parser receives only the head of the response; the body goes through a few buffers, each of which is reused as
 * soon as the chunk in it has been written. Only for plain HTTP: the records of TLS are small and decrypted by copying.
 */
import { Agent, type ClientRequest, type IncomingMessage, OutgoingMessage } from 'node:http';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { Readable } from 'node:stream';

/** One read; each connection holds such a buffer. Larger ones are not faster, smaller ones cost more turns. */
const BUFFER_BYTES = 512 * 1024;
/** Chunks of a body in memory; its connection has one more buffer, for the next read. */
const MAX_CHUNKS = 3;
/** Buffers kept for other bodies. */
const MAX_SPARE = 8;
/** From this size on, a body is worth a connection of its own. */
const MIN_BODY_BYTES = 256 * 1024;

const HEAD_END = '\r\n\r\n';
const NOTHING = Buffer.alloc(0);

/** Opens connections whose response bodies `takeBody` can take; otherwise an ordinary agent. */
export class RawBodyAgent extends Agent {
  override createConnection(options: NetConnectOpts): Socket {
    return new ResponseReader(options).socket;
  }

  override reuseSocket(socket: Socket, request: ClientRequest): void {
    readers.get(socket)?.expectHead();
    super.reuseSocket(socket, request);
  }
}

/**
 * The body of a response to GET. Must be called in the handler of the event `response`; later, the parser already has
 * a part of it. Piping it into an HTTP message, also by `pipeline`, does not copy it; other ways of reading do. It
 * closes its connection at its end.
 * @returns the response itself if its body is small, of unknown size, or not from a `RawBodyAgent`
 */
export function takeBody(response: IncomingMessage): Readable {
  const { statusCode = 0, headers } = response;
  const length = Number(headers['content-length'] ?? 0);
  const isPlain = [200, 206].includes(statusCode) && headers['transfer-encoding'] === undefined;
  return (isPlain && length >= MIN_BODY_BYTES && readers.get(response.socket)?.takeBody(length)) || response;
}

const readers = new WeakMap<object, ResponseReader>();

/** Reads from a connection for the parser, or for a body that was taken. */
class ResponseReader {
  readonly socket: Socket;
  #isHeadExpected = true;
  /** The last bytes of the head so far, which may be the first of its end. */
  #tail: Buffer = NOTHING;
  /** The parser is given the end of the head, and nothing after it. */
  #isAtEndOfHead = false;
  #body: RawBody | undefined;
  /** The buffer for the next read. */
  #buffer: Buffer | undefined;

  constructor(options: NetConnectOpts) {
    const onread = {
      buffer: () => (this.#buffer = takeBuffer()),
      callback: (count: number, buffer: Uint8Array) => {
        // Released with the chunk from here on.
        this.#buffer = undefined;
        return this.#accept((buffer as Buffer).subarray(0, count));
      },
    };
    this.socket = connect({ ...options, onread });
    this.socket.once('close', () => {
      if (this.#buffer) releaseBuffer(this.#buffer);
      this.#body?.onClose();
    });
    readers.set(this.socket, this);
  }

  /** The connection is reused for another request. */
  expectHead(): void {
    this.#isHeadExpected = true;
  }

  /** @returns undefined when the parser already has a part of the body */
  takeBody(length: number): RawBody | undefined {
    if (!this.#isAtEndOfHead) return undefined;
    this.#body = new RawBody(this.socket, length);
    return this.#body;
  }

  /** @returns whether to go on reading */
  #accept(chunk: Buffer): boolean {
    if (this.#body) return this.#body.accept(chunk);
    if (this.#isHeadExpected) return this.#acceptHead(chunk);
    return this.#parse(chunk);
  }

  #acceptHead(chunk: Buffer): boolean {
    const length = this.#lengthOfHead(chunk);
    if (length === undefined) return this.#parse(chunk);
    this.#isHeadExpected = false;
    // During this call, the parser emits the response, whose handler may take the body.
    this.#isAtEndOfHead = true;
    const isReading = this.socket.push(Buffer.from(chunk.subarray(0, length)));
    this.#isAtEndOfHead = false;
    const rest = chunk.subarray(length);
    if (rest.length === 0) {
      releaseBuffer(chunk);
      return this.#body !== undefined || isReading;
    }
    return this.#body ? this.#body.accept(rest) : this.#parse(rest);
  }

  /** How much of a chunk belongs to the head; undefined when it does not end there. */
  #lengthOfHead(chunk: Buffer): number | undefined {
    const tail = this.#tail;
    const seam = Buffer.concat([tail, chunk.subarray(0, HEAD_END.length - 1)]);
    const inSeam = seam.indexOf(HEAD_END);
    const at = inSeam === -1 ? chunk.indexOf(HEAD_END) : inSeam - tail.length;
    const isEnd = inSeam !== -1 || at !== -1;
    this.#tail = isEnd
      ? NOTHING
      : Buffer.concat([tail, chunk.subarray(1 - HEAD_END.length)]).subarray(1 - HEAD_END.length);
    return isEnd ? at + HEAD_END.length : undefined;
  }

  /** The parser keeps what it gets, so it gets a copy. */
  #parse(chunk: Buffer): boolean {
    const copy = Buffer.from(chunk);
    releaseBuffer(chunk);
    return this.socket.push(copy);
  }
}

/** A body of known length. It fails if the connection closes before all of it has been received. */
class RawBody extends Readable {
  readonly #socket: Socket;
  readonly #length: number;
  #received = 0;
  /** Chunks until somebody takes them. */
  readonly #waiting: Buffer[] = [];
  /** Those, and the ones that are being written. */
  #chunks = 0;
  /** Whether a reader waits for a chunk. */
  #isRequested = false;
  #destination: OutgoingMessage | undefined;

  constructor(socket: Socket, length: number) {
    super();
    this.#socket = socket;
    this.#length = length;
    // It may fail before its reader listens, who gets the error then.
    this.on('error', () => undefined);
  }

  /** @returns whether there is a buffer for another chunk */
  accept(chunk: Buffer): boolean {
    this.#received += chunk.length;
    if (this.#received > this.#length) {
      this.destroy(new Error(`the response is longer than the ${this.#length} bytes it announced`));
      return false;
    }
    this.#chunks++;
    this.#waiting.push(chunk);
    this.#forward();
    return this.#chunks < MAX_CHUNKS;
  }

  onClose(): void {
    if (this.#received === this.#length) return;
    this.destroy(new Error(`the response ended after ${this.#received} of ${this.#length} bytes`));
  }

  /** An HTTP message gets the chunks themselves, because it reports when it has written them; others get copies. */
  override pipe<T extends NodeJS.WritableStream>(destination: T, options?: { end?: boolean }): T {
    if (!(destination instanceof OutgoingMessage)) return super.pipe(destination, options);
    this.#destination = destination;
    destination.once('close', () => {
      if (!this.readableEnded) this.destroy();
    });
    if (options?.end !== false) this.once('end', () => destination.end());
    this.#forward();
    // Only so is the end emitted.
    this.resume();
    return destination;
  }

  override _read(): void {
    this.#isRequested = true;
    this.#forward();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#socket.destroy();
    callback(error);
  }

  /** Passes chunks on to the destination, or one to a reader that waits for it. */
  #forward(): void {
    while (this.#destination || this.#isRequested) {
      const chunk = this.destroyed ? undefined : this.#waiting.shift();
      if (!chunk) return;
      if (this.#destination) this.#write(this.#destination, chunk);
      else this.#pushCopy(chunk);
    }
  }

  #write(destination: OutgoingMessage, chunk: Buffer): void {
    destination.write(chunk, (error) => {
      // The destination reports its errors itself.
      if (error) this.destroy();
      else this.#release(chunk);
    });
  }

  #pushCopy(chunk: Buffer): void {
    this.#isRequested = false;
    this.push(Buffer.from(chunk));
    this.#release(chunk);
  }

  /** The chunk has been passed on. */
  #release(chunk: Buffer): void {
    releaseBuffer(chunk);
    this.#chunks--;
    if (this.destroyed) return;
    if (this.#received < this.#length) this.#socket.resume();
    else if (this.#chunks === 0) this.push(null);
  }
}

/** The buffer released last is reused first: it is still in the cache of the processor. */
const spare: Buffer[] = [];

function takeBuffer(): Buffer {
  return spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
}

/** @param chunk a buffer of `takeBuffer`, or a part of it */
function releaseBuffer(chunk: Buffer): void {
  if (spare.length < MAX_SPARE) spare.push(Buffer.from(chunk.buffer));
}
