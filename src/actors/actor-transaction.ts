/** A transaction of an actor: its calls and its end run one after the other, and its duration is limited. */
import type { Transaction } from './driver.js';
import type { ActorCall, PendingCall } from './driver-call.js';
import type { CheckedOperation, DriverAnswer } from './operations.js';
import { ServiceError } from './service-error.js';

/** An open transaction of an actor: it occupies one of its connections. */
export interface ActorTransaction {
  call(call: ActorCall): Promise<DriverAnswer>;
  commit(timeoutMs: number): Promise<void>;
  /** Rolls back after the earlier calls have ended. */
  rollback(): Promise<void>;
  /** Rolls back at once and aborts the call in progress. Never fails. */
  abandon(): Promise<void>;
}

/** Runs a call within its deadline, and counts it. */
export type RunCall = <R>(
  call: ActorCall,
  timeoutMs: number,
  work: (pending: PendingCall) => Promise<R>,
) => Promise<R>;

export interface TransactionOptions {
  readonly run: RunCall;
  /** Finds an operation of the driver. @throws ServiceError */
  readonly operation: (name: string) => CheckedOperation<Transaction>;
  /** Releases the connection of the transaction; idempotent. */
  readonly release: () => void;
  /** Maximum duration, milliseconds; then it is rolled back. */
  readonly longestMs: number;
}

const EMPTY = Buffer.alloc(0);

/** Wraps a transaction that a driver has opened. */
export function openTransaction(
  transaction: Transaction,
  { run, operation, release, longestMs }: TransactionOptions,
): ActorTransaction {
  let outcome: 'committed' | 'rolled back' | 'timed out' | undefined;
  let inProgress: PendingCall | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const timer = setTimeout(() => void end('timed out'), longestMs);

  function enqueue<R>(work: () => Promise<R>): Promise<R> {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  }

  function requireOpen(): void {
    if (outcome === 'timed out') {
      const message = `the transaction was rolled back: it was open for longer than ${longestMs} ms`;
      throw new ServiceError('deadline', message);
    }
    if (outcome) throw new ServiceError('invalid', `the transaction is ${outcome} already`);
  }

  async function end(reason: 'rolled back' | 'timed out'): Promise<void> {
    if (outcome) return;
    outcome = reason;
    clearTimeout(timer);
    // Otherwise the rollback would wait for the statement in progress.
    inProgress?.abort();
    await transaction.rollback();
    release();
  }

  /** Runs a call that can be aborted when the transaction ends. */
  function bounded<R>(call: ActorCall, work: (pending: PendingCall) => Promise<R>): Promise<R> {
    return run(call, call.timeoutMs, (pending) => {
      inProgress = pending;
      return work(pending);
    }).finally(() => {
      inProgress = undefined;
    });
  }

  return {
    call: (call) =>
      enqueue(async (): Promise<DriverAnswer> => {
        requireOpen();
        const { check, run: perform } = operation(call.operation);
        return bounded(call, (pending) => perform(transaction, check(call.args), pending));
      }),
    commit: (timeoutMs) =>
      enqueue(async () => {
        requireOpen();
        outcome = 'committed';
        clearTimeout(timer);
        const call: ActorCall = { operation: 'commit', args: undefined, payload: EMPTY, timeoutMs };
        await bounded(call, (pending) => transaction.commit(pending)).finally(release);
      }),
    rollback: () => enqueue(() => end('rolled back')),
    abandon: () => end('rolled back'),
  };
}
