/** The mongodb driver: the client, which has its own pool, and the errors that handlers and operators see. */
import {
  BSON,
  type Db,
  MongoClient,
  MongoClientClosedError,
  type MongoClientOptions,
  MongoDriverError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoNotConnectedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
} from 'mongodb';
import { toError } from '../../../errors.js';
import { mongodbUriProblem } from '../../../model/mongodb-uri.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { type Connection, type DriverContext, defineDriver } from '../../driver.js';
import { type DriverCall, stoppedOnAbort } from '../../driver-call.js';
import { networkReason, REASONS, unavailable } from '../../failures.js';
import type { DriverAnswer, ServiceOperation } from '../../operations.js';
import { ServiceError } from '../../service-error.js';
import { type MongodbOperation, OPERATIONS } from './operations.js';

type Config = ServiceConfig<'mongodb'>;

const DEFAULT_PORT = 27_017;
/** Shorter than the timeout of the actor, whose error would not give the reason. */
const CONNECT_TIMEOUT_MS = 4_000;
/** Timeout of a silent server during an operation. */
const IDLE_TIMEOUT_MS = 60_000;
const HEARTBEAT_MS = 5_000;

const UNAUTHORIZED = 13;
const AUTHENTICATION_FAILED = 18;

const CONNECTION_ERRORS = [
  MongoNetworkError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoNotConnectedError,
  MongoClientClosedError,
];

export const mongodbDriver = defineDriver({
  type: 'mongodb',
  concurrency: ({ pool_size }) => pool_size,
  connect: async (config, context) => {
    const client = createClient(config);
    const where = client.options.srvHost ?? client.options.hosts.map(String).join(', ');
    const lost = whenLost(client);
    const db = client.db(config.database);
    try {
      // With several servers, the first error is more specific than the final timeout.
      const signedIn = () => Promise.race([signIn(db), lost]);
      await stoppedOnAbort(context, () => void closeClient(client), signedIn);
      return new MongodbConnection(client, db, where, lost, context);
    } catch (thrown) {
      await closeClient(client);
      const hasUser = client.options.credentials !== undefined;
      throw unavailable(thrown, where, refusalReason(thrown, where, hasUser));
    }
  },
  operations: Object.fromEntries(
    Object.entries(OPERATIONS).map(([name, operation]) => [name, operationOf(operation)]),
  ),
});

function operationOf({ args, perform }: MongodbOperation): ServiceOperation<MongodbConnection> {
  return {
    args,
    run: (mongodb, given, call) =>
      mongodb.run(call, (db) => perform(db, given as { readonly collection: string }, call)),
  };
}

/** @throws ServiceError for a config that cannot be used, without the user information of the URI */
function createClient(config: Config): MongoClient {
  const { uri, username, password, ssl_root_cert, pool_size } = config;
  // Those of earlier versions were stored without this check.
  const problem = uri === undefined ? undefined : mongodbUriProblem(uri);
  if (problem !== undefined) throw new ServiceError('unavailable', `uri: ${problem}`);
  const options: MongoClientOptions = {
    maxPoolSize: pool_size,
    serverSelectionTimeoutMS: CONNECT_TIMEOUT_MS,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    socketTimeoutMS: IDLE_TIMEOUT_MS,
    heartbeatFrequencyMS: HEARTBEAT_MS,
    promoteLongs: false,
    bsonRegExp: true,
    ...(username !== undefined && { auth: { username, password: password ?? '' } }),
    ...(ssl_root_cert !== undefined && { ca: ssl_root_cert }),
    // A single server; a replica set needs a URI.
    ...(uri === undefined && { directConnection: true }),
    // The default of MongoDB: users are defined in `admin`, unless the URI names another database.
    ...(uri === undefined && username !== undefined && { authSource: 'admin' }),
  };
  try {
    return new MongoClient(uri ?? uriOf(config), options);
  } catch (thrown) {
    // Not as the cause, because its stack contains the same secrets.
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

/** Connects and runs a command that requires a login. */
async function signIn(db: Db): Promise<void> {
  await db.command({
    listCollections: 1,
    nameOnly: true,
    authorizedCollections: true,
    cursor: { batchSize: 1 },
  });
}

/** Rejects when no server can be reached any more; never resolves. */
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

/** The topology of the library: its connections and the monitors of the servers. */
interface Closable {
  readonly topology?: { close(): void };
}

/**
 * Closes everything at once. By default the library first ends its sessions on the server, which takes long with a
 * silent server.
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
      // An error response also proves that the server answers.
      if (thrown instanceof MongoServerError) return 'MongoDB';
      throw callError(thrown, this.#where);
    }
  }

  /** Runs an operation that returns Extended JSON. */
  async run(call: DriverCall, work: (db: Db) => Promise<string>): Promise<DriverAnswer> {
    // Otherwise the library would wait until a server can be reached again.
    if (this.#failure) throw this.#failure;
    try {
      return { payload: await work(this.#db) };
    } catch (thrown) {
      if (call.isAborted) {
        const message = 'the call was aborted; what it did is not known';
        throw new ServiceError('deadline', message, { cause: thrown });
      }
      // Errors of the library about its own state would be misleading.
      if (this.#isClosed) throw unavailable(thrown, this.#where, REASONS.closedHere(this.#where));
      throw callError(thrown, this.#where);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await closeClient(this.#client);
  }
}

/** Why a connection could not be opened, if the server has refused or not answered. */
function refusalReason(thrown: unknown, where: string, hasUser: boolean): string | undefined {
  const error = serverError(thrown);
  if (!error) return noAnswerReason(thrown, where);
  if (error.code === AUTHENTICATION_FAILED) {
    return REASONS.login(where);
  }
  if (error.code === UNAUTHORIZED) {
    return hasUser
      ? `the server at ${where} does not let this user into the database: ${error.message}`
      : `the server at ${where} requires a username and a password, and the config has none`;
  }
  return REASONS.refused(where, error.message);
}

/** The library has one error for a server that does not answer and for one that is not primary yet. */
function noAnswerReason(thrown: unknown, where: string): string | undefined {
  const isTimeout = thrown instanceof MongoServerSelectionError || thrown instanceof MongoNetworkTimeoutError;
  return isTimeout && networkReason(thrown, where) === undefined
    ? `${where} did not answer in time, or is no server that takes writes`
    : undefined;
}

/** The error response of the server in the chain of causes. */
function serverError(thrown: unknown): MongoServerError | undefined {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error instanceof MongoServerError) return error;
  }
  return undefined;
}

/** The error of a call. */
function callError(thrown: unknown, where: string): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const error = toError(thrown);
  if (CONNECTION_ERRORS.some((kind) => error instanceof kind)) {
    return unavailable(error, where, noAnswerReason(error, where));
  }
  if (error instanceof MongoServerError) {
    const code = [error.codeName, error.code].filter((part) => part !== undefined).join(' ');
    return new ServiceError('backend', code === '' ? error.message : `${error.message} (${code})`);
  }
  // Refused by the library: values that BSON cannot represent, invalid names and options.
  if (error instanceof MongoDriverError || error instanceof BSON.BSONError || error instanceof RangeError) {
    return new ServiceError('invalid', error.message, { cause: error });
  }
  return unavailable(error, where);
}
