/**
 * An active service that has a process of its own: whatever its backend makes of that process, only its own calls fail.
 * When the process ends, another one is started, with growing pauses; after several ends the service has failed, until
 * its config changes or it is activated again.
 */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pTimeout from 'p-timeout';
import { toError } from '../../errors.js';
import { makeServiceToken } from '../../secrets/service-token.js';
import type { HostedBinding } from '../../store/service-activity.js';
import type { Log } from '../../util/log.js';
import { LogRateLimiter } from '../../util/log-rate-limiter.js';
import type { RemoteActor, ServiceAddress } from '../handler-session.js';
import type { ConnectionState } from '../reconnecting-connection.js';
import { ServiceError } from '../service-error.js';
import type { ActorMetrics, PoolUse } from '../service-metrics.js';
import type { RunningService } from '../service-runner.js';
import { addFigures, type Figures } from './figures.js';
import type { FromService, ServeRequest } from './messages.js';
import { ServiceProcess } from './service-process.js';
import { tokenSigner } from './token-signer.js';

/** Pauses before it is started again, milliseconds; when there are no more, the service has failed. */
const PAUSES_MS = [100, 500, 2_000, 5_000];
/** A process that has lived for so long proves that it can. */
const LONG_LIFE_MS = 60_000;
/** After the limit of a drain, until the process is killed. */
const DRAIN_GRACE_MS = 2_000;
/** A drained process sends calls elsewhere until handlers have left it. */
const LEAVE_MS = 30_000;
const MEASURE_TIMEOUT_MS = 1_000;
const NOT_USED: PoolUse = { inUse: 0, waiting: 0 };
const MAX_LOG_LINES_PER_SECOND = 20;

/** The state of an active service. */
export type ServiceCondition = ConnectionState | { readonly kind: 'failed'; readonly reason: string };

/** What is the same for all services of an actor host. */
export interface IsolationSettings
  extends Pick<
    ServeRequest,
    'queueLimit' | 'defaultCallMs' | 'longestCallMs' | 'handlerThreads' | 'answerBytes'
  > {
  readonly memoryMb: number;
  /** The folder of sockets that handlers see. */
  readonly handlerFolder: string;
  /** A folder that they do not see. */
  readonly ownFolder: string;
}

export interface IsolatedServiceOptions extends Pick<ServeRequest, 'service' | 'config'> {
  readonly settings: IsolationSettings;
  readonly bindings: readonly HostedBinding[];
  readonly log: Log;
  readonly onState: () => void;
  readonly metrics: ActorMetrics;
}

/** A process, and how it is reached. */
interface Run {
  readonly process: ServiceProcess;
  readonly key: string;
  readonly socket: string;
  readonly objectSocket: string;
  readonly since: number;
  /** Resolves when it serves, rejects when it has ended. */
  readonly serving: Latch;
  /** Resolves when it knows the present bindings. */
  bound: Latch;
}

export class IsolatedService implements RemoteActor, RunningService {
  readonly #options: IsolatedServiceOptions;
  readonly #logLimiter: LogRateLimiter;
  #bindings: readonly HostedBinding[];
  #bindNumber = 0;
  #run: Run | undefined;
  #state: ServiceCondition = { kind: 'connecting' };
  #deaths = 0;
  readonly #ending = new AbortController();
  #settling: (() => void)[] = [];
  readonly #measuring = new Map<number, () => void>();
  #measureNumber = 0;
  #use: PoolUse = NOT_USED;
  #drained: (() => void) | undefined;

  constructor(options: IsolatedServiceOptions) {
    this.#options = options;
    this.#bindings = options.bindings;
    this.#logLimiter = new LogRateLimiter(MAX_LOG_LINES_PER_SECOND, (dropped) =>
      options.log.warn({ dropped }, 'the process of the service logs more than is written'),
    );
    this.#start();
  }

  get state(): ServiceCondition {
    return this.#state;
  }

  /** Resolves when it knows its bindings, and the first attempt to connect has succeeded or failed. */
  async settled(): Promise<void> {
    await this.#run?.bound.opened.catch(() => undefined);
    if (this.#state.kind !== 'connecting' || this.#ending.signal.aborted) return;
    await new Promise<void>((resolve) => this.#settling.push(resolve));
  }

  /** Endpoints that may use it. Takes effect before `address` resolves again. */
  setBindings(bindings: readonly HostedBinding[]): void {
    this.#bindings = bindings;
    const run = this.#run;
    if (!run) return;
    run.bound = new Latch();
    run.process.send({ type: 'bind', number: ++this.#bindNumber, bindings });
  }

  /**
   * Where the handler of an endpoint reaches it.
   * @throws ServiceError unavailable, or deadline
   */
  async address(endpointId: string, timeoutMs: number): Promise<ServiceAddress> {
    const { socket, key } = await this.#serving(timeoutMs);
    return { socket, token: makeServiceToken(tokenSigner(key), endpointId) };
  }

  /**
   * Where object files are reached: the path of a socket, and a token.
   * @throws ServiceError unavailable, or deadline
   */
  async objects(timeoutMs: number): Promise<{ readonly socketPath: string; readonly token: string }> {
    const { objectSocket, key } = await this.#serving(timeoutMs);
    return { socketPath: objectSocket, token: key };
  }

  /** The use of its pool when it was measured last. */
  get use(): PoolUse {
    return this.#use;
  }

  /** Adds the figures of its process to the metrics; they are added later when it cannot tell them now. */
  async measure(): Promise<void> {
    const run = this.#run;
    if (!run) return;
    const number = ++this.#measureNumber;
    const measured = new Promise<void>((resolve) => this.#measuring.set(number, resolve));
    run.process.send({ type: 'measure', number });
    await pTimeout(measured, { milliseconds: MEASURE_TIMEOUT_MS, fallback: () => undefined });
    this.#measuring.delete(number);
  }

  /**
   * Sends new calls elsewhere, and waits up to `limitMs` for those in progress. The process lives on until handlers
   * have left it.
   */
  async drain(limitMs?: number): Promise<void> {
    this.#ending.abort();
    this.#settle();
    this.#logLimiter.reportDropped();
    const run = this.#run;
    if (!run) return;
    const drained = new Promise<void>((resolve) => {
      this.#drained = resolve;
      void run.process.ended().then(resolve);
    });
    run.process.send({ type: 'drain', limitMs });
    if (limitMs === undefined) {
      await drained;
      const timer = setTimeout(() => run.process.kill('handlers did not leave it'), LEAVE_MS);
      void run.process.ended().then(() => clearTimeout(timer));
      return;
    }
    await pTimeout(drained, { milliseconds: limitMs + DRAIN_GRACE_MS, fallback: () => undefined });
    run.process.kill('the actor host ends');
    await run.process.ended();
  }

  async #serving(timeoutMs: number): Promise<Run> {
    const run = this.#run;
    if (!run) throw new ServiceError('unavailable', this.#reason());
    const ready = Promise.all([run.serving.opened, run.bound.opened]);
    await pTimeout(ready, {
      milliseconds: timeoutMs,
      message: new ServiceError(
        'deadline',
        `the process of the service was not ready within ${timeoutMs} ms`,
      ),
    });
    return run;
  }

  #reason(): string {
    return 'reason' in this.#state ? this.#state.reason : 'the process of the service is being started';
  }

  #start(): void {
    const { service, config, settings, log } = this.#options;
    const { handlerFolder, ownFolder, memoryMb, ...limits } = settings;
    const name = randomBytes(9).toString('hex');
    const process = new ServiceProcess(service.id, memoryMb, {
      onMessage: (message) => this.#onMessage(run, message),
      onEnd: (reason) => this.#onEnd(run, reason),
    });
    const run: Run = {
      process,
      key: randomBytes(32).toString('base64url'),
      socket: `${name}.sock`,
      objectSocket: join(ownFolder, `${name}.sock`),
      since: performance.now(),
      serving: new Latch(),
      bound: new Latch(),
    };
    run.bound.open();
    this.#run = run;
    log.debug({ process: process.pid }, 'process of the service started');
    process.send({
      type: 'serve',
      service,
      config,
      bindings: this.#bindings,
      handlerSocket: join(handlerFolder, run.socket),
      objectSocket: run.objectSocket,
      key: run.key,
      memoryBytes: memoryMb * 1024 ** 2,
      ...limits,
    });
  }

  #onMessage(run: Run, message: FromService): void {
    switch (message.type) {
      case 'serving':
        run.serving.open();
        break;
      case 'bound':
        if (message.number === this.#bindNumber) run.bound.open();
        break;
      case 'state':
        // The connection is closed while it drains, which is no news.
        if (!this.#ending.signal.aborted) this.#setState(message.state);
        break;
      case 'figures':
        this.#add(message.figures);
        this.#measuring.get(message.number ?? 0)?.();
        break;
      case 'drained':
        this.#add(message.figures);
        this.#drained?.();
        break;
      case 'log':
        if (message.level === 'debug' || this.#logLimiter.take())
          this.#options.log[message.level](message.details, message.message);
        break;
    }
  }

  #add(figures: Figures): void {
    addFigures(figures, this.#options.metrics);
    this.#use = figures.use;
  }

  #onEnd(run: Run, reason: string): void {
    this.#run = undefined;
    this.#use = NOT_USED;
    void this.#removeSockets(run);
    const error = new ServiceError('unavailable', `the process of the service has ended: ${reason}`);
    run.serving.fail(error);
    run.bound.fail(error);
    if (this.#ending.signal.aborted) return;
    if (performance.now() - run.since >= LONG_LIFE_MS) this.#deaths = 0;
    const pause = PAUSES_MS[this.#deaths++];
    if (pause === undefined) {
      this.#options.log.error(
        { reason, deaths: this.#deaths },
        'the service has failed: its process ends again and again',
      );
      const times = `its process has ended ${this.#deaths} times, at last because: ${reason}`;
      this.#setState({
        kind: 'failed',
        reason: `${times}. Activate the service again, or change its config.`,
      });
      return;
    }
    this.#options.log.warn(
      { reason, deaths: this.#deaths },
      'the process of the service has ended; starting another',
    );
    this.#setState({ kind: 'unreachable', reason: `its process has ended and is started again: ${reason}` });
    void delay(pause, undefined, { signal: this.#ending.signal }).then(
      () => this.#start(),
      () => undefined, // it is not needed any more
    );
  }

  /** A process that is killed leaves its sockets behind. */
  async #removeSockets({ socket, objectSocket }: Run): Promise<void> {
    const { handlerFolder } = this.#options.settings;
    for (const path of [join(handlerFolder, socket), objectSocket]) {
      await rm(path, { force: true }).catch((error: unknown) =>
        this.#options.log.warn({ err: toError(error), path }, 'a socket could not be removed'),
      );
    }
  }

  #setState(state: ServiceCondition): void {
    this.#state = state;
    if (state.kind !== 'connecting') this.#settle();
    this.#options.onState();
  }

  #settle(): void {
    for (const settle of this.#settling.splice(0)) settle();
  }
}

/** Something that is waited for, by anybody, and once. */
class Latch {
  readonly opened: Promise<void>;
  open!: () => void;
  fail!: (error: Error) => void;

  constructor() {
    this.opened = new Promise<void>((resolve, reject) => {
      this.open = resolve;
      this.fail = reject;
    });
    // It may be that nobody waits.
    this.opened.catch(() => undefined);
  }
}
