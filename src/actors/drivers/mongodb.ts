/** The mongodb driver: the client, which has a pool of its own, and what of it a service is allowed to see. */
import { type Db, MongoClient, type MongoClientOptions, MongoServerError } from 'mongodb';
import { toError } from '../../errors.js';
import type { ServiceConfig } from '../../service-configs.js';
import { unavailable } from '../connect-errors.js';
import type { Connection, Driver, DriverAnswer, DriverCall, DriverContext } from '../driver.js';
import { ServiceError } from '../service-error.js';
import { callError, connectError } from './mongodb-errors.js';
import { runOperation } from './mongodb-operations.js';
import { OPERATIONS, type Operation } from './mongodb-payload.js';

type Config = ServiceConfig<'mongodb'>;

const DEFAULT_PORT = 27_017;
/** Whoever tests a connection wants to read the reason before the actor's own limit. */
const CONNECT_TIMEOUT_MS = 4_000;
/** A server that has sent nothing for this long during an operation is gone. */
const SILENCE_LIMIT_MS = 60_000;
const HEARTBEAT_MS = 5_000;

export const mongodbDriver: Driver<'mongodb'> = {
  type: 'mongodb',
  operations: OPERATIONS,
  concurrency: ({ pool_size }) => pool_size,
  async connect(config, context) {
    const client = createClient(config);
    const where = client.options.srvHost ?? client.options.hosts.map(String).join(', ');
    const lost = whenLost(client);
    const close = () => void closeClient(client);
    context.signal.addEventListener('abort', close, { once: true });
    try {
      const db = client.db(config.database);
      // With several servers the first failure says more than the time that is up in the end.
      await Promise.race([signIn(db), lost]);
      return new MongodbConnection(client, db, where, lost, context);
    } catch (thrown) {
      await closeClient(client);
      throw connectError(thrown, where, client.options.credentials !== undefined);
    } finally {
      context.signal.removeEventListener('abort', close);
    }
  },
};

/** @throws ServiceError for a config that the library does not take; never with what stands before the host in a URI */
function createClient(config: Config): MongoClient {
  const { uri, username, password, pool_size } = config;
  const options: MongoClientOptions = {
    maxPoolSize: pool_size,
    serverSelectionTimeoutMS: CONNECT_TIMEOUT_MS,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    socketTimeoutMS: SILENCE_LIMIT_MS,
    heartbeatFrequencyMS: HEARTBEAT_MS,
    promoteLongs: false,
    bsonRegExp: true,
    ...(username !== undefined && { auth: { username, password: password ?? '' } }),
    // A server of its own; who wants a replica set writes a URI.
    ...(uri === undefined && { directConnection: true }),
    // As everywhere with MongoDB: users are those of `admin`, unless the URI names another database.
    ...(uri === undefined && username !== undefined && { authSource: 'admin' }),
  };
  try {
    return new MongoClient(uri ?? uriOf(config), options);
  } catch (thrown) {
    // Not as the cause: its stack has the same words.
    throw new ServiceError(
      'unavailable',
      `uri: cannot be used: ${withoutSecrets(toError(thrown).message, config)}`,
    );
  }
}

function uriOf({ host = '', port = DEFAULT_PORT }: Config): string {
  if (/[/?#@,\s]/.test(host)) throw new Error(`"${host}" is not the name of a host`);
  return `mongodb://${host.includes(':') ? `[${host}]` : host}:${port}/`;
}

function withoutSecrets(message: string, { uri = '', password }: Config): string {
  const userInfo = /^[^/]*\/\/(.*)@/s.exec(uri)?.[1] ?? '';
  const secrets = [uri, userInfo, ...userInfo.split(/[:@]/), password ?? ''];
  return secrets
    .flatMap((secret) => [secret, decoded(secret)])
    .filter((secret) => secret !== '')
    .reduce((text, secret) => text.replaceAll(secret, '***'), message);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Connects and asks for what nobody gets to see who is not let in. */
async function signIn(db: Db): Promise<void> {
  await db.command({
    listCollections: 1,
    nameOnly: true,
    authorizedCollections: true,
    cursor: { batchSize: 1 },
  });
}

/** Rejects when none of the servers can be reached any more; never resolves. */
function whenLost(client: MongoClient): Promise<never> {
  const lost = new Promise<never>((_resolve, reject) => {
    client.on('topologyDescriptionChanged', ({ newDescription }) => {
      const errors = Array.from(newDescription.servers.values(), ({ error }) => error);
      if (errors.length > 0 && errors.every(Boolean)) reject(errors[0]);
    });
  });
  lost.catch(() => undefined);
  return lost;
}

/** What the library calls a topology: its connections and those that watch the servers. */
interface Closable {
  readonly topology?: { close(): void };
}

/**
 * Closes everything at once. By itself the library first tells the server that its sessions are over, and a server that
 * keeps silent would hold that up for long.
 */
async function closeClient(client: MongoClient): Promise<void> {
  const { topology } = client as unknown as Closable;
  const closing = client.close(true);
  topology?.close();
  await closing;
}

class MongodbConnection implements Connection {
  readonly #client: MongoClient;
  readonly #db: Db;
  readonly #where: string;
  #isClosed = false;
  #failure: ServiceError | undefined;

  constructor(client: MongoClient, db: Db, where: string, lost: Promise<never>, { onLost }: DriverContext) {
    this.#client = client;
    this.#db = db;
    this.#where = where;
    lost.catch((error: Error) => {
      this.#failure = callError(error, where);
      if (!this.#isClosed) onLost(this.#failure);
    });
  }

  async test(): Promise<string> {
    try {
      const { version } = await this.#db.command({ buildInfo: 1 });
      return `MongoDB ${String(version)}`;
    } catch (thrown) {
      // That it answered is enough.
      if (thrown instanceof MongoServerError) return 'MongoDB';
      throw callError(thrown, this.#where);
    }
  }

  async call(call: DriverCall): Promise<DriverAnswer> {
    // The library would wait for the servers to come back.
    if (this.#failure) throw this.#failure;
    try {
      return { payload: await runOperation(this.#db, call.operation as Operation, call) };
    } catch (thrown) {
      if (call.signal.aborted) {
        throw new ServiceError('deadline', 'the call was given up; what it did is not known', {
          cause: thrown,
        });
      }
      // What the library says of its own state then would only mislead.
      if (this.#isClosed)
        throw unavailable(thrown, this.#where, `the connection to ${this.#where} is closed`);
      throw callError(thrown, this.#where);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await closeClient(this.#client);
  }
}
