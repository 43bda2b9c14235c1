/** The memcached driver: the operations, and which of several servers has a key. */
import { Utils } from 'memjs';
import type { ServiceConfig } from '../../service-configs.js';
import type { Connection, Driver, DriverAnswer, DriverCall } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { readCounterArgs, readKey, readStoreArgs } from './memcached-args.js';
import { type Address, MemcachedServer, type Reply } from './memcached-server.js';

const DEFAULT_PORT = 11_211;
/** Calls under way at one server. It takes them one after the other, without waiting for the way between them. */
const CALLS_PER_SERVER = 64;

const OPCODE = { get: 0, set: 1, add: 2, replace: 3, delete: 4, incr: 5, decr: 6, version: 11 } as const;
const OK = 0;
const NOT_FOUND = 1;
const EXISTS = 2;
const REFUSALS: Readonly<Record<number, string>> = {
  3: 'the value is too large: the server takes 1 MiB, unless it was started with another limit (-I)',
  4: 'the server did not accept the arguments',
  5: 'the value was not stored',
  6: 'the value is not a number that can be counted up or down',
  8: 'the server wants a user and a password, which is not supported',
  32: 'the server wants a user and a password, which is not supported',
  129: 'the server does not know the operation',
  130: 'the server is out of memory',
};

const FLAGS = Buffer.alloc(4);
const FOUND = { found: true };

export const memcachedDriver: Driver<'memcached'> = {
  type: 'memcached',
  operations: ['get', 'set', 'add', 'replace', 'delete', 'incr', 'decr'],
  concurrency: ({ servers }) => (servers?.length ?? 1) * CALLS_PER_SERVER,
  async connect(config, context) {
    let isOpen = false;
    const servers = addressesOf(config).map(
      (address) => new MemcachedServer(address, (error) => isOpen && context.onLost(error)),
    );
    const connection = new MemcachedConnection(servers);
    const close = () => void connection.close();
    context.signal.addEventListener('abort', close, { once: true });
    try {
      await connection.test();
      isOpen = true;
      return connection;
    } catch (thrown) {
      close();
      throw thrown;
    } finally {
      context.signal.removeEventListener('abort', close);
    }
  },
};

class MemcachedConnection implements Connection {
  readonly #servers: readonly MemcachedServer[];

  constructor(servers: readonly MemcachedServer[]) {
    this.#servers = servers;
  }

  /** All servers must answer: each has a share of the keys. */
  async test(): Promise<string> {
    const replies = await Promise.all(this.#servers.map((server) => server.send({ opcode: OPCODE.version })));
    const versions = replies.map((reply) => {
      if (reply.status !== OK) throw refusal(reply);
      return reply.value.toString();
    });
    return `memcached ${[...new Set(versions)].join(', ')}`;
  }

  async call({ operation, args, payload }: DriverCall): Promise<DriverAnswer> {
    const key = readKey(args);
    switch (operation) {
      case 'get':
        return this.#get(key);
      case 'delete':
        return { result: await this.#isDone(key, { opcode: OPCODE.delete, key }) };
      case 'incr':
      case 'decr':
        return { result: await this.#count(OPCODE[operation], key, args) };
      default: {
        const extras = Buffer.concat([FLAGS, readStoreArgs(args)]);
        const opcode = OPCODE[operation as 'set' | 'add' | 'replace'];
        return { result: await this.#isDone(key, { opcode, key, extras, value: payload }) };
      }
    }
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close();
  }

  async #get(key: string): Promise<DriverAnswer> {
    const reply = await this.#serverOf(key).send({ opcode: OPCODE.get, key });
    if (reply.status === NOT_FOUND) return { result: { found: false } };
    if (reply.status !== OK) throw refusal(reply);
    return { result: FOUND, payload: reply.value };
  }

  /** Whether something was there to be replaced or deleted, or nothing where it was to be added. */
  async #isDone(key: string, request: Parameters<MemcachedServer['send']>[0]): Promise<boolean> {
    const reply = await this.#serverOf(key).send(request);
    if (reply.status === NOT_FOUND || reply.status === EXISTS) return false;
    if (reply.status !== OK) throw refusal(reply);
    return true;
  }

  /** @returns the new number, a 64 bit integer without sign; null when there is none */
  async #count(opcode: number, key: string, args: unknown): Promise<bigint | null> {
    const reply = await this.#serverOf(key).send({ opcode, key, extras: readCounterArgs(args) });
    if (reply.status === NOT_FOUND) return null;
    if (reply.status !== OK) throw refusal(reply);
    return reply.value.readBigUInt64BE();
  }

  /** The same as memjs chooses, so that other programs that use it find the values. */
  #serverOf(key: string): MemcachedServer {
    const { length } = this.#servers;
    return this.#servers[length > 1 ? Utils.hashCode(key) % length : 0] as MemcachedServer;
  }
}

function refusal({ status, value }: Reply): ServiceError {
  return new ServiceError(
    'backend',
    REFUSALS[status] ?? `the server refused: ${value.toString()} (${status})`,
  );
}

function addressesOf({ servers, host, port }: ServiceConfig<'memcached'>): Address[] {
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
