/**
 * An actor owns the connections to the backend of one active service. It bounds how many calls are under way and how many
 * wait, gives every call a deadline, counts and times them, and drains when the service is deactivated.
 */
import { toError } from '../errors.js';
import type { Logger } from '../log.js';
import type { ServiceConfig, ServiceType } from '../service-configs.js';
import { withinTime } from '../within-time.js';
import { openTransaction, type RunCall } from './actor-transaction.js';
import type { Driver, DriverAnswer, ObjectFiles } from './driver.js';
import { PendingCall } from './driver-call.js';
import { Gate } from './gate.js';
import { type Held, Link, type LinkState, notConnected } from './link.js';
import { openConnection } from './open-connection.js';
import { ServiceError } from './service-error.js';
import type { ActorMetrics, CallResult, PoolUse } from './service-metrics.js';

/** A call as it comes from a handler. */
export interface ActorCall {
  readonly operation: string;
  readonly args: unknown;
  readonly payload: Buffer;
  /** Milliseconds until nobody waits any more. */
  readonly timeoutMs: number;
}

/** A backend that has answered within this time, or was asked, is not asked again. */
const VERIFY_PAUSE_MS = 5_000;

export interface ActorOptions<T extends ServiceType = ServiceType> {
  readonly driver: Driver<T>;
  readonly config: ServiceConfig<T>;
  readonly queueLimit: number;
  readonly sqliteDir: string | undefined;
  readonly metrics: ActorMetrics;
  /** Its lines name the service. */
  readonly log: Logger;
  readonly onState: (state: LinkState) => void;
}

/** An open transaction of an actor: it occupies one of its connections. */
export interface ActorTransaction {
  call(call: ActorCall): Promise<DriverAnswer>;
  commit(timeoutMs: number): Promise<void>;
  /** Rolls back after the calls before it. */
  rollback(): Promise<void>;
  /** Rolls back at once: a call under way is aborted. Never fails. */
  abandon(): Promise<void>;
}

/** A place among the calls under way, and the connection to use. */
interface Place {
  readonly held: Held;
  /** To be called when the call is over; more than once does no harm. */
  readonly leave: () => void;
  /** What is left of the call's time. */
  readonly remainingMs: number;
}

export class Actor<T extends ServiceType = ServiceType> {
  readonly #gate: Gate;
  readonly #link: Link;
  readonly #operations: ReadonlySet<string>;
  #isDraining = false;
  #empty: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;
  /** When the backend last answered a call. */
  #answeredAt = 0;
  #verifiedAt = 0;
  /** Calls, transactions and streams that have begun and are not over, those that wait included. */
  #open = 0;

  constructor(private readonly options: ActorOptions<T>) {
    const { driver, config, queueLimit, sqliteDir, log } = options;
    this.#operations = new Set(driver.operations);
    this.#gate = new Gate(driver.concurrency(config), queueLimit);
    this.#link = new Link({
      open: (onLost) => openConnection(driver, config, { log, onLost, sqliteDir }),
      onState: (state) => this.#onState(state),
    });
  }

  get state(): LinkState {
    return this.#link.state;
  }

  get use(): PoolUse {
    return { inUse: this.#gate.inside, waiting: this.#gate.waiting };
  }

  /** Resolves when the first attempt to connect is over, however it ended. */
  async settled(): Promise<void> {
    await this.#link.settled();
  }

  /** Rejects with a ServiceError. Runs with every call of every handler: no more promises than it needs. */
  call(call: ActorCall): Promise<DriverAnswer> {
    const { operation, timeoutMs } = call;
    if (!this.#operations.has(operation)) return Promise.reject(this.#unknownOperation(operation));
    return this.#measured(
      operation,
      this.#inside(timeoutMs, (held, remainingMs) =>
        this.#bounded(call, remainingMs, held, (pending) => held.connection.call(pending)),
      ),
    );
  }

  /**
   * Opens a transaction, which is rolled back by itself after a while.
   * @throws ServiceError
   */
  async begin(timeoutMs: number, longestMs: number): Promise<ActorTransaction> {
    const call: ActorCall = { operation: 'begin', args: undefined, payload: Buffer.alloc(0), timeoutMs };
    return this.#measured('begin', this.#begin(call, longestMs));
  }

  async #begin(call: ActorCall, longestMs: number): Promise<ActorTransaction> {
    const { held, leave, remainingMs } = await this.#enter(call.timeoutMs);
    try {
      const { connection } = held;
      const { begin } = connection;
      if (!begin) {
        throw new ServiceError('invalid', `a ${this.options.driver.type} service has no transactions`);
      }
      const opened = await this.#bounded(
        call,
        remainingMs,
        held,
        (pending) => begin.call(connection, pending),
        (late) => late.rollback(),
      );
      const run: RunCall = (next, remaining, work) => {
        if (!this.#operations.has(next.operation)) throw this.#unknownOperation(next.operation);
        return this.#measured(next.operation, this.#bounded(next, remaining, held, work));
      };
      return openTransaction(opened, { run, leave, longestMs });
    } catch (thrown) {
      leave();
      throw thrown;
    }
  }

  /**
   * Uses the files of an object storage; the actor does not end before `use` does.
   * @throws ServiceError when it is not connected, or no object storage
   */
  async useFiles<R>(timeoutMs: number, use: (files: ObjectFiles) => Promise<R>): Promise<R> {
    return this.#inside(timeoutMs, async ({ connection, lost }) => {
      if (!connection.files) throw new ServiceError('invalid', 'the service is no object storage');
      try {
        return await use(connection.files);
      } catch (thrown) {
        if (thrown instanceof ServiceError && thrown.kind === 'unavailable') lost(thrown);
        throw thrown;
      }
    });
  }

  /** Refuses new calls, waits until those under way are over, or for so long, and closes the connections. */
  async drain(limitMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#isDraining = true;
    if (this.#open > 0) {
      this.#empty ??= new Promise((resolve) => {
        this.#onEmpty = resolve;
      });
      await (limitMs === Number.POSITIVE_INFINITY ? this.#empty : withinTime(this.#empty, limitMs));
    }
    await this.#link.close();
  }

  #unknownOperation(operation: string): ServiceError {
    const { type, operations } = this.options.driver;
    const known = `a ${type} service has ${operations.join(', ')}`;
    return new ServiceError('invalid', `there is no operation "${operation.slice(0, 64)}": ${known}`);
  }

  #measured<R>(operation: string, work: Promise<R>): Promise<R> {
    const started = performance.now();
    const count = (result: CallResult) =>
      this.options.metrics.called(operation, result, (performance.now() - started) / 1000);
    return work.then(
      (answer) => {
        count('ok');
        return answer;
      },
      (thrown: unknown) => {
        count(thrown instanceof ServiceError ? thrown.kind : 'internal');
        throw thrown;
      },
    );
  }

  #inside<R>(timeoutMs: number, work: (held: Held, remainingMs: number) => Promise<R>): Promise<R> {
    const place = this.#enterNow(timeoutMs);
    if (place) return this.#leaveAfter(place, work);
    return this.#enter(timeoutMs).then((entered) => this.#leaveAfter(entered, work));
  }

  #leaveAfter<R>(
    { held, leave, remainingMs }: Place,
    work: (held: Held, remainingMs: number) => Promise<R>,
  ): Promise<R> {
    return work(held, remainingMs).finally(leave);
  }

  /** Takes a place and the connection if both are there, as they mostly are. */
  #enterNow(timeoutMs: number): Place | undefined {
    if (this.#isDraining || !this.#gate.tryEnter()) return undefined;
    const held = this.#link.hold();
    if (!held) {
      this.#gate.leave();
      return undefined;
    }
    this.#open++;
    return this.#place(held, timeoutMs);
  }

  /** Takes a place and the connection, and waits for either if need be. */
  async #enter(timeoutMs: number): Promise<Place> {
    if (this.#isDraining) throw new ServiceError('inactive', 'the service is being deactivated');
    this.#open++;
    try {
      const started = performance.now();
      await this.#gate.enter(timeoutMs);
      const remainingMs = timeoutMs - (performance.now() - started);
      if (remainingMs < 1) {
        this.#gate.leave();
        throw new ServiceError('deadline', `it waited ${timeoutMs} ms for its turn`);
      }
      const held = this.#link.hold() ?? (await this.#holdWhenConnected(remainingMs));
      if (!held) {
        this.#gate.leave();
        throw notConnected(this.#link.state);
      }
      return this.#place(held, remainingMs);
    } catch (thrown) {
      this.#closed();
      throw thrown;
    }
  }

  #place(held: Held, remainingMs: number): Place {
    let isLeft = false;
    const leave = () => {
      if (isLeft) return;
      isLeft = true;
      held.release();
      this.#gate.leave();
      this.#closed();
    };
    return { held, leave, remainingMs };
  }

  /** A service that was activated a moment ago is worth waiting for; one whose backend is away is not. */
  async #holdWhenConnected(timeoutMs: number): Promise<Held | undefined> {
    if (this.#link.state.kind === 'connecting') await withinTime(this.#link.settled(), timeoutMs);
    return this.#link.hold();
  }

  #closed(): void {
    this.#open--;
    if (this.#open > 0) return;
    this.#onEmpty?.();
  }

  /** Waits for a driver until the deadline. What it says of the connection goes to the link. */
  #bounded<R>(
    { operation, args, payload, timeoutMs }: ActorCall,
    remainingMs: number,
    held: Held,
    work: (pending: PendingCall) => Promise<R>,
    onLate: (result: R) => Promise<void> = async () => undefined,
  ): Promise<R> {
    const pending = new PendingCall(operation, args, payload, remainingMs);
    return new Promise<R>((resolve, reject) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        reject(new ServiceError('deadline', `the backend did not answer within ${timeoutMs} ms`));
        pending.abort();
        this.#verify();
      }, remainingMs);
      started(() => work(pending)).then(
        (result) => {
          clearTimeout(timer);
          this.#answeredAt = performance.now();
          if (!isLate) return resolve(result);
          return onLate(result).catch((error: unknown) =>
            this.options.log.warn({ err: toError(error) }, 'what came too late could not be undone'),
          );
        },
        (thrown: unknown) => {
          clearTimeout(timer);
          // How a call ends that was told to end says nothing of the backend.
          if (isLate) return;
          if (thrown instanceof ServiceError && thrown.kind === 'unavailable') held.lost(thrown);
          reject(thrown);
        },
      );
    });
  }

  /** A call ran over its deadline. Whether the backend is still there is asked only if nothing shows that it is. */
  #verify(): void {
    const now = performance.now();
    if (now - Math.max(this.#answeredAt, this.#verifiedAt) < VERIFY_PAUSE_MS) return;
    this.#verifiedAt = now;
    this.#link.verify();
  }

  #wasConnected = false;
  #isLogged = false;

  #onState(state: LinkState): void {
    const { log, metrics, onState } = this.options;
    if (state.kind === 'connected') {
      if (this.#wasConnected) metrics.reconnected();
      log.info({ backend: state.message }, this.#wasConnected ? 'connected again' : 'connected');
      this.#wasConnected = true;
      this.#isLogged = false;
    } else if (state.kind === 'unreachable' && !this.#isLogged) {
      // Once, not with every attempt.
      log.warn({ reason: state.reason }, 'backend cannot be reached; trying again');
      this.#isLogged = true;
    }
    onState(state);
  }
}

/** A driver may also fail before it has a promise. */
function started<R>(work: () => Promise<R>): Promise<R> {
  try {
    return work();
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

/** What a call failed with, for who called. */
export function asServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  return new ServiceError('backend', toError(thrown).message, { cause: thrown });
}
