/** The client side of the service protocol, without the SDK. */
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import type { ServiceErrorKind } from '../../src/actors/service-error.js';
import type { ServiceAddress } from '../../src/actors/session-host.js';
import { FrameDecoder, FrameEncoder } from '../../src/wire/codec.js';

/** The answer to a call. */
export interface ServiceAnswer {
  readonly ok: boolean;
  readonly result?: unknown;
  readonly kind?: ServiceErrorKind | 'moved';
  /** Where the call belongs. */
  readonly to?: ServiceAddress;
  readonly message?: string;
  readonly payload: Buffer;
}

export interface ServiceClient {
  /** Sends any head, and waits for the response. Rejects when the connection closes first. */
  send(head: unknown, payload?: Buffer | string): Promise<ServiceAnswer>;
  /** Writes bytes that need not be frames. */
  write(bytes: Uint8Array): void;
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<void>;
  /** Resolves when the other side asks to make no more calls on it. */
  readonly retired: Promise<void>;
  close(): Promise<void>;
}

/** As the SDK. */
const MAX_MOVES = 8;
/** Memory that is new for each call is garbage, whose collection would be measured with the calls. */
const BUFFER_BYTES = 4 * 1024;

interface CallHead {
  readonly pool?: unknown;
  readonly op?: unknown;
  readonly tx?: unknown;
}

interface Waiting {
  resolve(answer: ServiceAnswer): void;
  reject(error: Error): void;
}

/**
 * Connects to the actor host, and sends the token unless there is none. Calls of services with a process of their own
 * are sent on to it, as the SDK does.
 */
export async function connectServices(path: string, token?: string): Promise<ServiceClient> {
  const host = await connectTo(path, token);
  const processes = new Map<unknown, ServiceClient>();
  /** Those that answered before, which may still have an open transaction. */
  const former: ServiceClient[] = [];
  /** By pool, where a transaction has begun last. */
  const transactions = new Map<unknown, ServiceClient>();
  const send: ServiceClient['send'] = async (head, payload) => {
    const { pool, op, tx }: CallHead = typeof head === 'object' && head !== null ? head : {};
    const begun = transactions.get(pool);
    if (begun && (tx || op === 'commit' || op === 'rollback')) return begun.send(head, payload);
    for (let moves = 0; moves < MAX_MOVES; moves++) {
      const process = processes.get(pool);
      const answer = await (process ?? host).send(head, payload);
      if (answer.ok && op === 'begin') transactions.set(pool, process ?? host);
      if (answer.kind !== 'moved') return answer;
      processes.delete(pool);
      if (process) former.push(process);
      if (!answer.to) continue;
      // One that cannot be reached has ended; the actor host knows more.
      const next = await connectTo(join(dirname(path), answer.to.socket), answer.to.token).catch(
        () => undefined,
      );
      if (next) {
        processes.set(pool, next);
        // It asks to be left, or has ended: the next call asks the actor host again.
        const leave = () => {
          if (processes.get(pool) !== next) return;
          processes.delete(pool);
          former.push(next);
        };
        void next.retired.then(leave);
        void next.closed.then(leave);
      }
    }
    throw new Error(`the call was moved ${MAX_MOVES} times`);
  };
  return {
    ...host,
    send,
    close: async () => {
      await Promise.all([host, ...processes.values(), ...former].map((client) => client.close()));
    },
  };
}

/** Connects to one socket. */
export async function connectTo(path: string, token?: string): Promise<ServiceClient> {
  const socket = await connected(path);
  const decoder = new FrameDecoder(BUFFER_BYTES);
  let retire: () => void = () => undefined;
  const retired = new Promise<void>((resolve) => {
    retire = resolve;
  });
  const encoder = new FrameEncoder(BUFFER_BYTES);
  const waiting = new Map<number, Waiting>();
  let nextNumber = 1;
  let isFlushing = false;
  const flush = () => {
    isFlushing = false;
    const parts = encoder.take();
    const last = parts.length - 1;
    for (const [at, part] of parts.entries())
      socket.write(part, at === last ? () => encoder.recycle(parts) : undefined);
  };
  socket.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length; ) {
      const space = decoder.space();
      const taken = chunk.copy(space, 0, at, at + space.length);
      at += taken;
      for (const { number, head, body } of decoder.filled(taken)) {
        if (number === 0) retire();
        waiting.get(number)?.resolve({ ...JSON.parse(head), payload: Buffer.from(body) });
        waiting.delete(number);
      }
    }
  });
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      for (const { reject } of waiting.values()) reject(new Error('the connection was closed'));
      waiting.clear();
      resolve();
    });
  });
  socket.on('error', () => undefined);
  const client: ServiceClient = {
    closed,
    retired,
    send: (head, payload = '') =>
      new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new Error('the connection is closed'));
        const number = nextNumber++;
        waiting.set(number, { resolve, reject });
        encoder.add('request', number, JSON.stringify(head), Buffer.from(payload));
        if (!isFlushing) {
          isFlushing = true;
          queueMicrotask(flush);
        }
      }),
    write: (bytes) => {
      socket.write(bytes);
    },
    close: async () => {
      socket.destroy();
      await closed;
    },
  };
  if (token !== undefined) await client.send({ token });
  return client;
}

function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(socket);
    });
  });
}
