/**
 * The process of a postgres or sqlite service for tests of drivers and actors: it is started and asked as an actor host
 * does, and called over its socket as handlers do. What only code in one process can do is done as close as handlers
 * come to it.
 * A call that a test aborts has a short deadline instead; an abandoned transaction is one whose connection is closed.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import type { ActorTransaction } from '../../src/actors/actor-transaction.js';
import type { Connection, Driver, Transaction } from '../../src/actors/driver.js';
import type { ActorCall, DriverCall } from '../../src/actors/driver-call.js';
import { CONNECT_TIMEOUT_MS } from '../../src/actors/open-connection.js';
import type { CheckedOperation, DriverAnswer } from '../../src/actors/operations.js';
import type { ConnectionState } from '../../src/actors/reconnecting-connection.js';
import { ServiceError } from '../../src/actors/service-error.js';
import type { PoolUse } from '../../src/actors/service-metrics.js';
import { testInProcess } from '../../src/actors/service-process/isolated-test.js';
import { ServiceRun } from '../../src/actors/service-process/service-run.js';
import { atRealPaths, look } from '../../src/actors/service-process/sqlite-paths.js';
import type { Starter } from '../../src/actors/service-process/starter.js';
import { tokenSigner } from '../../src/actors/service-process/token-signer.js';
import { objectFolder, runDirectory, serviceFolder, tokenFolder } from '../../src/bootstrap/run-directory.js';
import type { ConnectionTest } from '../../src/model/connection-test.js';
import type { ServiceConfig } from '../../src/model/service-configs.js';
import { pathOf, type SqliteFolders } from '../../src/model/sqlite-folders.js';
import { signServiceToken } from '../../src/secrets/service-token.js';
import { TestDriverCall } from './callable-connection.js';
import { createTestLog } from './log.js';
import { connectTo, type ServiceAnswer, type ServiceClient } from './service-client.js';
import { giveToServices } from './sqlite-folder.js';
import { openStarter } from './starter.js';
import { type TempDir, tempDir } from './temp.js';

type NativeType = 'postgres' | 'sqlite';

/** What is not in the config of a service. */
interface NativeOptions {
  /** The folders in which files of sqlite services may be; all unless given. */
  readonly sqliteFolders?: SqliteFolders | undefined;
  /** Whether a test makes its process end: it has lost its backend then. */
  readonly mayEnd?: boolean;
}

interface Service<T extends NativeType> extends NativeOptions {
  readonly type: T;
  readonly config: ServiceConfig<T>;
}

interface Started {
  readonly run: ServiceRun;
  readonly starter: Starter;
  readonly folder: TempDir;
  /** The folder of the sockets that handlers see. */
  readonly sockets: string;
}

const SERVICE_ID = '6ba7b810-9dad-41d1-80b4-00c04fd430c8';
const POOL = 'main-db';
/** The process that its calls are of. */
const HANDLER = { endpointId: '6ba7b811-9dad-41d1-80b4-00c04fd430c8', nonce: '1' };
const BINDINGS = [{ endpoint_id: HANDLER.endpointId, service_id: SERVICE_ID, pool_id: POOL }];
/** Those of the settings, but for the queue: tests make thousands of calls at once. */
const WORK = { answerBytes: 64 * 1024 ** 2, logsDebug: true, memoryMb: 512 };
const LIMITS = { queueLimit: 10_000, defaultCallMs: 10_000, longestCallMs: 60_000, handlerThreads: 64 };
/** Calls on one connection at once; a process takes some more. */
const MAX_CALLS = 200;
/** Long enough to see on the server that a call is running before it is aborted. */
const ABORTED_AFTER_MS = 3_000;

/** At once, as far as an actor host can say so. */
const CLOSE_MS = 1;

/** What a call sends. */
interface Sent {
  readonly op: string;
  readonly args?: unknown;
  readonly deadline_ms?: number;
  readonly tx?: boolean;
}

/** A connection and the calls on it. */
interface Lane {
  readonly client: Promise<ServiceClient>;
  readonly calls: Set<Promise<unknown>>;
}

/** The process of a service, and the connections of one handler with it. */
class NativeProcess {
  readonly #log = createTestLog().log;
  readonly #started: Promise<Started>;
  readonly #onState: (state: ConnectionState) => void;
  #state: ConnectionState = { kind: 'connecting' };
  #settled: (() => void)[] = [];
  readonly #lanes = new Set<Lane>();
  /** Its connections that are open. */
  readonly #clients = new Set<ServiceClient>();
  /** Why it has ended. */
  #end: string | undefined;
  readonly #ended: Promise<void>;
  #onEnded: () => void = () => undefined;
  #isEnding = false;
  /** Whether a test has ended it, in whatever way. */
  #hasBeenEnded = false;
  /** Resolves when it knows that it is to end. */
  #told: Promise<unknown> | undefined;

  constructor(service: Service<NativeType>, onState: (state: ConnectionState) => void = () => undefined) {
    this.#onState = onState;
    this.#ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
    this.#started = this.#start(service);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Resolves when the first attempt to connect has succeeded or failed. */
  async settled(): Promise<void> {
    await this.#started;
    if (this.#state.kind === 'connecting' && this.#end === undefined)
      await new Promise<void>((resolve) => this.#settled.push(resolve));
    if (this.#end !== undefined) throw new Error(`The process of the service has ended: ${this.#end}`);
  }

  /** The use of its pool now. */
  async use(): Promise<PoolUse | undefined> {
    const { run } = await this.#started;
    return (await run.measure())?.use;
  }

  /** Makes a call on one of the connections that are there for that. */
  async call(sent: Sent, payload: Buffer): Promise<DriverAnswer> {
    await this.#told;
    const { client, calls } = this.#freeLane();
    const answer = client.then((on) => on.send({ pool: POOL, ...sent }, payload));
    calls.add(answer);
    try {
      return this.answerOf(await answer);
    } finally {
      calls.delete(answer);
    }
  }

  /** Opens a connection of its own. @throws ServiceError when nobody listens */
  async open(): Promise<ServiceClient> {
    const { run, sockets } = await this.#started;
    await run.ready().catch(() => undefined); // it has ended, so that nobody listens
    const token = signServiceToken(tokenSigner(run.key), HANDLER);
    const client = await connectTo(join(sockets, run.socket), token).catch(() => {
      throw new ServiceError(
        this.#told !== undefined ? 'inactive' : 'unavailable',
        'the process of the service is closed',
      );
    });
    this.#clients.add(client);
    void client.closed.then(() => this.#clients.delete(client));
    return client;
  }

  /** @throws ServiceError when the call has failed */
  answerOf({ ok, kind, message = '', result, payload }: ServiceAnswer): DriverAnswer {
    if (ok) {
      return {
        ...(result !== undefined && { result }),
        ...(payload.length > 0 && { payload: new TextDecoder('utf-8', { fatal: true }).decode(payload) }),
      };
    }
    // The actor host says so to whom it has no other address to give.
    if (kind === 'moved' && this.#told !== undefined) throw new ServiceError('inactive', message);
    if (kind === undefined || kind === 'moved') throw new Error(`Unexpected answer: ${kind}: ${message}`);
    throw new ServiceError(kind, message);
  }

  /** Refuses new calls, waits for those in progress, and for its end. */
  async drain(): Promise<void> {
    const asked = this.#askToEnd();
    this.#isEnding = true;
    this.#told = asked.then(({ received }) => received);
    await (await asked).drained;
    await this.#ended;
    const { starter, folder } = await this.#started;
    await starter.close();
    await folder.remove();
    this.#expectEnd(/exit code 0/);
  }

  /** Closes everything at once; calls in progress fail. */
  async close(): Promise<void> {
    const { run, starter, folder } = await this.#started;
    this.#isEnding = true;
    await run.drain(CLOSE_MS);
    // They may still have answers to read.
    await Promise.all([...this.#clients].map((client) => client.closed));
    await starter.close();
    await folder.remove();
    this.#expectEnd(/^the actor host ends$/);
  }

  async #start({ type, config, sqliteFolders, mayEnd }: Service<NativeType>): Promise<Started> {
    const folder = await tempDir('native-service');
    const folders = await foldersOf(config, sqliteFolders);
    const starter = await openStarter(folder.path, folders);
    const runDir = await runDirectory(folder.path);
    const settings = {
      ...{ ...WORK, ...LIMITS, starter, sqliteFolders: folders },
      handlerFolder: await serviceFolder(runDir),
      objectFolder: await objectFolder(runDir),
      tokenFolder: await tokenFolder(runDir),
    };
    await writeFile(join(settings.tokenFolder, HANDLER.nonce), '');
    const work = { service: { id: SERVICE_ID, type }, config, bindings: BINDINGS, sqliteFolders: folders };
    const seen = await look(work, starter);
    const placed = seen ? atRealPaths(work, seen) : { ...work, sqliteFolder: undefined };
    const run = new ServiceRun(placed, settings, {
      onMessage: (message) => {
        if (message.type === 'log') this.#log[message.level](message.details, message.message);
        // The connection is closed while it ends, which is no news.
        if (message.type === 'state' && !this.#isEnding) this.#setState(message.state);
      },
      onEnd: (reason) => {
        this.#end = reason;
        if (mayEnd && !this.#isEnding) {
          this.#hasBeenEnded = true;
          this.#setState({ kind: 'unreachable', reason });
        }
        // Fails the suite.
        else if (!this.#isEnding) this.#log.error({ reason }, 'the process of the service has ended');
        this.#settle();
        this.#onEnded();
      },
    });
    return { run, starter, folder, sockets: settings.handlerFolder };
  }

  #expectEnd(reason: RegExp): void {
    if (!this.#hasBeenEnded && !reason.test(this.#end ?? ''))
      throw new Error(`The process of the service has ended: ${this.#end}`);
  }

  #setState(state: ConnectionState): void {
    this.#state = state;
    if (state.kind !== 'connecting') this.#settle();
    this.#onState(state);
  }

  #settle(): void {
    for (const settle of this.#settled.splice(0)) settle();
  }

  #freeLane(): Lane {
    for (const lane of this.#lanes) if (lane.calls.size < MAX_CALLS) return lane;
    const lane = { client: this.open(), calls: new Set<Promise<unknown>>() };
    this.#lanes.add(lane);
    void this.#leaveWhenAsked(lane);
    return lane;
  }

  /** As the SDK: makes no more calls on a connection that is asked to leave, and closes it after the last answer. */
  async #leaveWhenAsked(lane: Lane): Promise<void> {
    const client = await lane.client.catch(() => undefined);
    if (client) await Promise.race([client.retired, client.closed]);
    this.#lanes.delete(lane);
    await Promise.allSettled(lane.calls);
    await client?.close();
  }

  async #askToEnd(): Promise<{ drained: Promise<unknown>; received: Promise<unknown> }> {
    const { run } = await this.#started;
    // It has received the calls that were made so far when it answers another: at once, as no service has this one.
    const lanes = [...this.#lanes].map(async ({ client }) => (await client).send({ pool: POOL, op: 'none' }));
    await Promise.allSettled(lanes);
    const drained = run.drain(undefined);
    // Requests are received in their order.
    return { drained, received: run.measure().catch(() => undefined) };
  }
}

/** A transaction on a connection of its own. */
class RemoteTransaction implements ActorTransaction {
  readonly #process: NativeProcess;
  readonly #client: ServiceClient;
  #isAbandoned = false;

  private constructor(process: NativeProcess, client: ServiceClient) {
    this.#process = process;
    this.#client = client;
  }

  static async begin(process: NativeProcess, timeoutMs: number): Promise<RemoteTransaction> {
    const client = await process.open();
    void client.retired.then(() => client.close());
    const transaction = new RemoteTransaction(process, client);
    try {
      await transaction.send({ op: 'begin', deadline_ms: timeoutMs });
      return transaction;
    } catch (thrown) {
      await transaction.abandon();
      throw thrown;
    }
  }

  async send(sent: Sent, payload?: Buffer): Promise<DriverAnswer> {
    const answer = await this.#client.send({ pool: POOL, ...sent }, payload).catch((thrown) => {
      // Nobody is there to get the answer.
      throw this.#isAbandoned
        ? new ServiceError('deadline', 'the connection was closed by this test')
        : thrown;
    });
    return this.#process.answerOf(answer);
  }

  call(call: ActorCall): Promise<DriverAnswer> {
    return this.send({ ...sentOf(call), tx: true }, call.payload);
  }

  async commit(timeoutMs: number): Promise<void> {
    await this.send({ op: 'commit', deadline_ms: timeoutMs });
  }

  /** What has ended already need not be rolled back. */
  async rollback(): Promise<void> {
    const outcome = await this.send({ op: 'rollback' }).then(() => '', String);
    if (outcome !== '' && !outcome.includes('there is no open transaction')) throw new Error(outcome);
  }

  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    await this.#client.close();
  }
}

const sentOf = ({ operation, args, timeoutMs }: Omit<ActorCall, 'payload'>): Sent => ({
  op: operation,
  ...(args !== undefined && { args }),
  deadline_ms: timeoutMs,
});

/** What tests of actors use of one. */
export interface RemoteActor {
  readonly state: ConnectionState;
  settled(): Promise<void>;
  use(): Promise<PoolUse | undefined>;
  call(call: ActorCall): Promise<DriverAnswer>;
  begin(timeoutMs: number): Promise<ActorTransaction>;
  drain(): Promise<void>;
}

/** Starts a process in place of an actor. */
function startActor(service: Service<NativeType>): RemoteActor {
  const process = new NativeProcess(service);
  return {
    get state() {
      return process.state;
    },
    settled: () => process.settled(),
    use: () => process.use(),
    call: (call) => process.call(sentOf(call), call.payload),
    begin: (timeoutMs) => RemoteTransaction.begin(process, timeoutMs),
    drain: () => process.drain(),
  };
}

/** Tests a config in a process of its own, as the API does. */
async function tryConnection(
  { type, config, sqliteFolders }: Service<NativeType>,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<ConnectionTest> {
  const service = { id: SERVICE_ID, type };
  const folders = await foldersOf(config, sqliteFolders);
  const request = { service, config, sqliteFolders: folders, ...WORK, timeoutMs };
  const folder = await tempDir('connection-test');
  const starter = await openStarter(folder.path, folders);
  try {
    return await testInProcess('test', request, async () => false, starter, createTestLog().log);
  } finally {
    await starter.close();
    await folder.remove();
  }
}

/** A connection of the driver below: a process that is connected. */
class RemoteConnection implements Connection {
  readonly #process: NativeProcess;

  constructor(process: NativeProcess) {
    this.#process = process;
  }

  async test(): Promise<string> {
    const { state } = this.#process;
    return state.kind === 'connected' ? state.message : state.kind;
  }

  run(sent: Sent, payload: Buffer): Promise<DriverAnswer> {
    return this.#process.call(sent, payload);
  }

  async begin(call: DriverCall): Promise<Transaction & Runnable> {
    const transaction = await RemoteTransaction.begin(this.#process, timeoutOf(call));
    return {
      run: (sent, payload) => transaction.send({ ...sent, tx: true }, payload),
      commit: (commit) => transaction.commit(timeoutOf(commit)),
      rollback: () => transaction.rollback(),
    };
  }

  close(): Promise<void> {
    return this.#process.close();
  }
}

interface Runnable {
  run(sent: Sent, payload: Buffer): Promise<DriverAnswer>;
}

/** A call that may be aborted has a deadline instead. */
function timeoutOf(call: DriverCall): number {
  return call instanceof TestDriverCall && call.mayBeAborted ? ABORTED_AFTER_MS : call.remainingMs;
}

function operation(name: string): CheckedOperation<Connection | Transaction> {
  return {
    // The process checks them.
    check: (args) => args,
    run: (target, args, call) =>
      (target as unknown as Runnable).run(
        sentOf({ operation: name, args, timeoutMs: timeoutOf(call) }),
        call.payload,
      ),
  };
}

/** In place of a driver: each of its connections is a process. It has lost one when that cannot reach its backend. */
export function nativeService<T extends NativeType>(type: T, options: NativeOptions = {}): NativeService<T> {
  return {
    type,
    concurrency: () => 1,
    operations: new Map(['query', 'execute'].map((name) => [name, operation(name)])),
    connect: async (config, context) => {
      let wasConnected = false;
      const process: NativeProcess = new NativeProcess({ type, config, ...options }, (state) => {
        if (state.kind === 'unreachable' && wasConnected)
          context.onLost(new ServiceError('unavailable', state.reason));
        if (state.kind !== 'connecting') wasConnected = state.kind === 'connected';
      });
      await process.settled();
      const { state } = process;
      if (state.kind === 'connected') return new RemoteConnection(process);
      await process.close();
      throw new ServiceError('unavailable', 'reason' in state ? state.reason : state.kind);
    },
    start: (config) => startActor({ type, config, ...options }),
    test: (config, timeoutMs) => tryConnection({ type, config, ...options }, timeoutMs),
  };
}

/** With what takes the place of actors and connection tests in this process. */
export interface NativeService<T extends NativeType> extends Driver<T> {
  start(config: ServiceConfig<T>): RemoteActor;
  test(config: ServiceConfig<T>, timeoutMs?: number): Promise<ConnectionTest>;
}

export const postgresService = nativeService('postgres');
export const sqliteService = nativeService('sqlite');

/** Those of the config, or the one of its file; temporary ones are given to the user of such services. */
async function foldersOf(config: object, given?: SqliteFolders): Promise<SqliteFolders> {
  const path = pathOf('sqlite', config) ?? '';
  const folders = given ?? ([isAbsolute(path) ? dirname(path) : '/'] as const);
  const made = folders.filter((folder) => folder.startsWith(`${tmpdir()}/`) && existsSync(folder));
  await giveToServices(...made);
  return folders;
}
