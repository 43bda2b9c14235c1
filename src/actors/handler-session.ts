/** One connection of a handler: its authentication, its calls in progress, and its transaction. */
import type { Socket } from 'node:net';
import { toError } from '../errors.js';
import type { HandlerInstance } from '../secrets/service-token.js';
import {
  type Frame,
  FrameDecoder,
  FrameEncoder,
  MAX_BODY_BYTES,
  MAX_HEAD_BYTES,
  ProtocolError,
} from '../wire/codec.js';
import { type CallHead, parseCallHead, parseTokenHead } from '../wire/service-messages.js';
import type { ActorTransaction } from './actor-transaction.js';
import type { ActorCall } from './driver-call.js';
import { encodeJson } from './exact-json.js';
import { asServiceError } from './failures.js';
import type { DriverAnswer } from './operations.js';
import { ServiceError } from './service-error.js';
import { CallRedirected, type RemoteActor, type SessionServer } from './session-host.js';

/** Concurrent calls on one connection; the SDK makes one at a time. */
const MAX_CALLS = 256;
/** Above this many bytes of unread answers, no more calls are read. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
/** Small, because there are many connections and most frames are small. */
const BUFFER_BYTES = 4 * 1024;
/** Limits until the token has arrived: until then the client is not authenticated. */
const MAX_TOKEN_BYTES = 4 * 1024;
/** A client that has to wait for the processor is late, and sends it all the same. */
const TOKEN_TIMEOUT_MS = 10_000;
const MAX_MESSAGE_LENGTH = 16 * 1024;

/** The number of the frame with the token. */
const TOKEN_NUMBER = 0;

const EMPTY_BODY = Buffer.alloc(0);

/** A transaction and its pool. */
interface OpenTransaction {
  readonly pool: string;
  readonly transaction: ActorTransaction;
}

export class HandlerSession {
  readonly #socket: Socket;
  readonly #server: SessionServer;
  readonly #decoder = new FrameDecoder(BUFFER_BYTES);
  readonly #encoder = new FrameEncoder(BUFFER_BYTES);
  readonly #tokenTimer: NodeJS.Timeout;
  #caller: HandlerInstance | undefined;
  #transaction: OpenTransaction | undefined;
  #calls = 0;
  /** Bytes taken from the memory budget for an incomplete frame. */
  #incompleteBytes = 0;
  #incompleteTimer: NodeJS.Timeout | undefined;
  /** Received bytes that are not decoded because the handler does not read its answers. */
  #unread: Buffer[] = [];
  #isPaused = false;
  /** Bytes of the answer bodies in the encoder. */
  #unsentBytes = 0;
  #isFlushing = false;
  #isClosed = false;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;

  constructor(socket: Socket, server: SessionServer) {
    this.#socket = socket;
    this.#server = server;
    server.connections.enter(this);
    // After `setImmediate`, because a token may have arrived but not been read while the event loop was blocked.
    this.#tokenTimer = setTimeout(() => setImmediate(() => this.#onTokenTimeout()), TOKEN_TIMEOUT_MS);
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('drain', () => this.#resume());
    socket.on('error', () => undefined); // 'close' follows
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#onClose();
        resolve();
      });
    });
  }

  /**
   * Asks the client to use the connection no more. The SDK uses none on which something has come that it did not ask
   * for; a call that is on its way is still answered.
   */
  retire(): void {
    if (this.#caller) this.#send(TOKEN_NUMBER, '{"ok":true}', EMPTY_BODY);
  }

  /** Sends the answers that are ready, and closes the connection. */
  close(): void {
    this.#flush();
    this.#socket.destroySoon();
  }

  #receive(chunk: Buffer): void {
    try {
      for (let at = 0; at < chunk.length; ) {
        if (this.#isPaused) {
          this.#unread.push(chunk.subarray(at));
          return;
        }
        const limit =
          this.#caller === undefined ? MAX_TOKEN_BYTES - this.#decoder.buffered : Number.MAX_SAFE_INTEGER;
        if (limit <= 0) throw new ProtocolError('its first frame is no token');
        this.#reserve(this.#decoder.reservedNext);
        const space = this.#decoder.space();
        const copied = chunk.copy(space, 0, at, at + Math.min(space.length, limit));
        at += copied;
        const frames = this.#decoder.filled(copied);
        this.#reserve(this.#decoder.reserved);
        this.#limitIncomplete();
        for (const frame of frames) this.#take(frame);
      }
    } catch (thrown) {
      this.#warn(
        thrown instanceof ProtocolError ? { problem: thrown.message } : { err: toError(thrown) },
        'a handler does not keep to the protocol; its connection is closed',
      );
      this.#socket.destroy();
    }
  }

  /** Counts the memory for an incomplete frame against the budget, before there is any. */
  #reserve(bytes: number): void {
    const { memory } = this.#server.limits;
    const more = bytes - this.#incompleteBytes;
    if (more > 0 && !memory.take(more)) throw new ProtocolError('there is no room for the rest of its call');
    if (more < 0) memory.release(-more);
    this.#incompleteBytes = bytes;
  }

  /** Limits the time until a frame is complete. */
  #limitIncomplete(): void {
    if (this.#decoder.isMidFrame) {
      this.#incompleteTimer ??= setTimeout(() => this.drop(), this.#server.limits.longestCallMs);
    } else if (this.#incompleteTimer) {
      clearTimeout(this.#incompleteTimer);
      this.#incompleteTimer = undefined;
    }
  }

  /** The nonce of the handler process that it belongs to; undefined until the process has sent its token. */
  get nonce(): string | undefined {
    return this.#caller?.nonce;
  }

  /** Closes the connection without sending pending answers. */
  drop(): void {
    this.#socket.destroy();
  }

  #onTokenTimeout(): void {
    if (!this.#caller) this.#socket.destroy();
  }

  #warn(details: object, message: string): void {
    if (!this.#server.warningLimiter.take()) return;
    this.#server.log.warn({ endpoint_id: this.#caller?.endpointId, ...details }, message);
  }

  /** The handler has read its answers: processes the bytes received in the meantime. */
  #resume(): void {
    this.#isPaused = false;
    const chunks = this.#unread;
    this.#unread = [];
    for (const chunk of chunks) this.#receive(chunk);
    if (!this.#isPaused) this.#socket.resume();
  }

  #take({ kind, number, head, body, ownsBody }: Frame): void {
    if (kind !== 'request') throw new ProtocolError('it sent a response');
    if (this.#isClosed) return;
    const caller = this.#caller;
    if (!caller) {
      if (body.length > 0) throw new ProtocolError('its token has a body');
      this.#authenticate(number, parseTokenHead(head));
      return;
    }
    const call = parseCallHead(head);
    if (this.#calls >= MAX_CALLS) {
      this.#fail(number, new ServiceError('busy', `${MAX_CALLS} calls are under way on this connection`));
      return;
    }
    if (!this.#server.limits.memory.take(body.length)) {
      this.#fail(number, new ServiceError('busy', 'the actor host holds as much as it may; try again later'));
      return;
    }
    // A body that the frame does not own is overwritten by the next frame.
    const payload = body.length === 0 || ownsBody ? body : Buffer.from(body);
    this.#calls++;
    const release = () => {
      this.#calls--;
      this.#server.limits.memory.release(payload.length);
    };
    this.#perform(call, payload, caller)
      .then(
        (answer) => {
          release();
          this.#answer(number, answer);
        },
        (thrown: unknown) => {
          release();
          if (thrown instanceof CallRedirected) this.#sendElsewhere(number, thrown);
          else this.#fail(number, asServiceError(thrown));
        },
      )
      .catch((thrown: unknown) => {
        this.#server.log.error(
          { err: toError(thrown) },
          'an answer could not be sent; the connection is closed',
        );
        this.#socket.destroy();
      });
  }

  #authenticate(number: number, token: string): void {
    clearTimeout(this.#tokenTimer);
    const caller = this.#server.host.authenticate(token);
    if (!caller) {
      this.#refuse(number, new ServiceError('unauthenticated', 'the token of the handler is not valid'));
      return;
    }
    const { endpointId } = caller;
    const problem = this.#server.connections.identify(this, endpointId);
    if (problem !== undefined) {
      this.#refuse(number, new ServiceError('busy', problem));
      this.#warn({ endpoint_id: endpointId, problem }, 'a connection of a handler is refused');
      return;
    }
    this.#caller = caller;
    this.#answer(number, {});
    if (this.#server.isRetiring) this.retire();
  }

  #refuse(number: number, error: ServiceError): void {
    this.#fail(number, error);
    this.#isClosed = true;
    this.close();
  }

  #perform(head: CallHead, payload: Buffer, caller: HandlerInstance): Promise<DriverAnswer> {
    const { defaultCallMs, longestCallMs } = this.#server.limits;
    const timeoutMs = Math.min(head.deadline_ms ?? defaultCallMs, longestCallMs);
    if (head.op === 'begin') return this.#begin(head.pool, caller, timeoutMs);
    if (head.op === 'commit' || head.op === 'rollback') return this.#end(head, timeoutMs);
    const call: ActorCall = { operation: head.op, args: head.args, payload, timeoutMs };
    if (head.tx) return this.#inTransaction(head.pool, async ({ transaction }) => transaction.call(call));
    try {
      const actor = this.#server.host.actorFor(caller.endpointId, head.pool);
      return 'call' in actor ? actor.call(call) : moveTo(actor, caller, timeoutMs);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }

  async #begin(pool: string, caller: HandlerInstance, timeoutMs: number): Promise<DriverAnswer> {
    if (this.#transaction)
      throw new ServiceError('invalid', 'the connection has an open transaction already');
    const actor = this.#server.host.actorFor(caller.endpointId, pool);
    if (!('call' in actor)) return moveTo(actor, caller, timeoutMs);
    const transaction = await actor.begin(timeoutMs, this.#server.limits.longestCallMs);
    if (this.#isClosed || this.#transaction) {
      await transaction.rollback();
      throw new ServiceError('invalid', 'the connection has an open transaction already');
    }
    this.#transaction = { pool, transaction };
    return {};
  }

  #end({ op, pool }: CallHead, timeoutMs: number): Promise<DriverAnswer> {
    return this.#inTransaction(pool, async ({ transaction }) => {
      this.#transaction = undefined;
      await (op === 'commit' ? transaction.commit(timeoutMs) : transaction.rollback());
      return {};
    });
  }

  async #inTransaction(
    pool: string,
    work: (open: OpenTransaction) => Promise<DriverAnswer>,
  ): Promise<DriverAnswer> {
    const open = this.#transaction;
    if (!open || open.pool !== pool) throw new ServiceError('invalid', 'there is no open transaction');
    return work(open);
  }

  #answer(number: number, { result, payload }: DriverAnswer): void {
    const head = result === undefined ? '{"ok":true}' : `{"ok":true,"result":${encodeJson(result)}}`;
    const body = payload === undefined ? EMPTY_BODY : asBytes(payload);
    if (body.length > MAX_BODY_BYTES || Buffer.byteLength(head) > MAX_HEAD_BYTES) {
      const message = `the answer is larger than ${MAX_BODY_BYTES / 1024 ** 2} MiB; ask for less at a time`;
      this.#fail(number, new ServiceError('invalid', message));
    } else if (this.#server.limits.memory.take(body.length)) {
      this.#send(number, head, body);
    } else {
      const message = 'it was done, but the actor host holds as many unread answers as it may';
      this.#fail(number, new ServiceError('busy', message));
    }
  }

  #fail(number: number, { kind, message }: ServiceError): void {
    // Error messages of databases may quote long input.
    const text =
      message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)} ...` : message;
    this.#send(number, JSON.stringify({ ok: false, kind, message: text }), EMPTY_BODY);
  }

  #sendElsewhere(number: number, { to }: CallRedirected): void {
    // The SDK recognises it by how it begins; an older one only shows the message.
    const rest = {
      message: 'the handler was compiled with an older SDK; compile and start its endpoint again',
      to,
    };
    this.#send(number, `{"ok":false,"kind":"moved",${JSON.stringify(rest).slice(1)}`, EMPTY_BODY);
  }

  /** @param body already counted against the memory budget */
  #send(number: number, head: string, body: Uint8Array): void {
    if (this.#socket.destroyed) {
      this.#server.limits.memory.release(body.length);
      return;
    }
    this.#encoder.add('response', number, head, body);
    this.#unsentBytes += body.length;
    if (this.#calls === 0) {
      this.#flush();
    } else if (!this.#isFlushing) {
      this.#isFlushing = true;
      // Batches all answers of this turn of the event loop into one write.
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    this.#isFlushing = false;
    const bytes = this.#unsentBytes;
    this.#unsentBytes = 0;
    if (this.#socket.destroyed || this.#encoder.isEmpty) {
      this.#server.limits.memory.release(bytes);
      return;
    }
    const parts = this.#encoder.take();
    const last = parts.length - 1;
    this.#socket.cork();
    for (const [at, part] of parts.entries()) {
      // The callback is also called when the connection is lost.
      this.#socket.write(part, at === last ? () => this.#written(parts, bytes) : undefined);
    }
    this.#socket.uncork();
    if (this.#socket.writableLength <= MAX_UNREAD_BYTES) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  #written(parts: readonly Uint8Array[], bytes: number): void {
    this.#encoder.recycle(parts);
    this.#server.limits.memory.release(bytes);
  }

  #onClose(): void {
    this.#isClosed = true;
    this.#server.connections.leave(this, this.#caller?.endpointId);
    clearTimeout(this.#tokenTimer);
    clearTimeout(this.#incompleteTimer);
    this.#server.limits.memory.release(this.#incompleteBytes);
    this.#incompleteBytes = 0;
    this.#unread = [];
    const open = this.#transaction;
    this.#transaction = undefined;
    open?.transaction
      .abandon()
      .catch((error: unknown) =>
        this.#server.log.warn({ err: toError(error) }, 'a transaction could not be rolled back'),
      );
  }
}

async function moveTo(actor: RemoteActor, caller: HandlerInstance, timeoutMs: number): Promise<never> {
  throw new CallRedirected(await actor.address(caller, timeoutMs));
}

function asBytes(payload: Uint8Array | string): Uint8Array {
  return typeof payload === 'string' ? Buffer.from(payload) : payload;
}
