/** One connection of a handler: who it is, its calls under way, and its transaction. */
import type { Socket } from 'node:net';
import { toError } from '../errors.js';
import type { LineQuota } from '../line-quota.js';
import type { Logger } from '../log.js';
import type { MemoryBudget } from '../memory-budget.js';
import {
  type Frame,
  FrameDecoder,
  FrameEncoder,
  MAX_BODY_BYTES,
  MAX_HEAD_BYTES,
  ProtocolError,
} from '../wire/codec.js';
import { type CallHead, parseCallHead, parseTokenHead } from '../wire/service-messages.js';
import { type Actor, type ActorCall, type ActorTransaction, asServiceError } from './actor.js';
import type { ConnectionLimits } from './connection-limits.js';
import type { DriverAnswer } from './driver.js';
import { encodeJson } from './exact-json.js';
import { ServiceError } from './service-error.js';

/** What a session needs of the actor host. */
export interface SessionHost {
  /** The endpoint a token stands for; undefined when it is not one of ours. */
  authenticate(token: string): string | undefined;
  /** @throws ServiceError unbound, or inactive */
  actorFor(endpointId: string, poolId: string): Actor;
}

/** What a handler may ask for. */
export interface SessionLimits {
  /** Deadline of a call that names none, milliseconds. */
  readonly defaultCallMs: number;
  /** The longest deadline a call can ask for, to arrive too, and the longest life of a transaction, milliseconds. */
  readonly longestCallMs: number;
  /** Shared by all sessions: payloads of calls under way, and answers that have not been read. */
  readonly memory: MemoryBudget;
}

/** What is true of all sessions of a server. */
export interface SessionServer {
  readonly host: SessionHost;
  readonly limits: SessionLimits;
  readonly connections: ConnectionLimits;
  /** Whether one more line may be logged for what handlers do wrong. */
  readonly quota: LineQuota;
  readonly log: Logger;
}

/** Calls under way on one connection; the SDK has one at a time. */
const MAX_CALLS = 256;
/** Answers that wait to be read: no more calls are read before they are gone. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
/** Connections are many, and most frames small. */
const BUFFER_BYTES = 4 * 1024;
/** The token has to be among the first bytes of a connection, and to come soon: until then nobody knows who this is. */
const TOKEN_BYTES = 4 * 1024;
const TOKEN_MS = 1_000;
const MAX_MESSAGE_LENGTH = 16 * 1024;

const NOTHING = Buffer.alloc(0);

/** A transaction, and the pool it is in. */
interface OpenTransaction {
  readonly pool: string;
  readonly transaction: ActorTransaction;
}

export class HandlerSession {
  readonly #decoder = new FrameDecoder(BUFFER_BYTES);
  readonly #encoder = new FrameEncoder(BUFFER_BYTES);
  readonly #tokenTimer: NodeJS.Timeout;
  #endpointId: string | undefined;
  #transaction: OpenTransaction | undefined;
  #calls = 0;
  /** Bytes of a call that has not arrived completely. */
  #heldBytes = 0;
  #unfinishedTimer: NodeJS.Timeout | undefined;
  /** What has come of bytes while answers were not read. */
  #unread: Buffer[] = [];
  #isPaused = false;
  /** Bodies of answers in the encoder. */
  #unsentBytes = 0;
  #isFlushing = false;
  #isClosed = false;

  constructor(
    private readonly socket: Socket,
    private readonly server: SessionServer,
  ) {
    server.connections.enter(this);
    // When we were busy for that long, the token may be there and not be read yet.
    this.#tokenTimer = setTimeout(() => setImmediate(() => this.#missToken()), TOKEN_MS);
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('drain', () => this.#resume());
    // Handlers die: their end is not ours.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#onClose());
  }

  /** Sends what is answered already, and closes the connection. */
  close(): void {
    this.#flush();
    this.socket.destroySoon();
  }

  #receive(chunk: Buffer): void {
    try {
      for (let at = 0; at < chunk.length; ) {
        if (this.#isPaused) {
          this.#unread.push(chunk.subarray(at));
          return;
        }
        const most =
          this.#endpointId === undefined ? TOKEN_BYTES - this.#decoder.buffered : Number.MAX_SAFE_INTEGER;
        if (most <= 0) throw new ProtocolError('its first frame is no token');
        const space = this.#decoder.space();
        const taken = chunk.copy(space, 0, at, at + Math.min(space.length, most));
        at += taken;
        const frames = this.#decoder.filled(taken);
        this.#holdUnfinished();
        for (const frame of frames) this.#take(frame);
      }
    } catch (thrown) {
      this.#warn(
        thrown instanceof ProtocolError ? { problem: thrown.message } : { err: toError(thrown) },
        'a handler does not keep to the protocol; its connection is closed',
      );
      this.socket.destroy();
    }
  }

  /** What has come of a call counts as held, and has to become a whole call in the time one may take. */
  #holdUnfinished(): void {
    const { memory, longestCallMs } = this.server.limits;
    const grown = this.#decoder.grownBy;
    if (grown > this.#heldBytes && !memory.take(grown - this.#heldBytes))
      throw new ProtocolError('there is no room for the rest of its call');
    if (grown < this.#heldBytes) memory.giveBack(this.#heldBytes - grown);
    this.#heldBytes = grown;
    if (this.#decoder.isMidFrame) {
      this.#unfinishedTimer ??= setTimeout(() => this.drop(), longestCallMs);
    } else if (this.#unfinishedTimer) {
      clearTimeout(this.#unfinishedTimer);
      this.#unfinishedTimer = undefined;
    }
  }

  /** Closes the connection: others need its place. */
  drop(): void {
    this.socket.destroy();
  }

  #missToken(): void {
    if (this.#endpointId === undefined) this.socket.destroy();
  }

  /** Handlers can do wrong as fast as they like. */
  #warn(details: object, message: string): void {
    if (!this.server.quota.take()) return;
    this.server.log.warn({ endpoint_id: this.#endpointId, ...details }, message);
  }

  /** The handler has read its answers: on with what it has sent meanwhile. */
  #resume(): void {
    this.#isPaused = false;
    const chunks = this.#unread;
    this.#unread = [];
    for (const chunk of chunks) this.#receive(chunk);
    if (!this.#isPaused) this.socket.resume();
  }

  #take({ kind, number, head, body, ownsBody }: Frame): void {
    if (kind !== 'request') throw new ProtocolError('it sent a response');
    if (this.#isClosed) return;
    if (this.#endpointId === undefined) {
      if (body.length > 0) throw new ProtocolError('its token has a body');
      this.#authenticate(number, parseTokenHead(head));
      return;
    }
    const call = parseCallHead(head);
    if (this.#calls >= MAX_CALLS) {
      this.#fail(number, new ServiceError('busy', `${MAX_CALLS} calls are under way on this connection`));
      return;
    }
    if (!this.server.limits.memory.take(body.length)) {
      this.#fail(number, new ServiceError('busy', 'the actor host holds as much as it may; try again later'));
      return;
    }
    // Other bytes of a frame are only there until the next one is read.
    const payload = body.length === 0 || ownsBody ? body : Buffer.from(body);
    this.#calls++;
    const over = () => {
      this.#calls--;
      this.server.limits.memory.giveBack(payload.length);
    };
    this.#perform(call, payload, this.#endpointId)
      .then(
        (answer) => {
          over();
          this.#answer(number, answer);
        },
        (thrown: unknown) => {
          over();
          this.#fail(number, asServiceError(thrown));
        },
      )
      .catch((thrown: unknown) => {
        this.server.log.error(
          { err: toError(thrown) },
          'an answer could not be sent; the connection is closed',
        );
        this.socket.destroy();
      });
  }

  #authenticate(number: number, token: string): void {
    clearTimeout(this.#tokenTimer);
    const endpointId = this.server.host.authenticate(token);
    if (endpointId === undefined) {
      this.#refuse(number, new ServiceError('unauthenticated', 'the token of the handler is not valid'));
      return;
    }
    const problem = this.server.connections.identify(this, endpointId);
    if (problem !== undefined) {
      this.#refuse(number, new ServiceError('busy', problem));
      this.#warn({ endpoint_id: endpointId, problem }, 'a connection of a handler is refused');
      return;
    }
    this.#endpointId = endpointId;
    this.#answer(number, {});
  }

  #refuse(number: number, error: ServiceError): void {
    this.#fail(number, error);
    this.#isClosed = true;
    this.close();
  }

  #perform(head: CallHead, payload: Buffer, endpointId: string): Promise<DriverAnswer> {
    const { defaultCallMs, longestCallMs } = this.server.limits;
    const timeoutMs = Math.min(head.deadline_ms ?? defaultCallMs, longestCallMs);
    if (head.op === 'begin') return this.#begin(head.pool, endpointId, timeoutMs);
    if (head.op === 'commit' || head.op === 'rollback') return this.#end(head, timeoutMs);
    const call: ActorCall = { operation: head.op, args: head.args, payload, timeoutMs };
    if (head.tx) return this.#inTransaction(head.pool, async ({ transaction }) => transaction.call(call));
    try {
      return this.server.host.actorFor(endpointId, head.pool).call(call);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }

  async #begin(pool: string, endpointId: string, timeoutMs: number): Promise<DriverAnswer> {
    if (this.#transaction)
      throw new ServiceError('invalid', 'the connection has an open transaction already');
    const transaction = await this.server.host
      .actorFor(endpointId, pool)
      .begin(timeoutMs, this.server.limits.longestCallMs);
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
    const body = payload === undefined ? NOTHING : asBytes(payload);
    if (body.length > MAX_BODY_BYTES || Buffer.byteLength(head) > MAX_HEAD_BYTES) {
      const message = `the answer is larger than ${MAX_BODY_BYTES / 1024 ** 2} MiB; ask for less at a time`;
      this.#fail(number, new ServiceError('invalid', message));
    } else if (this.server.limits.memory.take(body.length)) {
      this.#send(number, head, body);
    } else {
      const message = 'it was done, but the actor host holds as many unread answers as it may';
      this.#fail(number, new ServiceError('busy', message));
    }
  }

  #fail(number: number, { kind, message }: ServiceError): void {
    // What a database says may quote what it was given, which may be long.
    const text =
      message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)} ...` : message;
    this.#send(number, JSON.stringify({ ok: false, kind, message: text }), NOTHING);
  }

  /** @param body whose bytes were taken from the budget */
  #send(number: number, head: string, body: Uint8Array): void {
    if (this.socket.destroyed) {
      this.server.limits.memory.giveBack(body.length);
      return;
    }
    this.#encoder.add('response', number, head, body);
    this.#unsentBytes += body.length;
    if (this.#calls === 0) {
      this.#flush();
    } else if (!this.#isFlushing) {
      this.#isFlushing = true;
      // What else is answered in this turn goes into the same write.
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    this.#isFlushing = false;
    const bytes = this.#unsentBytes;
    this.#unsentBytes = 0;
    if (this.socket.destroyed || this.#encoder.isEmpty) {
      this.server.limits.memory.giveBack(bytes);
      return;
    }
    const parts = this.#encoder.take();
    const last = parts.length - 1;
    this.socket.cork();
    for (const [at, part] of parts.entries()) {
      // Called also when the connection breaks.
      this.socket.write(part, at === last ? () => this.#written(parts, bytes) : undefined);
    }
    this.socket.uncork();
    if (this.socket.writableLength <= MAX_UNREAD_BYTES) return;
    this.#isPaused = true;
    this.socket.pause();
  }

  #written(parts: readonly Uint8Array[], bytes: number): void {
    this.#encoder.recycle(parts);
    this.server.limits.memory.giveBack(bytes);
  }

  #onClose(): void {
    this.#isClosed = true;
    this.server.connections.leave(this, this.#endpointId);
    clearTimeout(this.#tokenTimer);
    clearTimeout(this.#unfinishedTimer);
    this.server.limits.memory.giveBack(this.#heldBytes);
    this.#heldBytes = 0;
    this.#unread = [];
    const open = this.#transaction;
    this.#transaction = undefined;
    // The handler is gone, or has thought better of it.
    open?.transaction
      .abandon()
      .catch((error: unknown) =>
        this.server.log.warn({ err: toError(error) }, 'a transaction could not be rolled back'),
      );
  }
}

function asBytes(payload: Uint8Array | string): Uint8Array {
  return typeof payload === 'string' ? Buffer.from(payload) : payload;
}
