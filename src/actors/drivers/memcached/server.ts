/**
 * One connection to one memcached server. memjs frames and sends requests, but its handling of lost connections is not
 * used: it reconnects with the rest of an old response in its buffer, and loses pending calls when the server closes
 * the connection. So a lost connection is never reused, and its calls fail at once.
 */
import type { Socket } from 'node:net';
import { type Response, Server, Utils } from 'memjs';
import { toError } from '../../../errors.js';
import { REASONS, unavailable } from '../../failures.js';
import { ServiceError } from '../../service-error.js';

/** Response timeout after which the server counts as lost. */
const ANSWER_TIMEOUT_S = 10;
/** Responses are matched to requests by an unsigned 32 bit sequence number. */
const MAX_SEQUENCE = 0xffff_ffff;

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** A request of the binary protocol. */
export interface BinaryRequest {
  readonly opcode: number;
  readonly key?: string;
  readonly extras?: Buffer;
  readonly value?: Buffer;
}

/** A response of the binary protocol. */
export interface BinaryReply {
  readonly status: number;
  readonly value: Buffer;
}

export class MemcachedServer {
  readonly #where: string;
  readonly #server: Server;
  readonly #onLost: (error: Error) => void;
  #socket: Socket | undefined;
  #sequence = 0;
  #failure: ServiceError | undefined;

  constructor({ host, port }: ServerAddress, onLost: (error: Error) => void) {
    this.#where = `${host}:${port}`;
    this.#onLost = onLost;
    this.#server = new Server(host, port, undefined, undefined, {
      timeout: ANSWER_TIMEOUT_S,
      keepAlive: true,
    });
    // The library takes those of the environment, which are not meant for the servers of services.
    Object.assign(this.#server, { username: undefined, password: undefined });
  }

  /** Sends a request; the first one connects. @throws ServiceError unavailable */
  send(request: BinaryRequest): Promise<BinaryReply> {
    if (this.#failure) return Promise.reject(this.#failure);
    const sequence = this.#sequence;
    this.#sequence = sequence === MAX_SEQUENCE ? 0 : sequence + 1;
    const { opcode, key = '', extras = '', value = '' } = request;
    const bytes = Utils.makeRequestBuffer(opcode, key, extras, value, sequence);
    return new Promise((resolve, reject) => {
      this.#server.onResponse(sequence, ({ header, val }: Response) =>
        resolve({ status: header.status, value: val }),
      );
      this.#server.onError(sequence, (thrown) => reject(this.#fail(thrown)));
      if (!this.#socket) this.#server.sock(false, (socket) => this.#connected(socket));
      this.#server.write(bytes);
    });
  }

  /** Closes at once; pending requests fail. */
  close(): void {
    this.#failure ??= new ServiceError('unavailable', REASONS.closedHere(this.#where));
    this.#drop();
  }

  #connected(socket: Socket): void {
    // Called once for each request that has waited for the connection.
    if (this.#socket === socket) return;
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.once('close', () => {
      if (this.#failure) return;
      this.#fail(new Error(REASONS.closed(this.#where)));
    });
  }

  /** Fails the connection permanently. */
  #fail(thrown: unknown): ServiceError {
    if (this.#failure) return this.#failure;
    const failure = unavailable(toError(thrown), this.#where);
    this.#failure = failure;
    const wasConnected = this.#socket !== undefined;
    this.#drop();
    if (wasConnected) this.#onLost(failure);
    return failure;
  }

  #drop(): void {
    // memjs destroys its socket and fails pending requests, but has no reference to a socket that timed out.
    this.#server.error(new Error('closed'));
    this.#socket?.destroy();
  }
}
