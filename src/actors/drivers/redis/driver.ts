/** The redis driver: calls are pipelined on a few connections, round robin. */
import { isUtf8 } from 'node:buffer';
import { Redis, ReplyError } from 'ioredis';
import { toError } from '../../../errors.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { type Connection, type DriverContext, defineDriver, openOrClose } from '../../driver.js';
import { REASONS, unavailable } from '../../failures.js';
import { type DriverAnswer, NO_ARGS, requireSendable } from '../../operations.js';
import { Type } from '../../schema.js';
import { ServiceError } from '../../service-error.js';
import { readCommand } from './commands.js';

type Config = ServiceConfig<'redis'>;

/** Concurrent calls per connection, which are pipelined. */
const CALLS_PER_CONNECTION = 64;
/** Idle timeout of a connection with pending calls. Scripts may run for a while. */
const IDLE_TIMEOUT_MS = 20_000;

const FOUND = { found: true };
const NOT_FOUND: DriverAnswer = { result: { found: false } };
const STORED: DriverAnswer = { result: true };
const NOT_STORED: DriverAnswer = { result: false };

export const redisDriver = defineDriver({
  type: 'redis',
  concurrency: ({ pool_size }) => pool_size * CALLS_PER_CONNECTION,
  connect: async (config, context) => {
    const connection = new RedisConnection(config, context);
    return openOrClose(context, connection, () => connection.open());
  },
  operations: {
    get: {
      args: Type.Object({ key: Type.String() }),
      run: (redis, { key }) => redis.get(key),
    },
    set: {
      args: Type.Object({
        key: Type.String(),
        ttl_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
        only_if: Type.Optional(Type.Unsafe<'absent' | 'present'>({ enum: ['absent', 'present'] })),
      }),
      run: async (redis, { key, ttl_ms, only_if }, { payload }) => {
        const args = [key, payload];
        if (ttl_ms !== undefined) args.push('PX', String(ttl_ms));
        if (only_if !== undefined) args.push(only_if === 'absent' ? 'NX' : 'XX');
        return (await redis.send('SET', args)) === null ? NOT_STORED : STORED;
      },
    },
    command: {
      args: NO_ARGS,
      run: async (redis, _args, { payload }) => {
        const { name, args } = readCommand(payload, redis.allowsScripts);
        const answer = encodeReply(await redis.send(name, args));
        requireSendable(Buffer.byteLength(answer));
        return { payload: answer };
      },
    },
  },
});

/** A client that connects once, on request, and never reconnects. */
function createClient(config: Config): Redis {
  return new Redis({
    host: config.host,
    port: config.port,
    ...(config.use_tls && { tls: config.ssl_root_cert === undefined ? {} : { ca: config.ssl_root_cert } }),
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    connectTimeout: 0,
    keepAlive: 30_000,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    // Integers are returned as strings and bulk strings as buffers: distinguishable and exact.
    stringNumbers: true,
  });
}

/** The reason of a refused handshake, in terms of the config. */
function handshakeReason(thrown: Error, config: Config, where: string): string | undefined {
  if (!(thrown instanceof ReplyError)) return undefined;
  const { message } = thrown;
  if (/^NOAUTH\b/.test(message)) return `the server at ${where} requires a password, and the config has none`;
  if (/^WRONGPASS\b|invalid password/.test(message))
    return `the server at ${where} did not accept the password`;
  if (/without any password configured|no password is set/.test(message)) {
    return `the server at ${where} has no password, but the config has one`;
  }
  if (/DB index is out of range|invalid DB index/i.test(message)) {
    return `the server at ${where} has no database ${config.database}`;
  }
  return REASONS.refused(where, message);
}

/** Closes at once, in any state. */
function closeClient(client: Redis): void {
  client.disconnect();
  // Undefined before it connects.
  const stream: Redis['stream'] | undefined = client.stream;
  stream?.destroy();
}

class RedisConnection implements Connection {
  readonly #config: Config;
  readonly #context: DriverContext;
  readonly #where: string;
  readonly #clients: readonly Redis[];
  #watchdog: NodeJS.Timeout | undefined;
  #next = 0;
  #isClosed = false;
  #failure: Error | undefined;

  constructor(config: Config, context: DriverContext) {
    this.#config = config;
    this.#context = context;
    this.#where = `${config.host}:${config.port}`;
    this.#clients = Array.from({ length: config.pool_size }, () => createClient(config));
  }

  get allowsScripts(): boolean {
    return this.#config.allow_scripts === true;
  }

  async open(): Promise<void> {
    await Promise.all(this.#clients.map((client) => this.#open(client)));
    for (const client of this.#clients) client.once('end', () => this.#onEnd());
    this.#watchdog = watchIdle(this.#clients, (client) => {
      this.#failure ??= new Error(`${this.#where} has not answered for ${IDLE_TIMEOUT_MS / 1000} s`);
      closeClient(client);
    });
  }

  async test(): Promise<string> {
    const info = await this.send('INFO', ['server']).catch((error: ServiceError) => {
      // Some users may not run INFO; the error also proves that the server answers.
      if (error.kind === 'backend') return undefined;
      throw error;
    });
    const version = Buffer.isBuffer(info) ? /^redis_version:(\S+)/m.exec(info.toString())?.[1] : undefined;
    return version === undefined ? 'Redis' : `Redis ${version}`;
  }

  async get(key: string): Promise<DriverAnswer> {
    let value: Buffer | null;
    try {
      value = await this.#client().getBuffer(key);
    } catch (thrown) {
      throw this.#explain(thrown);
    }
    if (value === null) return NOT_FOUND;
    requireSendable(value.length);
    return { result: FOUND, payload: value };
  }

  /** @param name in upper case, because ioredis transforms replies of some commands in lower case */
  async send(name: string, args: (string | Buffer)[]): Promise<unknown> {
    try {
      return await this.#client().callBuffer(name, args);
    } catch (thrown) {
      throw this.#explain(thrown);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#watchdog);
    for (const client of this.#clients) closeClient(client);
  }

  /** Connects and runs the handshake of ioredis, but without hiding its errors. */
  async #open(client: Redis): Promise<void> {
    const { password, database } = this.#config;
    client.on('error', (error: Error) => {
      this.#failure ??= error;
    });
    try {
      await client.connect();
      if (password) await client.call('AUTH', password);
      if (database !== 0) await client.call('SELECT', String(database));
      await client.call('PING');
    } catch (thrown) {
      const reason = handshakeReason(toError(thrown), this.#config, this.#where);
      throw unavailable(this.#failure ?? thrown, this.#where, reason);
    }
  }

  #onEnd(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#context.onLost(this.#lost());
  }

  /** Selects a connection, round robin. */
  #client(): Redis {
    this.#next = this.#next + 1 < this.#clients.length ? this.#next + 1 : 0;
    return this.#clients[this.#next] as Redis;
  }

  #explain(thrown: unknown): ServiceError {
    if (thrown instanceof ReplyError) return new ServiceError('backend', (thrown as Error).message);
    return this.#lost();
  }

  #lost(): ServiceError {
    return unavailable(this.#failure, this.#where, this.#failure ? undefined : REASONS.closed(this.#where));
  }
}

/** Detects lost servers by connections that receive nothing, without cost per call. */
function watchIdle(clients: readonly Redis[], onIdle: (client: Redis) => void): NodeJS.Timeout {
  const last = new Map<Redis, number>();
  const timer = setInterval(() => {
    for (const client of clients) {
      const received = client.stream.bytesRead;
      if (client.commandQueue.length === 0) last.delete(client);
      else if (last.get(client) === received) onIdle(client);
      else last.set(client, received);
    }
  }, IDLE_TIMEOUT_MS);
  return timer.unref();
}

/**
 * Writes a reply as JSON.
 * @throws ServiceError backend for an error within an array, which a script can return
 */
function encodeReply(reply: unknown): string {
  if (reply === null) return 'null';
  // An integer: see `stringNumbers`.
  if (typeof reply === 'string') return reply;
  if (Buffer.isBuffer(reply)) {
    return isUtf8(reply) ? JSON.stringify(reply.toString()) : `{"base64":"${reply.toString('base64')}"}`;
  }
  if (Array.isArray(reply)) return `[${reply.map(encodeReply).join(',')}]`;
  throw new ServiceError('backend', `within the reply: ${toError(reply).message}`);
}
