/**
 * An actor owns the connections to the backend of one active service. It limits the calls in progress and those that
 * wait, gives every call a deadline, records metrics, and drains when the service is deactivated.
 */

import pTimeout from 'p-timeout';
import { toError } from '../errors.js';
import type { ServiceConfig, ServiceType } from '../model/service-configs.js';
import type { Log } from '../util/log.js';
import { type ActorTransaction, openTransaction, type RunCall } from './actor-transaction.js';
import { BoundedSemaphore } from './bounded-semaphore.js';
import { type Connection, type Driver, type ObjectFiles, requireOperation } from './driver.js';
import { type ActorCall, PendingCall } from './driver-call.js';
import { openConnection } from './open-connection.js';
import type { CheckedOperation, DriverAnswer } from './operations.js';
import {
  type ConnectionLease,
  type ConnectionState,
  notConnected,
  ReconnectingConnection,
} from './reconnecting-connection.js';
import { ServiceError } from './service-error.js';
import type { ActorMetrics, CallResult, PoolUse } from './service-metrics.js';

/** A backend that has answered, or was checked, within this time is not checked again. */
const VERIFY_PAUSE_MS = 5_000;

export interface ActorOptions<T extends ServiceType = ServiceType> {
  readonly driver: Driver<T>;
  readonly config: ServiceConfig<T>;
  readonly queueLimit: number;
  readonly answerBytes: number;
  /** How long a backend may take to accept a connection; `CONNECT_TIMEOUT_MS` unless given. */
  readonly connectTimeoutMs?: number | undefined;
  readonly metrics: ActorMetrics;
  /** Adds the service id to each line. */
  readonly log: Log;
  readonly onState: (state: ConnectionState) => void;
}

/** The resources that a call holds while it is in progress. */
interface Admission {
  readonly lease: ConnectionLease;
  /** To be called when the call has ended; idempotent. */
  readonly release: () => void;
  /** Milliseconds until the deadline of the call. */
  readonly remainingMs: number;
}

export class Actor<T extends ServiceType = ServiceType> {
  readonly #options: ActorOptions<T>;
  readonly #semaphore: BoundedSemaphore;
  readonly #connection: ReconnectingConnection;
  #isDraining = false;
  #empty: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;
  /** When the backend last answered a call. */
  #answeredAt = 0;
  #verifiedAt = 0;
  /** Calls, transactions and streams in progress, including those that wait. */
  #open = 0;

  constructor(options: ActorOptions<T>) {
    this.#options = options;
    const { driver, config, queueLimit, answerBytes, connectTimeoutMs, log } = options;
    this.#semaphore = new BoundedSemaphore(driver.concurrency(config), queueLimit);
    this.#connection = new ReconnectingConnection({
      open: (onLost) => openConnection(driver, config, { log, onLost, answerBytes }, connectTimeoutMs),
      onState: (state) => this.#onState(state),
    });
  }

  get state(): ConnectionState {
    return this.#connection.state;
  }

  get use(): PoolUse {
    return { inUse: this.#semaphore.inUse, waiting: this.#semaphore.waiting };
  }

  /** It takes calls at once, which wait for the connection. */
  async ready(): Promise<void> {}

  /** Resolves when the first attempt to connect has succeeded or failed. */
  async settled(): Promise<void> {
    await this.#connection.settled();
  }

  /** Rejects with a ServiceError. On the hot path: it creates no more promises than needed. */
  call(call: ActorCall): Promise<DriverAnswer> {
    let operation: CheckedOperation<Connection>;
    let args: unknown;
    try {
      // Before it is counted: unknown operation names must not become labels of metrics.
      operation = requireOperation(this.#options.driver, call.operation);
      args = operation.check(call.args);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
    return this.#measured(
      call.operation,
      this.#admitted(call.timeoutMs, (lease, remainingMs) =>
        this.#bounded(call, remainingMs, lease, (pending) => operation.run(lease.connection, args, pending)),
      ),
    );
  }

  /**
   * Opens a transaction, which is rolled back after `longestMs`.
   * @throws ServiceError
   */
  async begin(timeoutMs: number, longestMs: number): Promise<ActorTransaction> {
    const call: ActorCall = { operation: 'begin', args: undefined, payload: Buffer.alloc(0), timeoutMs };
    return this.#measured('begin', this.#begin(call, longestMs));
  }

  async #begin(call: ActorCall, longestMs: number): Promise<ActorTransaction> {
    const { driver } = this.#options;
    const { lease, release, remainingMs } = await this.#admit(call.timeoutMs);
    try {
      const { connection } = lease;
      const { begin } = connection;
      if (!begin) throw new ServiceError('invalid', `a ${driver.type} service has no transactions`);
      const opened = await this.#bounded(
        call,
        remainingMs,
        lease,
        (pending) => begin.call(connection, pending),
        (late) => late.rollback(),
      );
      const run: RunCall = (next, remaining, work) =>
        this.#measured(next.operation, this.#bounded(next, remaining, lease, work));
      const operation = (name: string) => requireOperation(driver, name);
      return openTransaction(opened, { run, operation, release, longestMs });
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  /**
   * Uses the files of an object storage; the actor does not close before `use` has ended.
   * @throws ServiceError when it is not connected, or no object storage
   */
  async useFiles<R>(timeoutMs: number, use: (files: ObjectFiles) => Promise<R>): Promise<R> {
    return this.#admitted(timeoutMs, async ({ connection, lost }) => {
      if (!connection.files) throw new ServiceError('invalid', 'the service is no object storage');
      try {
        return await use(connection.files);
      } catch (thrown) {
        if (thrown instanceof ServiceError && thrown.kind === 'unavailable') lost(thrown);
        throw thrown;
      }
    });
  }

  /** Refuses new calls, waits up to `limitMs` for those in progress, and closes the connections. */
  async drain(limitMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#isDraining = true;
    if (this.#open > 0) {
      this.#empty ??= new Promise((resolve) => {
        this.#onEmpty = resolve;
      });
      await pTimeout(this.#empty, { milliseconds: limitMs, fallback: () => undefined });
    }
    await this.#connection.close();
  }

  #measured<R>(operation: string, work: Promise<R>): Promise<R> {
    const started = performance.now();
    const count = (result: CallResult) =>
      this.#options.metrics.called(operation, result, (performance.now() - started) / 1000);
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

  #admitted<R>(
    timeoutMs: number,
    work: (lease: ConnectionLease, remainingMs: number) => Promise<R>,
  ): Promise<R> {
    const admission = this.#admitNow(timeoutMs);
    if (admission) return this.#releaseAfter(admission, work);
    return this.#admit(timeoutMs).then((late) => this.#releaseAfter(late, work));
  }

  #releaseAfter<R>(
    { lease, release, remainingMs }: Admission,
    work: (lease: ConnectionLease, remainingMs: number) => Promise<R>,
  ): Promise<R> {
    return work(lease, remainingMs).finally(release);
  }

  /** Admits a call without waiting: the common case. */
  #admitNow(timeoutMs: number): Admission | undefined {
    if (this.#isDraining || !this.#semaphore.tryAcquire()) return undefined;
    const lease = this.#connection.acquire();
    if (!lease) {
      this.#semaphore.release();
      return undefined;
    }
    this.#open++;
    return this.#admission(lease, timeoutMs);
  }

  /** Admits a call after waiting for capacity and for the connection if necessary. */
  async #admit(timeoutMs: number): Promise<Admission> {
    if (this.#isDraining) throw new ServiceError('inactive', 'the service is being deactivated');
    this.#open++;
    try {
      const started = performance.now();
      await this.#semaphore.acquire(timeoutMs);
      const remainingMs = timeoutMs - (performance.now() - started);
      if (remainingMs < 1) {
        this.#semaphore.release();
        throw new ServiceError('deadline', `it waited ${timeoutMs} ms in the queue`);
      }
      const lease = this.#connection.acquire() ?? (await this.#leaseWhenConnected(remainingMs));
      if (!lease) {
        this.#semaphore.release();
        throw notConnected(this.#connection.state);
      }
      return this.#admission(lease, remainingMs);
    } catch (thrown) {
      this.#closed();
      throw thrown;
    }
  }

  #admission(lease: ConnectionLease, remainingMs: number): Admission {
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      lease.release();
      this.#semaphore.release();
      this.#closed();
    };
    return { lease, release, remainingMs };
  }

  /** Waits for the first attempt to connect, but not while the backend is unreachable. */
  async #leaseWhenConnected(timeoutMs: number): Promise<ConnectionLease | undefined> {
    if (this.#connection.state.kind === 'connecting')
      await pTimeout(this.#connection.settled(), { milliseconds: timeoutMs, fallback: () => undefined });
    return this.#connection.acquire();
  }

  #closed(): void {
    this.#open--;
    if (this.#open > 0) return;
    this.#onEmpty?.();
  }

  /** Runs work of a driver until the deadline. A connection that the driver reports as broken is retired. */
  #bounded<R>(
    { payload, timeoutMs }: ActorCall,
    remainingMs: number,
    lease: ConnectionLease,
    work: (pending: PendingCall) => Promise<R>,
    onLate: (result: R) => Promise<void> = async () => undefined,
  ): Promise<R> {
    const pending = new PendingCall(payload, remainingMs);
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
            this.#options.log.warn(
              { err: toError(error) },
              'a result after the deadline could not be undone',
            ),
          );
        },
        (thrown: unknown) => {
          clearTimeout(timer);
          // The outcome of an aborted call says nothing about the backend.
          if (isLate) return;
          if (thrown instanceof ServiceError && thrown.kind === 'unavailable') lease.lost(thrown);
          reject(thrown);
        },
      );
    });
  }

  /** After a call has exceeded its deadline: checks the backend, unless it has answered recently. */
  #verify(): void {
    const now = performance.now();
    if (now - Math.max(this.#answeredAt, this.#verifiedAt) < VERIFY_PAUSE_MS) return;
    this.#verifiedAt = now;
    this.#connection.verify();
  }

  #wasConnected = false;
  #isLogged = false;

  #onState(state: ConnectionState): void {
    const { log, metrics, onState } = this.#options;
    if (state.kind === 'connected') {
      if (this.#wasConnected) metrics.reconnected();
      log.info({ backend: state.message }, this.#wasConnected ? 'connected again' : 'connected');
      this.#wasConnected = true;
      this.#isLogged = false;
    } else if (state.kind === 'unreachable' && !this.#isLogged) {
      // Once per outage, not for every attempt.
      log.warn({ reason: state.reason }, 'backend cannot be reached; trying again');
      this.#isLogged = true;
    }
    onState(state);
  }
}

/** Turns a synchronous error of a driver into a rejection. */
function started<R>(work: () => Promise<R>): Promise<R> {
  try {
    return work();
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}
