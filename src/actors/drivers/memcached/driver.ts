/** The memcached driver: its operations, and the assignment of keys to servers. */
import { Utils } from 'memjs';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { type Connection, type DriverContext, defineDriver, openOrClose } from '../../driver.js';
import { type DriverAnswer, invalid } from '../../operations.js';
import { Type } from '../../schema.js';
import { ServiceError } from '../../service-error.js';
import { type BinaryReply, type BinaryRequest, MemcachedServer, type ServerAddress } from './server.js';

const DEFAULT_PORT = 11_211;
/** Concurrent calls per server, which are pipelined. */
const CALLS_PER_SERVER = 64;
const MAX_KEY_BYTES = 250;
const SPACE_OR_CONTROL = /[\p{Cc} ]/u;
/** The server interprets a longer time to live as a timestamp. */
const LONGEST_RELATIVE_S = 30 * 24 * 60 * 60;
/** Timestamps of the server are signed 32 bit integers. */
const LAST_TIME_S = 0x7fff_ffff;
/** Expiration value that means: do not create the counter. */
const DO_NOT_CREATE = 0xffff_ffff;

const OPCODE = { get: 0, set: 1, add: 2, replace: 3, delete: 4, incr: 5, decr: 6, version: 11 } as const;
const OK = 0;
const NOT_FOUND = 1;
const EXISTS = 2;
const REFUSALS: Readonly<Record<number, string>> = {
  3: 'the value is too large: the server takes 1 MiB, unless it was started with another limit (-I)',
  4: 'the server did not accept the arguments',
  5: 'the value was not stored',
  6: 'the value is not a number that can be counted up or down',
  8: 'the server requires a user and a password, which is not supported',
  32: 'the server requires a user and a password, which is not supported',
  129: 'the server does not know the operation',
  130: 'the server is out of memory',
};

const FLAGS = Buffer.alloc(4);
const FOUND = { found: true };

const key = Type.String({ refine: keyProblem });
const ttl_seconds = Type.Optional(Type.Integer({ minimum: 1, maximum: LAST_TIME_S }));
const Amount = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const memcachedDriver = defineDriver({
  type: 'memcached',
  concurrency: ({ servers }) => (servers?.length ?? 1) * CALLS_PER_SERVER,
  connect: async (config, context) => {
    const connection = new MemcachedConnection(config, context);
    return openOrClose(context, connection, () => connection.open());
  },
  operations: {
    get: { args: Type.Object({ key }), run: (memcached, args) => memcached.get(args.key) },
    set: storing(OPCODE.set),
    add: storing(OPCODE.add),
    replace: storing(OPCODE.replace),
    delete: {
      args: Type.Object({ key }),
      run: async (memcached, args) => ({
        result: await memcached.isDone({ opcode: OPCODE.delete, key: args.key }),
      }),
    },
    incr: counting(OPCODE.incr),
    decr: counting(OPCODE.decr),
  },
});

function storing(opcode: number) {
  const args = Type.Object({ key, ttl_seconds });
  return {
    args,
    run: async (
      memcached: MemcachedConnection,
      args: { key: string; ttl_seconds?: number },
      { payload }: { readonly payload: Buffer },
    ) => {
      const extras = Buffer.concat([FLAGS, FLAGS]);
      extras.writeUInt32BE(expiration(args.ttl_seconds), FLAGS.length);
      return { result: await memcached.isDone({ opcode, key: args.key, extras, value: payload }) };
    },
  };
}

function counting(opcode: number) {
  const args = Type.Object({ key, by: Amount, initial: Type.Optional(Amount), ttl_seconds });
  return {
    args,
    run: async (
      memcached: MemcachedConnection,
      {
        key,
        by,
        initial,
        ttl_seconds: ttl,
      }: { key: string; by: number; initial?: number; ttl_seconds?: number },
    ) => {
      if (initial === undefined && ttl !== undefined) {
        throw invalid('args.ttl_seconds', 'is only for a number that is made, so it needs "initial"');
      }
      const extras = Buffer.alloc(20);
      extras.writeBigUInt64BE(BigInt(by), 0);
      extras.writeBigUInt64BE(BigInt(initial ?? 0), 8);
      extras.writeUInt32BE(initial === undefined ? DO_NOT_CREATE : expiration(ttl), 16);
      return { result: await memcached.count({ opcode, key, extras }) };
    },
  };
}

function keyProblem(text: string): string | undefined {
  const bytes = Buffer.byteLength(text);
  if (bytes < 1 || bytes > MAX_KEY_BYTES) return `must have 1 to ${MAX_KEY_BYTES} bytes`;
  return SPACE_OR_CONTROL.test(text) ? 'must not have spaces or control characters' : undefined;
}

/**
 * Converts a time to live to seconds, or to a timestamp if it is long; 0 means no expiry.
 * @throws ServiceError `invalid` when that is too late
 */
function expiration(ttl: number | undefined): number {
  if (ttl === undefined) return 0;
  if (ttl <= LONGEST_RELATIVE_S) return ttl;
  const now = Math.floor(Date.now() / 1000);
  if (now + ttl <= LAST_TIME_S) return now + ttl;
  throw invalid('args.ttl_seconds', `must be at most ${LAST_TIME_S - now}; leave it out to keep the value`);
}

class MemcachedConnection implements Connection {
  readonly #servers: readonly MemcachedServer[];
  #isOpen = false;

  constructor(config: ServiceConfig<'memcached'>, { onLost }: DriverContext) {
    this.#servers = addressesOf(config).map(
      (address) => new MemcachedServer(address, (error) => this.#isOpen && onLost(error)),
    );
  }

  async open(): Promise<void> {
    await this.test();
    this.#isOpen = true;
  }

  /** All servers must answer, because each has a share of the keys. */
  async test(): Promise<string> {
    const replies = await Promise.all(this.#servers.map((server) => server.send({ opcode: OPCODE.version })));
    const versions = replies.map((reply) => {
      if (reply.status !== OK) throw refusal(reply);
      return reply.value.toString();
    });
    return `memcached ${[...new Set(versions)].join(', ')}`;
  }

  async get(key: string): Promise<DriverAnswer> {
    const reply = await this.#send({ opcode: OPCODE.get, key });
    if (reply.status === NOT_FOUND) return { result: { found: false } };
    if (reply.status !== OK) throw refusal(reply);
    return { result: FOUND, payload: reply.value };
  }

  /** Whether a replaced or deleted key existed, or an added key did not. */
  async isDone(request: KeyRequest): Promise<boolean> {
    const reply = await this.#send(request);
    if (reply.status === NOT_FOUND || reply.status === EXISTS) return false;
    if (reply.status !== OK) throw refusal(reply);
    return true;
  }

  /** @returns the new value, an unsigned 64 bit integer; null if the counter does not exist */
  async count(request: KeyRequest): Promise<bigint | null> {
    const reply = await this.#send(request);
    if (reply.status === NOT_FOUND) return null;
    if (reply.status !== OK) throw refusal(reply);
    return reply.value.readBigUInt64BE();
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close();
  }

  /** Chooses the server as memjs does, so that other clients with memjs find the values. */
  #send(request: KeyRequest): Promise<BinaryReply> {
    const { length } = this.#servers;
    const index = length > 1 ? Utils.hashCode(request.key) % length : 0;
    return (this.#servers[index] as MemcachedServer).send(request);
  }
}

type KeyRequest = BinaryRequest & { readonly key: string };

function refusal({ status, value }: BinaryReply): ServiceError {
  const reason = REFUSALS[status] ?? `the server refused: ${value.toString()} (${status})`;
  return new ServiceError('backend', reason);
}

function addressesOf({ servers, host, port }: ServiceConfig<'memcached'>): ServerAddress[] {
  if (servers === undefined) return [{ host: host ?? '', port: port ?? DEFAULT_PORT }];
  return servers.map((server) => {
    const [, bracketed, name, digits] = /^(?:\[(.+)\]|([^:]*))(?::(\d+))?$/.exec(server) ?? [];
    const number = digits === undefined ? DEFAULT_PORT : Number(digits);
    const address = bracketed ?? name;
    if (!address || number < 1 || number > 65_535) {
      throw new ServiceError('unavailable', `servers: "${server}" is not of the form host:port`);
    }
    return { host: address, port: number };
  });
}
