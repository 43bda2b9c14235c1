/** The redis driver: a few connections, used in turn, on which calls follow each other without waiting. */
import { isUtf8 } from 'node:buffer';
import { Redis, ReplyError } from 'ioredis';
import { toError } from '../../errors.js';
import type { ServiceConfig } from '../../service-configs.js';
import { requireSendable } from '../answer-size.js';
import { unavailable } from '../connect-errors.js';
import type { Connection, Driver, DriverAnswer, DriverCall, DriverContext } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { readCommand, readGetArgs, readSetArgs } from './redis-commands.js';

type Config = ServiceConfig<'redis'>;

/** Calls under way on one connection: enough for all of a burst to be sent at once. */
const CALLS_PER_CONNECTION = 64;
/** A connection with calls under way that has brought nothing for this long is dead. Scripts may run for a while. */
const SILENCE_LIMIT_MS = 20_000;

const FOUND = { found: true };
const NOT_FOUND: DriverAnswer = { result: { found: false } };
const STORED: DriverAnswer = { result: true };
const NOT_STORED: DriverAnswer = { result: false };

export const redisDriver: Driver<'redis'> = {
  type: 'redis',
  operations: ['get', 'set', 'command'],
  concurrency: ({ pool_size }) => pool_size * CALLS_PER_CONNECTION,
  async connect(config, context) {
    const where = `${config.host}:${config.port}`;
    const clients = Array.from({ length: config.pool_size }, () => createClient(config));
    const closeAll = () => {
      for (const client of clients) closeClient(client);
    };
    context.signal.addEventListener('abort', closeAll, { once: true });
    try {
      await Promise.all(clients.map((client) => open(client, config, where)));
      return new RedisConnection(clients, where, context);
    } catch (thrown) {
      closeAll();
      throw unavailable(thrown, where);
    } finally {
      context.signal.removeEventListener('abort', closeAll);
    }
  },
};

/** A client that connects when it is told to, once, and never again. */
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
    // Integers come as texts, bulk strings as buffers: so they can be told apart, and are exact.
    stringNumbers: true,
  });
}

/** Connects and takes the steps that ioredis would take by itself, but without making errors of them. */
async function open(client: Redis, config: Config, where: string): Promise<void> {
  let failure: Error | undefined;
  client.on('error', (error: Error) => {
    failure ??= error;
  });
  try {
    await client.connect();
    if (config.password) await client.call('AUTH', config.password);
    if (config.database !== 0) await client.call('SELECT', String(config.database));
    await client.call('PING');
  } catch (thrown) {
    const reason = toError(thrown);
    throw unavailable(failure ?? reason, where, handshakeReason(reason, config, where));
  }
}

/** What the server's refusal during the handshake means for whoever has written the config. */
function handshakeReason(thrown: Error, config: Config, where: string): string | undefined {
  if (!(thrown instanceof ReplyError)) return undefined;
  const { message } = thrown;
  if (/^NOAUTH\b/.test(message)) return `the server at ${where} wants a password, and the config has none`;
  if (/^WRONGPASS\b|invalid password/.test(message))
    return `the server at ${where} did not accept the password`;
  if (/without any password configured|no password is set/.test(message)) {
    return `the server at ${where} has no password, but the config has one`;
  }
  if (/DB index is out of range|invalid DB index/i.test(message)) {
    return `the server at ${where} has no database ${config.database}`;
  }
  return `the server at ${where} refused: ${message}`;
}

/** Closes at once, whatever is under way. */
function closeClient(client: Redis): void {
  client.disconnect();
  // There is none before it connects.
  const stream: Redis['stream'] | undefined = client.stream;
  stream?.destroy();
}

class RedisConnection implements Connection {
  readonly #clients: readonly Redis[];
  readonly #where: string;
  readonly #watch: NodeJS.Timeout;
  #next = 0;
  #isClosed = false;
  #failure: Error | undefined;

  constructor(clients: readonly Redis[], where: string, { onLost }: DriverContext) {
    this.#clients = clients;
    this.#where = where;
    for (const client of clients) {
      client.on('error', (error: Error) => {
        this.#failure ??= error;
      });
      client.once('end', () => {
        if (this.#isClosed) return;
        this.#isClosed = true;
        onLost(this.#lost());
      });
    }
    this.#watch = watchSilence(clients, (client) => {
      this.#failure ??= new Error(`${where} has not answered for ${SILENCE_LIMIT_MS / 1000} s`);
      closeClient(client);
    });
  }

  async test(): Promise<string> {
    const info = await this.#send('INFO', ['server']).catch((error: ServiceError) => {
      // Not every user may ask for it; that the server answered is enough.
      if (error.kind === 'backend') return undefined;
      throw error;
    });
    const version = Buffer.isBuffer(info) ? /^redis_version:(\S+)/m.exec(info.toString())?.[1] : undefined;
    return version === undefined ? 'Redis' : `Redis ${version}`;
  }

  call(call: DriverCall): Promise<DriverAnswer> {
    switch (call.operation) {
      case 'get':
        return this.#get(call.args);
      case 'set':
        return this.#set(call.args, call.payload);
      default:
        return this.#command(call.payload);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#watch);
    for (const client of this.#clients) closeClient(client);
  }

  async #get(args: unknown): Promise<DriverAnswer> {
    const key = readGetArgs(args);
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

  async #set(args: unknown, value: Buffer): Promise<DriverAnswer> {
    const reply = await this.#send('SET', readSetArgs(args, value));
    return reply === null ? NOT_STORED : STORED;
  }

  async #command(payload: Buffer): Promise<DriverAnswer> {
    const { name, args } = readCommand(payload);
    const answer = encodeReply(await this.#send(name, args));
    requireSendable(Buffer.byteLength(answer));
    return { payload: answer };
  }

  /** The name is in capitals: ioredis reshapes the replies of some commands that it knows in small letters. */
  async #send(name: string, args: (string | Buffer)[]): Promise<unknown> {
    try {
      return await this.#client().callBuffer(name, args);
    } catch (thrown) {
      throw this.#explain(thrown);
    }
  }

  /** Each in turn. */
  #client(): Redis {
    this.#next = this.#next + 1 < this.#clients.length ? this.#next + 1 : 0;
    return this.#clients[this.#next] as Redis;
  }

  #explain(thrown: unknown): ServiceError {
    if (thrown instanceof ReplyError) return new ServiceError('backend', (thrown as Error).message);
    return this.#lost();
  }

  #lost(): ServiceError {
    return unavailable(
      this.#failure,
      this.#where,
      this.#failure ? undefined : `${this.#where} closed the connection`,
    );
  }
}

/** Ends connections whose server is gone without having closed them. Costs the single call nothing. */
function watchSilence(clients: readonly Redis[], onSilence: (client: Redis) => void): NodeJS.Timeout {
  const last = new Map<Redis, number>();
  const timer = setInterval(() => {
    for (const client of clients) {
      const received = client.stream.bytesRead;
      if (client.commandQueue.length === 0) last.delete(client);
      else if (last.get(client) === received) onSilence(client);
      else last.set(client, received);
    }
  }, SILENCE_LIMIT_MS);
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
