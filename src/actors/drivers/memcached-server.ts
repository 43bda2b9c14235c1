/**
 * One connection to one memcached server. memjs frames requests and responses and sends them; what it would do by
 * itself when a connection breaks is not left to it: it connects again with the rest of an old response in its buffer,
 * and forgets the calls under way when the server closes the connection in good order. So a connection that broke is
 * never used again, and its calls fail at once.
 */
import type { Socket } from 'node:net';
import { type Response, Server, Utils } from 'memjs';
import { toError } from '../../errors.js';
import { unavailable } from '../connect-errors.js';
import { ServiceError } from '../service-error.js';

/** A server that leaves a request without an answer for this long is gone. */
const ANSWER_TIMEOUT_S = 10;
/** The numbers that responses are matched by are unsigned 32 bit integers. */
const MAX_SEQUENCE = 0xffff_ffff;

/** Where a server is. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A request of the binary protocol. */
export interface Request {
  readonly opcode: number;
  readonly key?: string;
  readonly extras?: Buffer;
  readonly value?: Buffer;
}

/** What a server answered. */
export interface Reply {
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

  constructor({ host, port }: Address, onLost: (error: Error) => void) {
    this.#where = `${host}:${port}`;
    this.#onLost = onLost;
    this.#server = new Server(host, port, undefined, undefined, {
      timeout: ANSWER_TIMEOUT_S,
      keepAlive: true,
    });
  }

  /** Sends a request; the first one connects. @throws ServiceError unavailable */
  send(request: Request): Promise<Reply> {
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

  /** Closes at once; what is under way fails. */
  close(): void {
    this.#failure ??= new ServiceError('unavailable', `the connection to ${this.#where} is closed`);
    this.#drop();
  }

  #connected(socket: Socket): void {
    // Several requests may have waited for it.
    if (this.#socket === socket) return;
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.once('close', () => {
      if (this.#failure) return;
      this.#fail(new Error(`${this.#where} closed the connection`));
    });
  }

  /** The first failure is the last: nothing is sent any more. */
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
    // memjs destroys its socket, connected or not, and fails what waits for it; one that timed out it has let go of.
    this.#server.error(new Error('closed'));
    this.#socket?.destroy();
  }
}
